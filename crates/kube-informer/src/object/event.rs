//! What happened to an object.

use std::ops::Deref;

use super::{Object, Untyped};
use crate::ObjectKey;

/// An object that is gone, and how much we know about its end. Reads like the object itself.
#[derive(Debug)]
pub struct Deleted<K = Untyped> {
    /// The last state that we know of.
    pub object: Object<K>,
    /// Whether that was its last state.
    pub final_state: FinalState,
}

/// How a delete was learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinalState {
    /// The delete was seen: the object is as it was when it went.
    Known,
    /// The delete was missed and found out by a relist: the object may be stale. client-go calls
    /// this a tombstone, `DeletedFinalStateUnknown`.
    Unknown,
}

impl<K> Deleted<K> {
    /// The same about an object of another type; free.
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

/// What happened, as a value: what streams yield and `for_each` handlers get.
#[derive(Debug)]
pub enum Event<K = Untyped> {
    /// The object is new, or (`initial`) was there when this handler came.
    Added {
        /// The object.
        object: Object<K>,
        /// Part of the initial list of this handler.
        initial: bool,
    },
    /// The object changed. Relists repeat unchanged objects, with `old` the same version as `new`.
    ///
    /// An object that was deleted and made again while nobody looked is an update too, with
    /// different uids.
    Updated {
        /// As this handler last saw it.
        old: Object<K>,
        /// As it is now.
        new: Object<K>,
    },
    /// The object is gone, from the cluster or out of this handler's filter.
    Deleted(Deleted<K>),
    /// Nothing changed; the resync period of this handler is over.
    Resynced(Object<K>),
    /// The initial list has been delivered in full. Exactly once, also when it was empty.
    Synced,
}

impl<K> Event<K> {
    /// The object it is about (the new state of an update); none for `Synced`.
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Event::Added { object, .. } | Event::Resynced(object) => Some(object),
            Event::Updated { new, .. } => Some(new),
            Event::Deleted(deleted) => Some(&deleted.object),
            Event::Synced => None,
        }
    }

    /// The key of the object it is about; none for `Synced`.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.object().map(Object::key)
    }

    /// The same event about objects of another type; free.
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
