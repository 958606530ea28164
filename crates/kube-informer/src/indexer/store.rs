//! The store: one lock, one writer, any number of readers.
//!
//! User functions are called before the lock is taken, and objects that are no longer needed are dropped
//! after it is released.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashSet;
use parking_lot::RwLock;

use super::index::{Asked, Definition, NAMESPACE, Owner};
use super::parts::Parts;
use super::state::{Accept, Place, Plan, Settled, Snapshot, State, Written};
use crate::error::Cause;
use crate::{Delta, Error, KeyRef, Object, ObjectKey, ResourceVersion, Result};

/// Changes that are written in one step.
pub(crate) enum Batch {
    /// Changes, in order.
    Deltas(Vec<Delta>),
    /// The whole content of a part. Objects with the keys in `keep` are in the list but could not be read:
    /// they stay as they are. If several objects have the same key, the last one counts.
    List { objects: Vec<Object>, keep: Vec<ObjectKey>, version: ResourceVersion },
}

impl Batch {
    /// Splits deltas into as few batches as possible, in order. A list is a batch of its own.
    pub(crate) fn of(deltas: Vec<Delta>) -> impl Iterator<Item = Self> {
        let mut rest = deltas;
        let is_list = |delta: &Delta| matches!(delta, Delta::ReplacedAll { .. });
        std::iter::from_fn(move || {
            // Nearly always all of them: a queue in strict order returns a list alone.
            let end = rest.iter().position(is_list).unwrap_or(rest.len()).max(1);
            let after = rest.split_off(end.min(rest.len()));
            let mut run = std::mem::replace(&mut rest, after);
            match run.pop()? {
                Delta::ReplacedAll { objects, unreadable, version } => {
                    let keep = unreadable.iter().filter_map(|error| error.key().cloned()).collect();
                    Some(Batch::List { objects, keep, version })
                }
                last => {
                    run.push(last);
                    Some(Batch::Deltas(run))
                }
            }
        })
    }
}

/// A batch, with its values for the indexes.
struct Prepared {
    part: usize,
    accept: Accept,
    /// The indexes whose values were computed.
    asked: Vec<Arc<Definition>>,
    work: Work,
}

enum Work {
    /// Without any indexes, the values are left out.
    Deltas(Vec<Delta>, Vec<Asked>),
    List {
        list: Vec<(Object, Asked)>,
        keep: Vec<ObjectKey>,
        version: ResourceVersion,
        plan: Plan,
    },
}

/// The objects of one informer and their indexes. Without a type parameter, so that it is compiled once.
///
/// Designed for one writer. With two, each write would still be atomic, in the order in which they take the
/// lock.
#[derive(Default)]
pub(crate) struct Store {
    state: RwLock<State>,
}

impl Store {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Creates a store whose content is listed and watched per namespace.
    pub(crate) fn of_namespaces(namespaces: &[Arc<str>]) -> Arc<Self> {
        let store = Self::default();
        store.state.write().parts = Parts::of_namespaces(namespaces);
        Arc::new(store)
    }

    /// Writes a batch atomically, as changes of a part of the content, while holding the guard that `lock`
    /// returns. Returns the effects, and that guard.
    ///
    /// The values for the indexes are computed first, because their functions are user code. If the content
    /// or the indexes have changed by the time that the lock is taken, they are computed again.
    pub(crate) fn write<G>(
        &self,
        part: usize,
        batch: Batch,
        accept: Accept,
        lock: impl Fn() -> G,
    ) -> (Written, G) {
        let mut prepared = self.prepare(part, batch, accept);
        loop {
            let guard = lock();
            match self.commit(prepared) {
                Ok(written) => return (written, guard),
                Err(again) => {
                    drop(guard);
                    prepared = self.ask(*again);
                }
            }
        }
    }

    fn prepare(&self, part: usize, batch: Batch, accept: Accept) -> Prepared {
        let work = match batch {
            Batch::Deltas(deltas) => Work::Deltas(deltas, Vec::new()),
            Batch::List { mut objects, keep, version } => {
                for object in &mut objects {
                    object.settle();
                }
                Work::List { list: last_of_each_key(objects), keep, version, plan: Plan::default() }
            }
        };
        self.ask(Prepared { part, accept, asked: Vec::new(), work })
    }

    /// Packs the bodies of objects that arrived before there was a dictionary.
    fn settle(&self, unsettled: Vec<(u32, Object)>) {
        let settle = |(slot, plain): (u32, Object)| {
            let mut packed = plain.clone();
            packed.settle().then_some(Settled { slot, plain, packed })
        };
        let mut settled: Vec<_> = unsettled.into_iter().filter_map(settle).collect();
        self.state.write().settle(&mut settled);
    }

    /// Computes the values for the indexes that have none yet. The caller holds no lock.
    fn ask(&self, mut prepared: Prepared) -> Prepared {
        let state = self.state.read();
        let (definitions, unsettled) = (state.definitions(), state.unsettled());
        let before = std::mem::replace(&mut prepared.asked, definitions.clone());
        match &mut prepared.work {
            Work::Deltas(deltas, asked) => {
                drop(state);
                if !definitions.is_empty() {
                    asked.resize_with(deltas.len(), Asked::default);
                }
                for (delta, values) in deltas.iter().zip(asked) {
                    if let Some(object) = delta.put() {
                        values.ask(object, &before, &definitions);
                    }
                }
            }
            Work::List { list, keep, version, plan } => {
                let objects = list.iter().map(|(object, _)| object);
                *plan = state.plan(prepared.part, objects, keep, version);
                drop(state);
                // Most objects of a relist are already stored.
                for ((object, values), place) in list.iter_mut().zip(&plan.places) {
                    if !matches!(place, Place::Same(_)) {
                        values.ask(object, &before, &definitions);
                    }
                }
            }
        }
        if let Some(unsettled) = unsettled {
            self.settle(unsettled);
        }
        prepared
    }

    /// Writes the batch, or returns it if it has to be prepared again.
    fn commit(&self, prepared: Prepared) -> Result<Written, Box<Prepared>> {
        let mut state = self.state.write();
        let planned = match &prepared.work {
            Work::Deltas(..) => true,
            Work::List { plan, .. } => state.holds(plan),
        };
        if !planned || !state.has_definitions(&prepared.asked) {
            return Err(Box::new(prepared));
        }
        let Prepared { part, accept, asked, work } = prepared;
        let mut written = Written::new(asked);
        match work {
            Work::Deltas(deltas, asked) => {
                written.applied.reserve(deltas.len());
                let asked = asked.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
                for (delta, values) in deltas.into_iter().zip(asked) {
                    state.apply(part, delta, values.unwrap_or_default(), accept, &mut written);
                }
            }
            Work::List { list, version, plan, .. } => {
                state.replace(part, list, plan, version, &mut written);
            }
        }
        state.version = state.parts.version();
        Ok(written)
    }

    /// Returns whether the first list is complete.
    pub(crate) fn has_synced(&self) -> bool {
        self.state.read().synced
    }

    /// Returns whether the first list is complete, and the version at the same moment.
    pub(crate) fn progress(&self) -> (bool, ResourceVersion) {
        let state = self.state.read();
        (state.synced, state.version.clone())
    }

    pub(crate) fn resource_version(&self) -> ResourceVersion {
        self.state.read().version.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    /// Returns the approximate number of bytes that the objects take.
    pub(crate) fn memory(&self) -> usize {
        self.state.read().bytes
    }

    /// Returns how many times the functions of indexes have panicked.
    pub(crate) fn index_panics(&self) -> u64 {
        self.state.read().index_panics()
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Object> {
        self.state.read().find(key).map(|(_, object)| object.clone())
    }

    /// Returns all objects.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state.read();
        (state.objects.iter().map(|(_, object)| object.clone()).collect(), state.version.clone())
    }

    /// Returns the objects of a namespace.
    pub(crate) fn namespace(&self, namespace: &str) -> Snapshot {
        let state = self.state.read();
        state.read(state.namespaces.slots(namespace))
    }

    /// Returns the number of objects in a namespace.
    pub(crate) fn namespace_len(&self, namespace: &str) -> usize {
        self.state.read().namespaces.count(namespace)
    }

    /// Adds an index, and returns once it covers every object.
    pub(super) fn add_index(self: &Arc<Self>, definition: Definition) -> Result<Arc<Owner>> {
        let owner = Owner::new(self, definition);
        let is_new =
            !owner.definition.takes_built_in_name() && self.state.write().register_new(&owner);
        if !is_new {
            let text = format!(
                "there is an index {:?} already: choose another name, or use its handle",
                owner.definition.name
            );
            return Err(Error::new(Cause::IndexConflict, text));
        }
        self.fill_index(&owner);
        Ok(owner)
    }

    /// Returns the index with this source, adding it if there is none, once it covers every object.
    pub(super) fn add_built_in_index(self: &Arc<Self>, definition: Definition) -> Arc<Owner> {
        let owner = self.register(&Owner::new(self, definition));
        self.fill_index(&owner);
        owner
    }

    pub(super) fn register(&self, owner: &Arc<Owner>) -> Arc<Owner> {
        self.state.write().register(owner)
    }

    /// Fills a new index. Every write from now on has values for it, so an object that is missing now is
    /// filled in here or, if it changes first, by the write that changes it.
    fn fill_index(&self, owner: &Owner) {
        let definition = &owner.definition;
        let unset = self.state.read().unset(definition);
        let values: Vec<_> = unset.iter().map(|(_, object)| definition.values(object)).collect();
        let slots = unset.iter().map(|(slot, _)| *slot);
        self.state.write().fill(definition, slots.zip(values));
    }

    pub(super) fn remove_index(&self, definition: &Arc<Definition>) {
        let removed = self.state.write().unregister(definition);
        drop(removed);
    }

    /// Returns whether there are bodies that the next write would pack.
    #[cfg(test)]
    pub(super) fn is_unsettled(&self) -> bool {
        self.state.read().unsettled().is_some()
    }

    #[cfg(test)]
    pub(super) fn is_locked(&self) -> bool {
        self.state.is_locked()
    }

    /// Returns the objects that have a value in an index.
    pub(super) fn indexed(&self, index: &Arc<Definition>, value: &str) -> Snapshot {
        let state = self.state.read();
        state.read(state.index(index).into_iter().flat_map(|index| index.values.slots(value)))
    }

    /// Returns the objects that have any of these values, without duplicates.
    pub(super) fn indexed_any(&self, index: &Arc<Definition>, values: &[Arc<str>]) -> Snapshot {
        let state = self.state.read();
        let index = state.index(index).into_iter();
        let slots =
            index.flat_map(|index| values.iter().flat_map(|value| index.values.slots(value)));
        let slots: BTreeSet<u32> = slots.collect();
        state.read(slots.into_iter())
    }

    /// Returns all values that at least one object has, in no particular order.
    pub(super) fn index_values(&self, index: &Arc<Definition>) -> Vec<Arc<str>> {
        let state = self.state.read();
        state.index(index).map(|index| index.values.texts()).unwrap_or_default()
    }

    /// Returns the objects that have a value in the index of this name.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Result<Snapshot> {
        if name == NAMESPACE {
            return Ok(self.namespace(value));
        }
        let state = self.state.read();
        Ok(state.read(state.index_named(name)?.values.slots(value)))
    }
}

/// Keeps only the last of several objects with the same key.
fn last_of_each_key(objects: Vec<Object>) -> Vec<(Object, Asked)> {
    let mut keys = HashSet::with_capacity(objects.len());
    let backwards = objects.into_iter().rev().filter(|object| keys.insert(object.key().clone()));
    let mut list: Vec<_> = backwards.map(|object| (object, Asked::default())).collect();
    list.reverse();
    list
}
