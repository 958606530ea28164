//! The store and its indexes, under one lock, written by one task.
//!
//! - Readers clone `Arc`s under the lock and do nothing else there; what one call gives is from one
//!   moment, with the version of that moment.
//! - Functions of users are never called under the lock.
//! - Nothing that can be seen depends on the order of a randomly seeded map.

mod change;
mod definition;
mod index;
mod list;
mod parts;
mod plan;
mod postings;
mod slab;
mod state;
mod store;
mod values;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::reflector::ReflectorStore;
use crate::{
    Deleted, Error, FieldPath, FinalState, Object, ObjectKey, ResourceVersion, Result, Untyped,
};

pub(crate) use change::{Applied, Change, Difference};
pub use index::Index;
pub use list::List;
pub(crate) use state::Snapshot;
pub(crate) use store::Store;

/// What a handle holds so that its informer goes on running; nothing in a store of one's own.
pub(crate) type KeepAlive = Option<Arc<dyn Any + Send + Sync>>;

/// A store of one's own: what a reflector can fill without an informer.
///
/// ```
/// use kube_informer::{Indexer, Object};
///
/// let mut pods = Indexer::<kube_informer::Untyped>::new();
/// let by_app = pods.index_by_label("app");
/// pods.put(Object::from_json(
///     r#"{"metadata": {"namespace": "shop", "name": "web-0", "labels": {"app": "web"}}}"#,
/// )?);
/// assert_eq!(by_app.get("web")[0].key().to_string(), "shop/web-0");
/// assert!(pods.lister().get(("shop", "web-0")).is_some());
/// # Ok::<(), kube_informer::Error>(())
/// ```
pub struct Indexer<K = Untyped> {
    pub(crate) store: Arc<Store>,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> Indexer<K> {
    /// An empty store; the namespace index is built in.
    pub fn new() -> Self {
        Self { store: Store::new(), kind: PhantomData }
    }

    /// An index by the value of a label. Asking twice gives the same index.
    pub fn index_by_label(&self, label: &str) -> Index<K> {
        Index::label(&self.store, None, label)
    }

    /// An index by a field (`"spec.nodeName"`, `"spec.containers[*].image"`), read from the bytes.
    pub fn index_by_field(&self, path: impl Into<FieldPath>) -> Index<K> {
        Index::field(&self.store, None, path.into())
    }

    /// An index by the uid of the controller that owns the object.
    pub fn index_by_controller(&self) -> Index<K> {
        Index::controller(&self.store, None)
    }

    /// An index by any function that gives an `Option`, an array or a `Vec` of values, owned ones.
    ///
    /// The handle is the index: a name that is taken is no conflict, it only hides the newer one
    /// from lookups by name. An object for which the function panics has no values.
    pub fn index_by<V>(
        &self,
        name: &str,
        values: impl Fn(&Object<K>) -> V + Send + Sync + 'static,
    ) -> Index<K>
    where
        V: IntoIterator<Item: Into<Arc<str>>>,
    {
        Index::function(&self.store, None, name, values)
    }

    /// Puts an object in, in place of the one that has its key, also if that one is newer.
    pub fn put(&mut self, object: Object<K>) {
        self.store.put(object.cast());
    }

    /// Takes an object out.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object<K>> {
        self.store.remove(key.into()).map(Object::cast)
    }

    /// The version that the store is at; empty before there is one.
    pub fn resource_version(&self) -> ResourceVersion {
        self.store.resource_version()
    }

    fn apply(&mut self, change: Change) {
        self.store.apply(vec![change]);
    }
}

impl<K: 'static> Default for Indexer<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// How many objects, and the version; no object.
impl<K> fmt::Debug for Indexer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.store.resource_version();
        let mut indexer = f.debug_struct("Indexer");
        indexer.field("len", &self.store.len()).field("version", &version).finish_non_exhaustive()
    }
}

/// A watch repeats itself and can be late: the same state again and an older state change nothing,
/// unlike with [`Indexer::put`].
impl<K: 'static> ReflectorStore for Indexer<K> {
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()> {
        let keep: Vec<_> = unreadable.iter().filter_map(|error| error.key().cloned()).collect();
        self.store.replace(objects, &keep, &version);
        self.store.set_synced();
        Ok(())
    }

    fn add(&mut self, object: Object) -> Result<()> {
        self.apply(Change::Put(object));
        Ok(())
    }

    fn update(&mut self, object: Object) -> Result<()> {
        self.apply(Change::Put(object));
        Ok(())
    }

    fn delete(&mut self, object: Object) -> Result<()> {
        self.apply(Change::Delete(Deleted { object, final_state: FinalState::Known }));
        Ok(())
    }

    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        self.apply(Change::Bookmark(version));
        Ok(())
    }

    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.store.get(key.into())
    }

    /// What is gone is gone, readable or not; what is there stays as it was when it could be read.
    fn unreadable(&mut self, error: Error, version: ResourceVersion, deleted: bool) -> Result<()> {
        if let Some(key) = error.key().filter(|_| deleted) {
            self.store.remove(key.into());
        }
        self.bookmark(version)
    }
}

#[cfg(test)]
mod tests;
