//! The store and its indexes, under one lock, written by one task.
//!
//! - Readers only clone `Arc`s under the lock. Each call returns a consistent snapshot, with its version.
//! - User functions are never called with the lock held.
//! - Nothing observable depends on the order of a randomly seeded map.

mod alive;
mod applied;
mod index;
mod parts;
mod postings;
mod state;
mod store;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::reflector::ReflectorStore;
use crate::{
    Deleted, Delta, Deltas, Error, Event, FieldPath, FinalState, Object, ObjectKey,
    ResourceVersion, Result, Untyped,
};

pub(crate) use alive::Alive;
pub(crate) use applied::{Applied, Listed};
pub use index::Index;
pub(crate) use state::{Accept, Snapshot};
pub(crate) use store::{Batch, Store};

/// Held by a handle to keep its informer running. `None` for a standalone store.
pub(crate) type KeepAlive = Option<Arc<Alive>>;

/// A standalone store, which a reflector can fill without an informer.
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
    /// Creates an empty store. The namespace index is built in.
    pub fn new() -> Self {
        Self { store: Store::new(), kind: PhantomData }
    }

    /// Returns an index by the value of a label. A second call with the same label returns the same index.
    pub fn index_by_label(&self, label: &str) -> Index<K> {
        Index::label(&self.store, None, label)
    }

    /// Returns an index by a field (`"spec.nodeName"`, `"spec.containers[*].image"`), which is read without
    /// decoding the whole object. Fails if the path is invalid.
    pub fn index_by_field(&self, path: impl Into<FieldPath>) -> Result<Index<K>> {
        Index::field(&self.store, None, path.into())
    }

    /// Returns an index by the uid of the object's controller.
    pub fn index_by_controller(&self) -> Index<K> {
        Index::controller(&self.store, None)
    }

    /// Returns an index by a function that returns an `Option`, an array or a `Vec` of owned values.
    ///
    /// Fails if another index has this name. An object for which the function panics has no values.
    pub fn index_by<V>(
        &self,
        name: &str,
        values: impl Fn(&Object<K>) -> V + Send + Sync + 'static,
    ) -> Result<Index<K>>
    where
        V: IntoIterator<Item: Into<Arc<str>>>,
    {
        Index::function(&self.store, None, name, values)
    }

    /// Stores an object, replacing the one with the same key, even if that one is newer.
    pub fn put(&mut self, object: Object<K>) {
        self.write(vec![Delta::Updated(object.cast())], Accept::Any);
    }

    /// Removes an object. The version stays as it is, since the version of the removal is unknown.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object<K>> {
        let object = self.store.get(key.into())?;
        let deleted = Deleted { object, final_state: FinalState::Unknown };
        match self.write(vec![Delta::Deleted(deleted)], Accept::Any).pop()? {
            Applied::Deleted(deleted) => Some(deleted.object.cast()),
            _ => None,
        }
    }

    /// Applies changes that were popped from a queue, and returns the events that a handler should receive, in
    /// order. The counterpart of client-go's `processDeltas`.
    ///
    /// This does the same as an informer. The store, not the type of the change, decides whether an object is
    /// added or updated. A whole list is written at once: its deletes come first, then the changed objects,
    /// the new ones and the unchanged ones. The first list is followed by [`Event::Synced`]. A state that is
    /// older than the stored one changes nothing, and bookmarks only advance the version. When this returns,
    /// the store contains every change that the events describe.
    ///
    /// ```
    /// use kube_informer::{Delta, Deltas, Event, Indexer, Object, Untyped};
    ///
    /// let mut pods = Indexer::<Untyped>::new();
    /// let pod = Object::from_json(r#"{"metadata": {"namespace": "shop", "name": "web-0"}}"#)?;
    /// let events = pods.process(Deltas { deltas: vec![Delta::Updated(pod)], initial: false });
    /// assert!(matches!(events[..], [Event::Added { initial: false, .. }]));
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn process(&mut self, deltas: Deltas) -> Vec<Event<K>> {
        let Deltas { deltas, initial } = deltas;
        let events = applied::events(self.write(deltas, Accept::Newer), initial);
        events.into_iter().map(Event::cast).collect()
    }

    /// Returns the version of the store; empty before there is one.
    pub fn resource_version(&self) -> ResourceVersion {
        self.store.resource_version()
    }

    fn write(&mut self, deltas: Vec<Delta>, accept: Accept) -> Vec<Applied> {
        let batches = Batch::of(deltas);
        batches.flat_map(|batch| self.store.write(0, batch, accept, || ()).0.applied).collect()
    }
}

impl<K: 'static> Default for Indexer<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows the number of objects and the version, but no object.
impl<K> fmt::Debug for Indexer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.store.resource_version();
        let mut indexer = f.debug_struct("Indexer");
        indexer.field("len", &self.store.len()).field("version", &version).finish_non_exhaustive()
    }
}

/// A watch may repeat itself or be late: unlike with [`Indexer::put`], the same state or an older one changes
/// nothing.
impl<K: 'static> ReflectorStore for Indexer<K> {
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()> {
        self.write(vec![Delta::ReplacedAll { objects, unreadable, version }], Accept::Newer);
        Ok(())
    }

    fn add(&mut self, object: Object) -> Result<()> {
        self.write(vec![Delta::Added(object)], Accept::Newer);
        Ok(())
    }

    fn update(&mut self, object: Object) -> Result<()> {
        self.write(vec![Delta::Updated(object)], Accept::Newer);
        Ok(())
    }

    fn delete(&mut self, object: Object) -> Result<()> {
        self.write(
            vec![Delta::Deleted(Deleted { object, final_state: FinalState::Known })],
            Accept::Newer,
        );
        Ok(())
    }

    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        self.write(vec![Delta::Bookmark(version)], Accept::Newer);
        Ok(())
    }

    fn unreadable(&mut self, error: Error, version: ResourceVersion, deleted: bool) -> Result<()> {
        self.write(vec![Delta::Unreadable { error, version, deleted }], Accept::Newer);
        Ok(())
    }

    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.store.get(key.into())
    }
}

#[cfg(test)]
mod tests;
