//! What was read together.

use std::fmt;
use std::ops::Deref;

use super::state::Snapshot;
use crate::{Object, ResourceVersion, Untyped};

/// Objects that were read together, and the version that the cache was at. A slice, in no special
/// order, but the same in every run that is otherwise the same.
pub struct List<K = Untyped> {
    items: Vec<Object<K>>,
    version: ResourceVersion,
}

impl<K> List<K> {
    pub(crate) fn new((objects, version): Snapshot) -> Self {
        Self { items: objects.into_iter().map(Object::cast).collect(), version }
    }

    /// The version that the cache was at when these were read.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// The objects alone.
    pub fn into_vec(self) -> Vec<Object<K>> {
        self.items
    }
}

impl<K> Deref for List<K> {
    type Target = [Object<K>];
    fn deref(&self) -> &[Object<K>] {
        &self.items
    }
}

impl<K> IntoIterator for List<K> {
    type Item = Object<K>;
    type IntoIter = std::vec::IntoIter<Object<K>>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
impl<'a, K> IntoIterator for &'a List<K> {
    type Item = &'a Object<K>;
    type IntoIter = std::slice::Iter<'a, Object<K>>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// Cloning clones one `Arc` per object.
impl<K> Clone for List<K> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), version: self.version.clone() }
    }
}

/// Keys and versions; never a body.
impl<K> fmt::Debug for List<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("items", &self.items).field("version", &self.version).finish()
    }
}
