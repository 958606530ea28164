//! The store: one lock, one writer, any number of readers.
//!
//! Functions of users are called before the lock is taken, and objects that nobody needs any more
//! are dropped after it was given back.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;

use super::change::{Accept, Applied, Change, Difference};
use super::definition::{Definition, Prepared, Source};
use super::parts::Parts;
use super::plan::{Incoming, Plan, last_of_each_key};
use super::state::{Snapshot, State};
use crate::error::Cause;
use crate::{Deleted, Error, FinalState, KeyRef, Object, ObjectKey, ResourceVersion, Result};

/// The name of the index that every store has.
const NAMESPACE_INDEX: &str = "namespace";

/// Changes, and what the indexes say of them.
pub(crate) struct PreparedChanges {
    changes: Vec<Change>,
    values: Vec<Prepared>,
    /// How many indexes were asked.
    indexes: usize,
}

/// A list, and what it takes to make it the content.
pub(crate) struct PreparedList {
    incoming: Vec<Incoming>,
    keep: Vec<ObjectKey>,
    version: ResourceVersion,
    plan: Plan,
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

    /// Asks the indexes about what is to be written: functions of users, so that nobody may hold a
    /// lock here.
    pub(crate) fn prepare(&self, changes: Vec<Change>) -> PreparedChanges {
        let values = changes.iter().map(|_| Prepared::default()).collect();
        self.prepare_again(PreparedChanges { changes, values, indexes: 0 })
    }

    /// An index that came while the others were asked must be asked too.
    pub(crate) fn prepare_again(&self, mut prepared: PreparedChanges) -> PreparedChanges {
        let definitions = self.state.read().definitions();
        for (change, values) in prepared.changes.iter().zip(&mut prepared.values) {
            if let Change::Put(object) = change {
                values.extend(object, &definitions);
            }
        }
        prepared.indexes = definitions.len();
        prepared
    }

    /// Writes all of it at once, in order, as changes of a part of the content. One answer for each
    /// change; or everything back, if it has to be prepared again.
    pub(crate) fn commit(
        &self,
        part: usize,
        prepared: PreparedChanges,
    ) -> Result<Vec<Applied>, PreparedChanges> {
        self.write(part, prepared, Accept::Newer)
    }

    fn write(
        &self,
        part: usize,
        prepared: PreparedChanges,
        accept: Accept,
    ) -> Result<Vec<Applied>, PreparedChanges> {
        let mut state = self.state.write();
        if state.indexes.len() != prepared.indexes {
            return Err(prepared);
        }
        let PreparedChanges { changes, values, .. } = prepared;
        let apply = |(change, values)| state.apply(part, change, values, accept);
        let (applied, let_go): (Vec<_>, Vec<_>) =
            changes.into_iter().zip(values).map(apply).unzip();
        state.applied();
        drop(state);
        drop(let_go);
        Ok(applied)
    }

    /// All of that in one, where no lock is held.
    pub(crate) fn apply(&self, changes: Vec<Change>) -> Vec<Applied> {
        self.apply_as(changes, Accept::Newer)
    }

    fn apply_as(&self, changes: Vec<Change>, accept: Accept) -> Vec<Applied> {
        let mut prepared = self.prepare(changes);
        loop {
            match self.write(0, prepared, accept) {
                Ok(applied) => return applied,
                Err(again) => prepared = self.prepare_again(again),
            }
        }
    }

    /// Puts an object in whatever was there, also a newer state of it.
    pub(super) fn put(&self, object: Object) {
        drop(self.apply_as(vec![Change::Put(object)], Accept::Any));
    }

    /// Takes an object out. The version stays: nobody has said at which one it went.
    pub(super) fn remove(&self, key: KeyRef<'_>) -> Option<Object> {
        let deleted = Deleted { object: self.get(key)?, final_state: FinalState::Unknown };
        match self.apply_as(vec![Change::Delete(deleted)], Accept::Any).pop()? {
            Applied::Deleted(deleted) => Some(deleted.object),
            _ => None,
        }
    }

    /// Finds out what it takes to make a part of the content that of a list; the same about functions and
    /// locks. Objects with the keys in `keep` are in the list but could not be read: they stay as
    /// they are. Of several with one key the last one counts.
    pub(crate) fn prepare_list(
        &self,
        part: usize,
        objects: Vec<Object>,
        keep: Vec<ObjectKey>,
        version: ResourceVersion,
    ) -> PreparedList {
        self.plan(part, last_of_each_key(objects), keep, version)
    }

    /// The content, or the indexes, have changed meanwhile.
    pub(crate) fn prepare_list_again(&self, prepared: PreparedList) -> PreparedList {
        self.plan(prepared.plan.part, prepared.incoming, prepared.keep, prepared.version)
    }

    fn plan(
        &self,
        part: usize,
        mut incoming: Vec<Incoming>,
        keep: Vec<ObjectKey>,
        version: ResourceVersion,
    ) -> PreparedList {
        let plan = self.state.read().plan(part, &incoming, &keep, &version);
        plan.prepare(&mut incoming);
        PreparedList { incoming, keep, version, plan }
    }

    /// Makes the content that of a list, at once; or gives it back, if it has to be prepared again.
    pub(crate) fn commit_list(
        &self,
        prepared: PreparedList,
    ) -> Result<Difference, Box<PreparedList>> {
        let mut state = self.state.write();
        if !state.holds(&prepared.plan) {
            return Err(Box::new(prepared));
        }
        let (mut difference, let_go) =
            state.replace(prepared.incoming, prepared.plan, prepared.version);
        drop(state);
        drop(let_go);
        difference.deleted.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        Ok(difference)
    }

    /// All of that in one, where no lock is held.
    pub(super) fn replace(
        &self,
        objects: Vec<Object>,
        keep: &[ObjectKey],
        version: &ResourceVersion,
    ) -> Difference {
        let mut prepared = self.prepare_list(0, objects, keep.to_vec(), version.clone());
        loop {
            match self.commit_list(prepared) {
                Ok(difference) => return difference,
                Err(again) => prepared = self.prepare_list_again(*again),
            }
        }
    }

    /// Every part of the content has been listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.state.read().parts.are_listed()
    }

    pub(crate) fn set_synced(&self) {
        self.state.write().synced = true;
    }

    /// Whether the first list is in.
    pub(crate) fn has_synced(&self) -> bool {
        self.state.read().synced
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
        self.state.read().indexes.iter().map(|index| index.definition.panics()).sum()
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

    /// The position of the index by this, a new one if there is none, once every object is in it.
    pub(super) fn add_index(&self, name: Arc<str>, source: Source) -> (usize, Arc<Definition>) {
        let (id, definition) = self.register(name, source);
        // Every write from now on has values for this index. So whatever is unset now is either
        // filled in here or, if it changes before that, by the write that changes it.
        let unset = self.state.read().unset(id);
        let values: Vec<_> = unset.iter().map(|(_, object)| definition.values(object)).collect();
        let mut state = self.state.write();
        for ((slot, _), values) in unset.iter().zip(values) {
            state.fill(id, *slot, values);
        }
        drop(state);
        (id, definition)
    }

    pub(super) fn register(&self, name: Arc<str>, source: Source) -> (usize, Arc<Definition>) {
        self.state.write().register(name, source)
    }

    #[cfg(test)]
    pub(super) fn is_locked(&self) -> bool {
        self.state.is_locked()
    }

    /// The objects that have a value in the index at this position.
    pub(super) fn indexed(&self, id: usize, value: &str) -> Snapshot {
        let state = self.state.read();
        state.read(state.indexes.get(id).into_iter().flat_map(|index| index.values.slots(value)))
    }

    /// The objects that have any of these values, each once.
    pub(super) fn indexed_any(&self, id: usize, values: &[Arc<str>]) -> Snapshot {
        let state = self.state.read();
        let index = state.indexes.get(id).into_iter();
        let slots =
            index.flat_map(|index| values.iter().flat_map(|value| index.values.slots(value)));
        let slots: BTreeSet<u32> = slots.collect();
        state.read(slots.into_iter())
    }

    /// All values that some object has, in no order.
    pub(super) fn index_values(&self, id: usize) -> Vec<Arc<str>> {
        let state = self.state.read();
        state.indexes.get(id).map(|index| index.values.texts()).unwrap_or_default()
    }

    /// The objects that have a value in the index of this name: the oldest, if several have it.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Result<Snapshot> {
        if name == NAMESPACE_INDEX {
            return Ok(self.namespace(value));
        }
        let state = self.state.read();
        let complete = state.indexes.iter().filter(|index| index.is_complete());
        let mut names = BTreeSet::from([NAMESPACE_INDEX.into()]);
        for index in complete {
            if *index.definition.name == *name {
                return Ok(state.read(index.values.slots(value)));
            }
            names.insert(index.definition.name.clone());
        }
        drop(state);
        let text = format!("there is no index {name:?}; the indexes are {names:?}");
        Err(Error::new(Cause::UnknownIndex, text))
    }
}
