//! Read views of a store: cheap to clone, never blocking on the network.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use crate::indexer::{KeepAlive, Snapshot, Store};
use crate::{Indexer, KeyRef, Object, ObjectKey, ResourceVersion, Result, Selector, Untyped};

/// Reads a cache. Keeps its informer running. Cheap to clone.
///
/// Objects are the cached instances: shared, and immutable by type.
pub struct Lister<K = Untyped> {
    store: Arc<Store>,
    keep: KeepAlive,
    kind: PhantomData<fn() -> K>,
}

impl<K> Lister<K> {
    pub(crate) fn new(store: Arc<Store>, keep: KeepAlive) -> Self {
        Self { store, keep, kind: PhantomData }
    }

    /// An object by `&key`, `("namespace", "name")`, `"namespace/name"` or, cluster-scoped, `"name"`.
    pub fn get<'a>(&self, key: impl Into<KeyRef<'a>>) -> Option<Object<K>> {
        self.store.get(key.into()).map(Object::cast)
    }

    /// All objects.
    pub fn list(&self) -> List<K> {
        List::new(self.store.snapshot())
    }

    /// All objects that a label selector matches.
    pub fn select(&self, selector: &Selector) -> List<K> {
        List::new(select(&self.store, selector, || self.store.snapshot()))
    }

    /// One namespace of it; an empty name is all of them.
    pub fn namespace(&self, namespace: impl AsRef<str>) -> NamespaceLister<K> {
        NamespaceLister { lister: self.clone(), namespace: namespace.as_ref().into() }
    }

    /// By the name of an index; an [`Index`](crate::Index) handle cannot fail. The namespace index,
    /// which every cache has, is called `namespace`.
    pub fn by_index(&self, index: &str, value: &str) -> Result<List<K>> {
        self.store.by_index(index, value).map(List::new)
    }

    /// All keys.
    pub fn keys(&self) -> Vec<ObjectKey> {
        keys(&self.store.snapshot())
    }

    /// How many objects.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// No objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is in. Before that, absence means nothing.
    pub fn has_synced(&self) -> bool {
        self.store.has_synced()
    }

    /// The version that the cache is at: what is read after this is at least as new.
    pub fn resource_version(&self) -> ResourceVersion {
        self.store.resource_version()
    }

    /// The same cache under another type.
    pub fn cast<T>(self) -> Lister<T> {
        Lister::new(self.store, self.keep)
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self::new(self.store.clone(), self.keep.clone())
    }
}

/// How many objects, and the version; no object.
impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version();
        let mut lister = f.debug_struct("Lister");
        lister.field("len", &self.len()).field("version", &version).finish_non_exhaustive()
    }
}

impl<K: 'static> Indexer<K> {
    /// A read view.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.store.clone(), None)
    }
}

/// Reads one namespace of a cache. Cheap to clone.
pub struct NamespaceLister<K = Untyped> {
    lister: Lister<K>,
    namespace: Arc<str>,
}

impl<K> NamespaceLister<K> {
    /// An object by its name.
    pub fn get(&self, name: impl AsRef<str>) -> Option<Object<K>> {
        self.lister.get((&*self.namespace, name.as_ref()))
    }

    /// All objects.
    pub fn list(&self) -> List<K> {
        List::new(self.read())
    }

    /// All objects that a label selector matches.
    pub fn select(&self, selector: &Selector) -> List<K> {
        List::new(select(&self.lister.store, selector, || self.read()))
    }

    /// All keys.
    pub fn keys(&self) -> Vec<ObjectKey> {
        keys(&self.read())
    }

    /// How many objects.
    pub fn len(&self) -> usize {
        match &*self.namespace {
            "" => self.lister.len(),
            namespace => self.lister.store.namespace_len(namespace),
        }
    }

    /// No objects.
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

/// What a selector matches of what is read. Labels are looked at without the lock, and only if it
/// depends on them.
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
