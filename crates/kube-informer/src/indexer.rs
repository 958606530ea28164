//! The store and its indexes, under one lock, written by one task.
//!
//! - Readers clone `Arc`s under the lock and do nothing else there; what one call gives is from one
//!   moment, with the version of that moment.
//! - Functions of users are never called under the lock.
//! - Nothing that can be seen depends on the order of a randomly seeded map.

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

/// What a handle holds so that its informer goes on running; nothing in a store of one's own.
pub(crate) type KeepAlive = Option<Arc<Alive>>;

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

    /// An index by a field (`"spec.nodeName"`, `"spec.containers[*].image"`), read from the bytes. A
    /// path that cannot be read is an error.
    pub fn index_by_field(&self, path: impl Into<FieldPath>) -> Result<Index<K>> {
        Index::field(&self.store, None, path.into())
    }

    /// An index by the uid of the controller that owns the object.
    pub fn index_by_controller(&self) -> Index<K> {
        Index::controller(&self.store, None)
    }

    /// An index by any function that gives an `Option`, an array or a `Vec` of values, owned ones.
    ///
    /// A name that another index has is an error. An object for which the function panics has no
    /// values.
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

    /// Puts an object in, in place of the one that has its key, also if that one is newer.
    pub fn put(&mut self, object: Object<K>) {
        self.write(vec![Delta::Updated(object.cast())], Accept::Any);
    }

    /// Takes an object out. The version stays: nothing says at which one it went.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object<K>> {
        let object = self.store.get(key.into())?;
        let deleted = Deleted { object, final_state: FinalState::Unknown };
        match self.write(vec![Delta::Deleted(deleted)], Accept::Any).pop()? {
            Applied::Deleted(deleted) => Some(deleted.object.cast()),
            _ => None,
        }
    }

    /// Applies changes that were popped from a queue, and returns the events that a handler is to
    /// receive, in order (client-go's `processDeltas`).
    ///
    /// It does what an informer does. The store, not the kind of a change, decides whether an object is
    /// added or updated. Of a whole list, which is written at once, the deletes come first, then the
    /// objects that changed, those that are new and those that are as they were; after the first one
    /// comes [`Event::Synced`]. A state that is older than the stored one changes nothing, and bookmarks
    /// move only the version. When this returns, the store has every change that the events tell of.
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

    /// The version that the store is at; empty before there is one.
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
