//! Changes to a store.

use std::ops::Deref;

use crate::{Deleted, Error, Object, ObjectKey, ResourceVersion};

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
        /// Items of the list that could not be kept.
        unreadable: Vec<Error>,
        /// The version of the list.
        version: ResourceVersion,
    },
    /// A resync: tells handlers again about an object that a store has. It changes no store.
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

    /// The key of the object that it is about, also of one that could not be kept if its key could be
    /// read; none for lists and bookmarks.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Delta::Unreadable { error, .. } => error.key(),
            _ => self.object().map(Object::key),
        }
    }

    /// The keys that it is about: its own, or those of a list.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        let (objects, unreadable) = match self {
            Delta::ReplacedAll { objects, unreadable, .. } => (&objects[..], &unreadable[..]),
            _ => Default::default(),
        };
        let listed = objects.iter().map(Object::key);
        listed.chain(unreadable.iter().filter_map(Error::key)).chain(self.key())
    }

    /// The part of it that is about a key: itself, or the entries of a list that have the key.
    pub(crate) fn about(&self, key: &ObjectKey) -> Vec<Delta> {
        let Delta::ReplacedAll { objects, unreadable, version } = self else {
            return Vec::from_iter((self.key() == Some(key)).then(|| self.clone()));
        };
        let objects = objects.iter().filter(|object| object.key() == key);
        let unreadable = unreadable.iter().filter(|error| error.key() == Some(key));
        let unreadable = unreadable.map(|error| Delta::Unreadable {
            error: error.clone(),
            version: version.clone(),
            deleted: false,
        });
        objects.cloned().map(Delta::Replaced).chain(unreadable).collect()
    }

    /// The object that it puts into a store.
    pub(crate) fn put(&self) -> Option<&Object> {
        self.object().filter(|_| !matches!(self, Delta::Deleted(_) | Delta::Sync(_)))
    }
}

/// Changes that were popped from a [`DeltaFifo`](crate::DeltaFifo) together: one, a batch, or all
/// changes of one key. Reads like a slice.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    /// The changes, oldest first.
    pub deltas: Vec<Delta>,
    /// Whether they belong to the first list: the queue had not synced before they were popped
    /// (client-go's `isInInitialList`).
    pub initial: bool,
}

impl Deref for Deltas {
    type Target = [Delta];
    fn deref(&self) -> &[Delta] {
        &self.deltas
    }
}

impl IntoIterator for Deltas {
    type Item = Delta;
    type IntoIter = std::vec::IntoIter<Delta>;
    fn into_iter(self) -> Self::IntoIter {
        self.deltas.into_iter()
    }
}

impl<'a> IntoIterator for &'a Deltas {
    type Item = &'a Delta;
    type IntoIter = std::slice::Iter<'a, Delta>;
    fn into_iter(self) -> Self::IntoIter {
        self.deltas.iter()
    }
}
