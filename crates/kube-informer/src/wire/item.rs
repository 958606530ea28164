//! The parts of lists and watches.

use crate::{Error, Object, ResourceVersion};

/// A part of a list.
#[derive(Clone, Debug)]
pub enum ListItem {
    /// An object.
    Object(Object),
    /// An object that cannot be kept, and why; its key, if that could be read, is in the error.
    Unreadable(Error),
    /// The end of the page.
    End {
        /// The version of the list.
        resource_version: ResourceVersion,
        /// There is more.
        continue_token: Option<String>,
    },
}

/// A part of a watch.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// Came to be, or into the selection.
    Added(Object),
    /// Changed.
    Modified(Object),
    /// Went, or out of the selection.
    Deleted(Object),
    /// An event that cannot be used, and why: its object cannot be kept, is of another kind, or the
    /// event is of an unknown type. The key of the object, if that could be read and is known to be
    /// one of this resource, is in the error.
    Unreadable {
        /// Why, and which.
        error: Error,
        /// The version of the object, if that could be read; empty if the event does not count as
        /// one of this resource.
        resource_version: ResourceVersion,
        /// The event was that it went.
        deleted: bool,
    },
    /// Nothing older than this will come.
    Bookmark {
        /// The version.
        resource_version: ResourceVersion,
        /// The initial events are over.
        initial_events_end: bool,
    },
}
