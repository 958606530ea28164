//! Indexes: the functions that compute an object's values, and the handles for lookups.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{KeepAlive, Store};
use crate::{FieldPath, List, Object, ObjectKey, Result, Untyped};

/// A handle to an index of a store. It always refers to an existing index of its own store. It keeps its
/// informer running. Cheap to clone.
///
/// An index lasts as long as its handles. When the last one is dropped, the cache stops maintaining the
/// index, and lookups by its name fail.
#[must_use = "an index goes when its last handle is dropped"]
pub struct Index<K = Untyped> {
    owner: Arc<Owner>,
    keep: KeepAlive,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> Index<K> {
    pub(crate) fn label(store: &Arc<Store>, keep: KeepAlive, label: &str) -> Self {
        Self::built_in(store, keep, format!("label:{label}").into(), Source::Label(label.into()))
    }

    pub(crate) fn field(store: &Arc<Store>, keep: KeepAlive, path: FieldPath) -> Result<Self> {
        path.steps()?;
        Ok(Self::built_in(store, keep, format!("field:{path}").into(), Source::Field(path)))
    }

    pub(crate) fn controller(store: &Arc<Store>, keep: KeepAlive) -> Self {
        Self::built_in(store, keep, CONTROLLER.into(), Source::Controller)
    }

    pub(crate) fn function<V>(
        store: &Arc<Store>,
        keep: KeepAlive,
        name: &str,
        values: impl Fn(&Object<K>) -> V + Send + Sync + 'static,
    ) -> Result<Self>
    where
        V: IntoIterator<Item: Into<Arc<str>>>,
    {
        let erased = move |object: &Object| {
            values(&object.clone().cast()).into_iter().map(Into::into).collect()
        };
        let definition = Definition::new(name.into(), Source::Function(Box::new(erased)));
        Ok(Self::of(store.add_index(definition)?, keep))
    }

    /// Adds an index whose name is reserved, so that it cannot clash.
    fn built_in(store: &Arc<Store>, keep: KeepAlive, name: Arc<str>, source: Source) -> Self {
        Self::of(store.add_built_in_index(Definition::new(name, source)), keep)
    }

    fn of(owner: Arc<Owner>, keep: KeepAlive) -> Self {
        Self { owner, keep, kind: PhantomData }
    }

    /// Returns the objects that have this value.
    pub fn get(&self, value: &str) -> List<K> {
        let Owner { store, definition } = &*self.owner;
        List::new(store.indexed(definition, value))
    }

    /// Returns the keys of the objects that have this value, sorted.
    pub fn keys(&self, value: &str) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = self.get(value).iter().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns all values that at least one object has, sorted.
    pub fn values(&self) -> Vec<Arc<str>> {
        let mut values = self.owner.store.index_values(&self.owner.definition);
        values.sort_unstable();
        values
    }

    /// Returns the objects that share a value with this one, without duplicates. The object need not be
    /// cached; if it is, and has values, the result includes it.
    pub fn matching(&self, object: &Object<K>) -> List<K> {
        let Owner { store, definition } = &*self.owner;
        let values = definition.values(&object.clone().cast());
        List::new(store.indexed_any(definition, &values))
    }

    /// Returns the name of the index, for lookups by name.
    pub fn name(&self) -> &str {
        &self.owner.definition.name
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { owner: self.owner.clone(), keep: self.keep.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.owner.definition.name).finish()
    }
}

/// Shared by all handles of an index. Dropping it removes the index.
pub(super) struct Owner {
    store: Arc<Store>,
    pub(super) definition: Arc<Definition>,
}

impl Owner {
    pub(super) fn new(store: &Arc<Store>, definition: Definition) -> Arc<Self> {
        Arc::new(Self { store: store.clone(), definition: Arc::new(definition) })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.store.remove_index(&self.definition);
    }
}

/// The name of an index, and the source of its values.
pub(super) struct Definition {
    pub(super) name: Arc<str>,
    source: Source,
    panics: AtomicU64,
}

/// The source of an object's values.
pub(super) enum Source {
    Label(Arc<str>),
    Field(FieldPath),
    Controller,
    Function(IndexFn),
}

/// A user function, with the type of its objects erased.
type IndexFn = Box<dyn Fn(&Object) -> Vec<Arc<str>> + Send + Sync>;

/// The name of the index that every store has.
pub(super) const NAMESPACE: &str = "namespace";
const CONTROLLER: &str = "controller";

impl Definition {
    pub(super) fn new(name: Arc<str>, source: Source) -> Self {
        Self { name, source, panics: AtomicU64::new(0) }
    }

    /// Returns whether this is a function under a name that is reserved for built-in indexes.
    pub(super) fn takes_built_in_name(&self) -> bool {
        let built_in = matches!(&*self.name, NAMESPACE | CONTROLLER)
            || ["label:", "field:"].iter().any(|prefix| self.name.starts_with(prefix));
        built_in && matches!(self.source, Source::Function(_))
    }

    /// Returns the values of an object, sorted and without duplicates. No other place calls user functions, and
    /// callers hold no lock.
    pub(super) fn values(&self, object: &Object) -> Vec<Arc<str>> {
        let mut values = match &self.source {
            Source::Label(label) => {
                object.labels().get(label).map(Into::into).into_iter().collect()
            }
            Source::Field(path) => object.index_values(path),
            Source::Controller => {
                object.controller().map(|owner| owner.uid.into()).into_iter().collect()
            }
            Source::Function(function) => self.contained(function, object),
        };
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Calls a user function. An object for which it panics has no values.
    fn contained(&self, function: &IndexFn, object: &Object) -> Vec<Arc<str>> {
        catch_unwind(AssertUnwindSafe(|| function(object))).unwrap_or_else(|_| {
            // The panic message is left out, because it may quote the object.
            if self.panics.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::error!(
                    index = &*self.name,
                    object = %object.key(),
                    "the function of this index panicked; objects for which it does are not in the \
                     index (said once, counted from now on)"
                );
            }
            Vec::new()
        })
    }

    /// Returns how many times the function has panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Returns whether both indexes have the same source. No two functions are the same.
    pub(super) fn is_same(&self, other: &Definition) -> bool {
        match (&self.source, &other.source) {
            (Source::Label(ours), Source::Label(theirs)) => ours == theirs,
            (Source::Field(ours), Source::Field(theirs)) => ours == theirs,
            (Source::Controller, Source::Controller) => true,
            _ => false,
        }
    }
}

/// An object's values in several indexes, in the order of the indexes.
#[derive(Default)]
pub(super) struct Asked(Vec<Vec<Arc<str>>>);

impl Asked {
    /// Computes the values for the indexes that are not in `before`: a function is called once per state.
    pub(super) fn ask(
        &mut self,
        object: &Object,
        before: &[Arc<Definition>],
        now: &[Arc<Definition>],
    ) {
        let mut known = std::mem::take(&mut self.0);
        let mut known = |definition| {
            let at = before.iter().position(|other| Arc::ptr_eq(other, definition))?;
            known.get_mut(at).map(std::mem::take)
        };
        let values = |definition| known(definition).unwrap_or_else(|| definition.values(object));
        self.0 = now.iter().map(values).collect();
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Vec<Arc<str>>> {
        self.0.into_iter()
    }
}
