//! The items of lists and watches.

use crate::{Error, Object, ResourceVersion};

/// An item of a list.
#[derive(Clone, Debug)]
pub enum ListItem {
    /// An object.
    Object(Object),
    /// An object that cannot be kept, and why. If the object's key could be read, it is in the error.
    Unreadable(Error),
    /// The end of the page.
    End {
        /// The version of the list.
        resource_version: ResourceVersion,
        /// The token for the next page, if there is one.
        continue_token: Option<String>,
    },
}

/// An item of a watch.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// The object was created, or now matches the selector.
    Added(Object),
    /// The object changed.
    Modified(Object),
    /// The object was deleted, or no longer matches the selector.
    Deleted(Object),
    /// An event that cannot be used, and why: its object cannot be kept or is of another kind, or the event
    /// is of an unknown type. If the object's key could be read and belongs to this resource, it is in the
    /// error.
    Unreadable {
        /// The reason, and the key.
        error: Error,
        /// The version of the object, if it could be read; empty if the event does not belong to this resource.
        resource_version: ResourceVersion,
        /// Whether the event was a deletion.
        deleted: bool,
    },
    /// A bookmark: no event with an older version will follow.
    Bookmark {
        /// The version of the bookmark.
        resource_version: ResourceVersion,
        /// Whether this ends the initial events.
        initial_events_end: bool,
    },
}
