//! The store: one lock, one writer, any number of readers.
//!
//! Functions of users are called before the lock is taken, and objects that nobody needs any more
//! are dropped after it was given back.

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
    /// The whole content of a part. Objects with the keys in `keep` are in the list but could not be
    /// read: they stay as they are. Of several with one key the last one counts.
    List { objects: Vec<Object>, keep: Vec<ObjectKey>, version: ResourceVersion },
}

impl Batch {
    /// As few steps as these take, in order: a list is one of its own.
    pub(crate) fn of(deltas: Vec<Delta>) -> impl Iterator<Item = Self> {
        let mut rest = deltas;
        let is_list = |delta: &Delta| matches!(delta, Delta::ReplacedAll { .. });
        std::iter::from_fn(move || {
            // All of them, nearly always: a queue in order gives out a list alone.
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

/// A batch, and what the indexes say of it.
struct Prepared {
    part: usize,
    accept: Accept,
    /// The indexes that were asked.
    asked: Vec<Arc<Definition>>,
    work: Work,
}

enum Work {
    /// The values for the indexes are left out if there are none.
    Deltas(Vec<Delta>, Vec<Asked>),
    List {
        list: Vec<(Object, Asked)>,
        keep: Vec<ObjectKey>,
        version: ResourceVersion,
        plan: Plan,
    },
}

/// The objects of one informer and their indexes. No type parameter: compiled once.
///
/// It is made for one writer. Were there two, each write would still be whole, and their order that
/// of the lock.
#[derive(Default)]
pub(crate) struct Store {
    state: RwLock<State>,
}

impl Store {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// For a content that is listed and watched in parts, a namespace each.
    pub(crate) fn of_namespaces(namespaces: &[Arc<str>]) -> Arc<Self> {
        let store = Self::default();
        store.state.write().parts = Parts::of_namespaces(namespaces);
        Arc::new(store)
    }

    /// Writes a batch at once, as changes of a part of the content, with a lock of the caller's held;
    /// gives that lock back with what came of it.
    ///
    /// The indexes are asked before: their functions are users' code. If the content or the indexes
    /// have changed by the time the lock is there, that is done again.
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

    /// Packs the bodies of objects that came before there was a dictionary for them.
    fn settle(&self, unsettled: Vec<(u32, Object)>) {
        let settle = |(slot, plain): (u32, Object)| {
            let mut packed = plain.clone();
            packed.settle().then_some(Settled { slot, plain, packed })
        };
        let mut settled: Vec<_> = unsettled.into_iter().filter_map(settle).collect();
        self.state.write().settle(&mut settled);
    }

    /// Asks the indexes that were not asked yet. The caller holds no lock.
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
                // Most of what a relist brings is there already.
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

    /// Writes it, or gives it back if it has to be prepared again.
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

    /// Whether the first list is in.
    pub(crate) fn has_synced(&self) -> bool {
        self.state.read().synced
    }

    /// Whether the first list is in, and the version, of one moment.
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

    /// Bytes that the objects take, about.
    pub(crate) fn memory(&self) -> usize {
        self.state.read().bytes
    }

    /// How often functions of indexes have panicked.
    pub(crate) fn index_panics(&self) -> u64 {
        self.state.read().index_panics()
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Object> {
        self.state.read().find(key).map(|(_, object)| object.clone())
    }

    /// All objects.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state.read();
        (state.objects.iter().map(|(_, object)| object.clone()).collect(), state.version.clone())
    }

    /// The objects of a namespace.
    pub(crate) fn namespace(&self, namespace: &str) -> Snapshot {
        let state = self.state.read();
        state.read(state.namespaces.slots(namespace))
    }

    /// How many objects a namespace has.
    pub(crate) fn namespace_len(&self, namespace: &str) -> usize {
        self.state.read().namespaces.count(namespace)
    }

    /// A new index, once every object is in it.
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

    /// The index by this, a new one if there is none, once every object is in it.
    pub(super) fn add_built_in_index(self: &Arc<Self>, definition: Definition) -> Arc<Owner> {
        let owner = self.register(&Owner::new(self, definition));
        self.fill_index(&owner);
        owner
    }

    pub(super) fn register(&self, owner: &Arc<Owner>) -> Arc<Owner> {
        self.state.write().register(owner)
    }

    /// Every write from now on has values for this index. So whatever is unset now is either filled in
    /// here or, if it changes before that, by the write that changes it.
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

    /// Whether there are bodies that a write would pack first.
    #[cfg(test)]
    pub(super) fn is_unsettled(&self) -> bool {
        self.state.read().unsettled().is_some()
    }

    #[cfg(test)]
    pub(super) fn is_locked(&self) -> bool {
        self.state.is_locked()
    }

    /// The objects that have a value in an index.
    pub(super) fn indexed(&self, index: &Arc<Definition>, value: &str) -> Snapshot {
        let state = self.state.read();
        state.read(state.index(index).into_iter().flat_map(|index| index.values.slots(value)))
    }

    /// The objects that have any of these values, each once.
    pub(super) fn indexed_any(&self, index: &Arc<Definition>, values: &[Arc<str>]) -> Snapshot {
        let state = self.state.read();
        let index = state.index(index).into_iter();
        let slots =
            index.flat_map(|index| values.iter().flat_map(|value| index.values.slots(value)));
        let slots: BTreeSet<u32> = slots.collect();
        state.read(slots.into_iter())
    }

    /// All values that some object has, in no order.
    pub(super) fn index_values(&self, index: &Arc<Definition>) -> Vec<Arc<str>> {
        let state = self.state.read();
        state.index(index).map(|index| index.values.texts()).unwrap_or_default()
    }

    /// The objects that have a value in the index of this name.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Result<Snapshot> {
        if name == NAMESPACE {
            return Ok(self.namespace(value));
        }
        let state = self.state.read();
        Ok(state.read(state.index_named(name)?.values.slots(value)))
    }
}

/// Of several objects with one key the last one.
fn last_of_each_key(objects: Vec<Object>) -> Vec<(Object, Asked)> {
    let mut keys = HashSet::with_capacity(objects.len());
    let backwards = objects.into_iter().rev().filter(|object| keys.insert(object.key().clone()));
    let mut list: Vec<_> = backwards.map(|object| (object, Asked::default())).collect();
    list.reverse();
    list
}
