//! What something that came from the server means for a store.

use crate::{Deleted, Error, Object, ResourceVersion};

/// One change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delta {
    /// Seen as added.
    Added(Object),
    /// Seen as modified.
    Updated(Object),
    /// Seen, or found out, as gone.
    Deleted(Deleted),
    /// Part of a list.
    Replaced(Object),
    /// A whole list at once; the in-order discipline gives this instead of many `Replaced`.
    ReplacedAll {
        /// The objects.
        objects: Vec<Object>,
        /// What else is in the list, but could not be kept.
        unreadable: Vec<Error>,
        /// The version of the list.
        version: ResourceVersion,
    },
    /// A resync.
    Sync(Object),
    /// The version advanced.
    Bookmark(ResourceVersion),
    /// An object that could not be kept.
    Unreadable {
        /// Which, as far as is known, and why.
        error: Error,
        /// Its version.
        version: ResourceVersion,
        /// It is gone.
        deleted: bool,
    },
}

impl Delta {
    /// The object that it is about; none for lists, bookmarks and objects that could not be kept.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Delta::Added(object)
            | Delta::Updated(object)
            | Delta::Replaced(object)
            | Delta::Sync(object) => Some(object),
            Delta::Deleted(deleted) => Some(&deleted.object),
            Delta::ReplacedAll { .. } | Delta::Bookmark(_) | Delta::Unreadable { .. } => None,
        }
    }

    /// The object that it puts into a store.
    pub(crate) fn put(&self) -> Option<&Object> {
        self.object().filter(|_| !matches!(self, Delta::Deleted(_)))
    }
}
