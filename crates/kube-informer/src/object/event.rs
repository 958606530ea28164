//! Events about objects.

use std::ops::Deref;

use super::{Object, Untyped};
use crate::ObjectKey;

/// An object that is gone, and how its deletion was learned. Dereferences to the object.
#[derive(Debug)]
pub struct Deleted<K = Untyped> {
    /// The last known state.
    pub object: Object<K>,
    /// Whether that is the final state.
    pub final_state: FinalState,
}

/// How a deletion was learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinalState {
    /// The delete was observed: the object is in its final state.
    Known,
    /// The delete was missed, and inferred from a relist: the object may be stale. This is client-go's
    /// tombstone, `DeletedFinalStateUnknown`.
    Unknown,
}

impl<K> Deleted<K> {
    /// Returns the same deletion with another object type. Free.
    pub fn cast<T>(self) -> Deleted<T> {
        Deleted { object: self.object.cast(), final_state: self.final_state }
    }
}

impl<K> Clone for Deleted<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), final_state: self.final_state }
    }
}

impl<K> Deref for Deleted<K> {
    type Target = Object<K>;
    fn deref(&self) -> &Object<K> {
        &self.object
    }
}

/// An event, as streams yield it and as `for_each` handlers receive it.
#[derive(Debug)]
pub enum Event<K = Untyped> {
    /// The object is new, or (`initial`) was already there when this handler registered.
    Added {
        /// The object.
        object: Object<K>,
        /// Whether the object is part of this handler's initial list.
        initial: bool,
    },
    /// The object changed. Relists repeat unchanged objects, with the same version in `old` and `new`.
    ///
    /// An object that was deleted and recreated unobserved is an update too, with different uids.
    Updated {
        /// The state that this handler last saw.
        old: Object<K>,
        /// The current state.
        new: Object<K>,
    },
    /// The object is gone, from the cluster or from this handler's filter.
    Deleted(Deleted<K>),
    /// Nothing changed, but this handler's resync period has elapsed.
    Resynced(Object<K>),
    /// The initial list has been delivered in full. Sent exactly once, even if the list was empty.
    Synced,
}

impl<K> Event<K> {
    /// Returns the object of the event (for an update, its new state), or `None` for `Synced`.
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Event::Added { object, .. } | Event::Resynced(object) => Some(object),
            Event::Updated { new, .. } => Some(new),
            Event::Deleted(deleted) => Some(&deleted.object),
            Event::Synced => None,
        }
    }

    /// Returns the key of the event's object, or `None` for `Synced`.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.object().map(Object::key)
    }

    /// Returns the same event with another object type. Free.
    pub fn cast<T>(self) -> Event<T> {
        match self {
            Event::Added { object, initial } => Event::Added { object: object.cast(), initial },
            Event::Updated { old, new } => Event::Updated { old: old.cast(), new: new.cast() },
            Event::Deleted(deleted) => Event::Deleted(deleted.cast()),
            Event::Resynced(object) => Event::Resynced(object.cast()),
            Event::Synced => Event::Synced,
        }
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Event::Added { object, initial } => {
                Event::Added { object: object.clone(), initial: *initial }
            }
            Event::Updated { old, new } => Event::Updated { old: old.clone(), new: new.clone() },
            Event::Deleted(deleted) => Event::Deleted(deleted.clone()),
            Event::Resynced(object) => Event::Resynced(object.clone()),
            Event::Synced => Event::Synced,
        }
    }
}
