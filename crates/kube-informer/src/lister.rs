//! Read views of a store: cheap to clone, and never waiting for the network.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use crate::indexer::{KeepAlive, Snapshot, Store};
use crate::{Indexer, KeyRef, Object, ObjectKey, ResourceVersion, Result, Selector, Untyped};

/// A read view of a cache. It keeps its informer running. Cheap to clone.
///
/// The objects that it returns are the cached ones: shared, and immutable by type.
pub struct Lister<K = Untyped> {
    store: Arc<Store>,
    keep: KeepAlive,
    kind: PhantomData<fn() -> K>,
}

impl<K> Lister<K> {
    pub(crate) fn new(store: Arc<Store>, keep: KeepAlive) -> Self {
        Self { store, keep, kind: PhantomData }
    }

    /// Returns an object by `&key`, `("namespace", "name")`, `"namespace/name"` or, if cluster-scoped,
    /// `"name"`.
    pub fn get<'a>(&self, key: impl Into<KeyRef<'a>>) -> Option<Object<K>> {
        self.store.get(key.into()).map(Object::cast)
    }

    /// Returns all objects.
    pub fn list(&self) -> List<K> {
        List::new(self.store.snapshot())
    }

    /// Returns all objects that match a label selector.
    pub fn select(&self, selector: &Selector) -> List<K> {
        List::new(select(&self.store, selector, || self.store.snapshot()))
    }

    /// Returns a view of one namespace, or of all namespaces if the name is empty.
    pub fn namespace(&self, namespace: impl AsRef<str>) -> NamespaceLister<K> {
        NamespaceLister { lister: self.clone(), namespace: namespace.as_ref().into() }
    }

    /// Returns the objects with a value in an index that is given by name. An [`Index`](crate::Index) handle
    /// does the same and cannot fail. The built-in namespace index, which every cache has, is called
    /// `namespace`.
    pub fn by_index(&self, index: &str, value: &str) -> Result<List<K>> {
        self.store.by_index(index, value).map(List::new)
    }

    /// Returns the keys of all objects.
    pub fn keys(&self) -> Vec<ObjectKey> {
        keys(&self.store.snapshot())
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the first list is complete. Before that, the absence of an object means nothing.
    pub fn has_synced(&self) -> bool {
        self.store.has_synced()
    }

    /// Returns the version of the cache. Later reads are at least as new.
    pub fn resource_version(&self) -> ResourceVersion {
        self.store.resource_version()
    }

    /// Returns the same cache with another object type.
    pub fn cast<T>(self) -> Lister<T> {
        Lister::new(self.store, self.keep)
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self::new(self.store.clone(), self.keep.clone())
    }
}

/// Shows the number of objects and the version, but no object.
impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version();
        let mut lister = f.debug_struct("Lister");
        lister.field("len", &self.len()).field("version", &version).finish_non_exhaustive()
    }
}

impl<K: 'static> Indexer<K> {
    /// Returns a read view of this store.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.store.clone(), None)
    }
}

/// A read view of one namespace of a cache. Cheap to clone.
pub struct NamespaceLister<K = Untyped> {
    lister: Lister<K>,
    namespace: Arc<str>,
}

impl<K> NamespaceLister<K> {
    /// Returns an object by its name.
    pub fn get(&self, name: impl AsRef<str>) -> Option<Object<K>> {
        self.lister.get((&*self.namespace, name.as_ref()))
    }

    /// Returns all objects in the namespace.
    pub fn list(&self) -> List<K> {
        List::new(self.read())
    }

    /// Returns all objects in the namespace that match a label selector.
    pub fn select(&self, selector: &Selector) -> List<K> {
        List::new(select(&self.lister.store, selector, || self.read()))
    }

    /// Returns the keys of all objects in the namespace.
    pub fn keys(&self) -> Vec<ObjectKey> {
        keys(&self.read())
    }

    /// Returns the number of objects in the namespace.
    pub fn len(&self) -> usize {
        match &*self.namespace {
            "" => self.lister.len(),
            namespace => self.lister.store.namespace_len(namespace),
        }
    }

    /// Returns whether the namespace has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(&self) -> Snapshot {
        match &*self.namespace {
            "" => self.lister.store.snapshot(),
            namespace => self.lister.store.namespace(namespace),
        }
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), namespace: self.namespace.clone() }
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lister = f.debug_struct("NamespaceLister");
        lister.field("namespace", &self.namespace).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Objects that were read together, with the version of the cache at that time. Dereferences to a slice. The
/// order is unspecified, but the same in every run that is otherwise the same.
pub struct List<K = Untyped> {
    items: Vec<Object<K>>,
    version: ResourceVersion,
}

impl<K> List<K> {
    pub(crate) fn new((objects, version): Snapshot) -> Self {
        Self { items: objects.into_iter().map(Object::cast).collect(), version }
    }

    /// Returns the version of the cache when the objects were read.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Returns the objects without the version.
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

/// Clones one `Arc` per object.
impl<K> Clone for List<K> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), version: self.version.clone() }
    }
}

/// Shows keys and versions, never a body.
impl<K> fmt::Debug for List<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("items", &self.items).field("version", &self.version).finish()
    }
}

/// Returns the objects of a snapshot that a selector matches. Labels are read without the lock, and only if the
/// selector depends on them.
fn select(store: &Store, selector: &Selector, read: impl FnOnce() -> Snapshot) -> Snapshot {
    if selector.is_nothing() {
        return (Vec::new(), store.resource_version());
    }
    let (mut objects, version) = read();
    if !selector.is_everything() {
        objects.retain(|object| selector.matches(object.labels()));
    }
    (objects, version)
}

fn keys((objects, _): &Snapshot) -> Vec<ObjectKey> {
    objects.iter().map(|object| object.key().clone()).collect()
}

#[cfg(test)]
mod tests;
