//! Changes to a store.

use std::ops::Deref;

use crate::{Deleted, Error, Object, ObjectKey, ResourceVersion};

/// A change to a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delta {
    /// An object that a watch reported as added.
    Added(Object),
    /// An object that a watch reported as modified.
    Updated(Object),
    /// An object that a watch reported as deleted, or that a list no longer contains.
    Deleted(Deleted),
    /// An object of a list.
    Replaced(Object),
    /// A whole list; the in-order discipline has this instead of many `Replaced`.
    ReplacedAll {
        /// The objects.
        objects: Vec<Object>,
        /// Items of the list that could not be stored.
        unreadable: Vec<Error>,
        /// The version of the list.
        version: ResourceVersion,
    },
    /// A resync: notifies handlers again of an object in the store. The store does not change.
    Sync(Object),
    /// The version has advanced.
    Bookmark(ResourceVersion),
    /// An object that could not be stored.
    Unreadable {
        /// The reason, with the object's key if it is known.
        error: Error,
        /// The version of the object.
        version: ResourceVersion,
        /// Whether the object was deleted.
        deleted: bool,
    },
}

impl Delta {
    /// Returns the object that changed; `None` for lists, bookmarks and objects that could not be
    /// stored.
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

    /// Returns the key of the object that changed, even if it could not be stored, provided that its key could
    /// be read; `None` for lists and bookmarks.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Delta::Unreadable { error, .. } => error.key(),
            _ => self.object().map(Object::key),
        }
    }

    /// Returns the keys of all objects that changed, including those of a list.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        let (objects, unreadable) = match self {
            Delta::ReplacedAll { objects, unreadable, .. } => (&objects[..], &unreadable[..]),
            _ => Default::default(),
        };
        let listed = objects.iter().map(Object::key);
        listed.chain(unreadable.iter().filter_map(Error::key)).chain(self.key())
    }

    /// Returns the changes of one key: this one, or the list's entries with that key.
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

    /// Returns the object that a store has after this change.
    pub(crate) fn put(&self) -> Option<&Object> {
        self.object().filter(|_| !matches!(self, Delta::Deleted(_) | Delta::Sync(_)))
    }
}

/// Changes that were popped from a [`DeltaFifo`](crate::DeltaFifo) together: a single one, a batch,
/// or all changes of one key. Dereferences to a slice.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    /// The changes, oldest first.
    pub deltas: Vec<Delta>,
    /// Whether they belong to the first list: the queue had not synced when they were popped
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
