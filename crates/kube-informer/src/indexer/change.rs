//! What is written into a store, and what came of it.

use crate::{Deleted, Object, ResourceVersion};

/// One thing to write.
#[derive(Debug)]
pub(crate) enum Change {
    /// The state of an object, whether it was there or not: the store knows, not who writes.
    Put(Object),
    /// The object is gone.
    Delete(Deleted),
    /// Nothing older than this will come.
    Bookmark(ResourceVersion),
}

/// What came of a change.
#[derive(Debug)]
pub(crate) enum Applied {
    /// The object was not there.
    Added(Object),
    /// It was, as this.
    Updated { old: Object, new: Object },
    /// It was there, and went.
    Deleted(Deleted),
    /// No object is different: a bookmark, a state that is there already or is older than that, or
    /// the end of an object that is not there.
    Nothing,
}

/// What replacing the content has changed.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Not in the list: as they last were, sorted by key.
    pub(crate) deleted: Vec<Object>,
    /// In the order of the list, as the other two.
    pub(crate) added: Vec<Object>,
    /// Before and after.
    pub(crate) updated: Vec<(Object, Object)>,
    /// The instances that were there before and still are.
    pub(crate) unchanged: Vec<Object>,
}

/// Which states of an object that is there already go in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Accept {
    /// Not the same state again, and not an older one: watches repeat themselves.
    Newer,
    /// Whatever comes.
    Any,
}
