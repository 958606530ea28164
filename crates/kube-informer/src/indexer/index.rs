//! Handles of indexes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::definition::{Definition, Source};
use super::{KeepAlive, List, Store};
use crate::{FieldPath, Object, ObjectKey, Untyped};

/// An index of a store: ask it. It cannot name an index that does not exist, nor another store's.
/// Keeps its informer running. Cheap to clone.
pub struct Index<K = Untyped> {
    store: Arc<Store>,
    id: usize,
    definition: Arc<Definition>,
    keep: KeepAlive,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> Index<K> {
    pub(crate) fn label(store: &Arc<Store>, keep: KeepAlive, label: &str) -> Self {
        Self::add(store, keep, format!("label:{label}").into(), Source::Label(label.into()))
    }

    pub(crate) fn field(store: &Arc<Store>, keep: KeepAlive, path: FieldPath) -> Self {
        Self::add(store, keep, format!("field:{path}").into(), Source::Field(path))
    }

    pub(crate) fn controller(store: &Arc<Store>, keep: KeepAlive) -> Self {
        Self::add(store, keep, "controller".into(), Source::Controller)
    }

    pub(crate) fn function<V>(
        store: &Arc<Store>,
        keep: KeepAlive,
        name: &str,
        values: impl Fn(&Object<K>) -> V + Send + Sync + 'static,
    ) -> Self
    where
        V: IntoIterator<Item: Into<Arc<str>>>,
    {
        let erased = move |object: &Object| {
            values(&object.clone().cast()).into_iter().map(Into::into).collect()
        };
        Self::add(store, keep, name.into(), Source::Function(Box::new(erased)))
    }

    fn add(store: &Arc<Store>, keep: KeepAlive, name: Arc<str>, source: Source) -> Self {
        let (id, definition) = store.add_index(name, source);
        Self { store: store.clone(), id, definition, keep, kind: PhantomData }
    }

    /// The objects that have this value.
    pub fn get(&self, value: &str) -> List<K> {
        List::new(self.store.indexed(self.id, value))
    }

    /// The keys of the objects that have this value, sorted.
    pub fn keys(&self, value: &str) -> Vec<ObjectKey> {
        let (objects, _) = self.store.indexed(self.id, value);
        let mut keys: Vec<_> = objects.iter().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// All values that some object has, sorted.
    pub fn values(&self) -> Vec<Arc<str>> {
        let mut values = self.store.index_values(self.id);
        values.sort_unstable();
        values
    }

    /// The objects that have a value in common with this one, each once. It need not be in the
    /// cache; if it is, and has values, it is among them.
    pub fn matching(&self, object: &Object<K>) -> List<K> {
        let values = self.definition.values(&object.clone().cast());
        List::new(self.store.indexed_any(self.id, &values))
    }

    /// The name for lookups by name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            id: self.id,
            definition: self.definition.clone(),
            keep: self.keep.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.definition.name).finish()
    }
}
