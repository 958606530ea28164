//! What is under the lock: objects in slots, found by key and by their values in indexes.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::change::{Accept, Applied, Change, Difference};
use super::definition::{Definition, Prepared, Source};
use super::parts::Parts;
use super::plan::{Incoming, Place, Plan};
use super::postings::Postings;
use super::slab::Slab;
use super::values::Values;
use crate::{Deleted, FinalState, KeyRef, Object, ObjectKey, ResourceVersion};

#[derive(Default)]
pub(super) struct State {
    pub(super) objects: Slab<Object>,
    by_key: HashTable<u32>,
    /// Seeded at random, since users choose the keys; nobody sees the order of this table.
    hasher: DefaultHashBuilder,
    /// Needs no memory of what a slot has: that is in the key.
    pub(super) namespaces: Values,
    /// Never removed, so that a position is an identity.
    pub(super) indexes: Vec<Postings>,
    pub(super) parts: Parts,
    /// That of the parts, kept at hand.
    pub(super) version: ResourceVersion,
    pub(super) bytes: usize,
    pub(super) synced: bool,
    /// Counts the writes, so that a plan knows whether it still holds.
    writes: u64,
}

/// Objects that were read together, in the order of their slots, and the version at that time.
pub(crate) type Snapshot = (Vec<Object>, ResourceVersion);

/// What is let go of here may be dropped only without the lock: a type of somebody's own may be in
/// it, and its `Drop` is their code.
type LetGo = Option<Object>;

impl State {
    pub(super) fn apply(
        &mut self,
        part: usize,
        change: Change,
        values: Prepared,
        accept: Accept,
    ) -> (Applied, LetGo) {
        self.writes += 1;
        match &change {
            Change::Put(object) => self.parts.advance(part, object.resource_version()),
            // The version of a missed delete is not known: what the object carries is older.
            Change::Delete(Deleted { final_state: FinalState::Unknown, .. }) => {}
            Change::Delete(deleted) => self.parts.advance(part, deleted.resource_version()),
            Change::Bookmark(version) => self.parts.advance(part, version),
        }
        match change {
            Change::Put(object) => self.put(object, values, accept),
            Change::Delete(deleted) => self.delete(deleted),
            Change::Bookmark(_) => (Applied::Nothing, None),
        }
    }

    /// To be called when all of a batch has been applied.
    pub(super) fn applied(&mut self) {
        self.version = self.parts.version();
    }

    fn put(&mut self, new: Object, values: Prepared, accept: Accept) -> (Applied, LetGo) {
        let Some((slot, stored)) = self.find(new.key().into()) else {
            self.insert(new.clone(), values);
            return (Applied::Added(new), None);
        };
        let stale = new.resource_version() < stored.resource_version() || same_state(&new, stored);
        if stale && accept == Accept::Newer {
            return (Applied::Nothing, Some(new));
        }
        match self.exchange(slot, new.clone(), values) {
            Some(old) => (Applied::Updated { old, new }, None),
            None => (Applied::Added(new), None),
        }
    }

    fn delete(&mut self, deleted: Deleted) -> (Applied, LetGo) {
        let Deleted { object, final_state } = deleted;
        let known = final_state == FinalState::Known;
        let Some((slot, stored)) = self.find(object.key().into()) else {
            return (Applied::Nothing, Some(object));
        };
        if known && object.resource_version() < stored.resource_version() {
            return (Applied::Nothing, Some(object));
        }
        let Some(stored) = self.remove(slot) else { return (Applied::Nothing, Some(object)) };
        // A delete that was seen says how the object went; otherwise we know what we have.
        let (object, other) = if known { (object, stored) } else { (stored, object) };
        (Applied::Deleted(Deleted { object, final_state }), Some(other))
    }

    /// What it takes to make the content this. Nothing is done yet.
    pub(super) fn plan(
        &self,
        part: usize,
        incoming: &[Incoming],
        keep: &[ObjectKey],
        version: &ResourceVersion,
    ) -> Plan {
        // Of another history, in which the same version may be another state's.
        let goes_back = self.parts.is_before(part, version);
        let is_same = |new: &Object, stored: &Object| {
            same_state(new, stored) && (!goes_back || new.same_content(stored))
        };
        let mut stays = vec![false; self.objects.places()];
        let mut find = |key: &ObjectKey| {
            let found = self.find(key.into());
            if let Some((slot, _)) = found {
                stays[slot as usize] = true;
            }
            found
        };
        let place = |incoming: &Incoming| match find(incoming.object.key()) {
            None => Place::New,
            Some((slot, stored)) if is_same(&incoming.object, stored) => Place::Same(slot),
            Some((slot, _)) => Place::Other(slot),
        };
        let places = incoming.iter().map(place).collect();
        for key in keep {
            find(key);
        }
        let of_part = self.objects.iter().filter(|(_, object)| self.parts.has(part, object));
        let gone = of_part.map(|(slot, _)| slot).filter(|slot| !stays[*slot as usize]).collect();
        Plan { part, writes: self.writes, definitions: self.definitions(), places, gone }
    }

    /// Whether nothing was written since the plan was made.
    pub(super) fn holds(&self, plan: &Plan) -> bool {
        plan.writes == self.writes
    }

    /// Does it. What comes back beside the difference may be dropped only without the lock.
    pub(super) fn replace(
        &mut self,
        incoming: Vec<Incoming>,
        plan: Plan,
        version: ResourceVersion,
    ) -> (Difference, Vec<Object>) {
        let (mut difference, mut let_go) = (Difference::default(), Vec::new());
        self.writes += 1;
        self.parts.set(plan.part, version);
        self.version = self.parts.version();
        // First out, then in, so that the new ones take the places of those that went.
        difference.deleted.extend(plan.gone.into_iter().filter_map(|slot| self.remove(slot)));
        for (Incoming { object, values }, place) in incoming.into_iter().zip(plan.places) {
            match place {
                Place::New => {
                    self.insert(object.clone(), values);
                    difference.added.push(object);
                }
                Place::Other(slot) => {
                    if let Some(old) = self.exchange(slot, object.clone(), values) {
                        difference.updated.push((old, object));
                    }
                }
                Place::Same(slot) => {
                    difference.unchanged.extend(self.objects.get(slot).cloned());
                    let_go.push(object);
                }
            }
        }
        (difference, let_go)
    }

    /// The objects in these slots, and the version.
    pub(super) fn read(&self, slots: impl Iterator<Item = u32>) -> Snapshot {
        let objects = slots.filter_map(|slot| self.objects.get(slot).cloned());
        (objects.collect(), self.version.clone())
    }

    pub(super) fn find(&self, key: KeyRef<'_>) -> Option<(u32, &Object)> {
        let hash = self.hasher.hash_one(key);
        let has_key = |&slot: &u32| key_of(&self.objects, slot) == Some(key);
        let slot = *self.by_key.find(hash, has_key)?;
        Some((slot, self.objects.get(slot)?))
    }

    fn insert(&mut self, object: Object, values: Prepared) {
        self.bytes += object.memory();
        let hash = self.hasher.hash_one(KeyRef::from(object.key()));
        let slot = self.objects.insert(object);
        let (objects, hasher) = (&self.objects, &self.hasher);
        let rehash = |&slot: &u32| key_of(objects, slot).map_or(0, |key| hasher.hash_one(key));
        self.by_key.insert_unique(hash, slot, rehash);
        if let Some(namespace) = key_of(objects, slot).and_then(|key| key.namespace) {
            self.namespaces.add(namespace, slot);
        }
        self.set_values(slot, values);
    }

    /// Another object of the same key.
    fn exchange(&mut self, slot: u32, object: Object, values: Prepared) -> Option<Object> {
        let place = self.objects.get_mut(slot)?;
        self.bytes += object.memory();
        let old = std::mem::replace(place, object);
        self.bytes = self.bytes.saturating_sub(old.memory());
        self.set_values(slot, values);
        Some(old)
    }

    fn remove(&mut self, slot: u32) -> Option<Object> {
        let hash = self.hasher.hash_one(key_of(&self.objects, slot)?);
        if let Ok(entry) = self.by_key.find_entry(hash, |&known| known == slot) {
            entry.remove();
        }
        let object = self.objects.remove(slot)?;
        self.bytes = self.bytes.saturating_sub(object.memory());
        if let Some(id) = object.namespace().and_then(|namespace| self.namespaces.find(namespace)) {
            self.namespaces.remove(id, slot);
        }
        self.indexes.iter_mut().for_each(|index| index.clear(slot));
        Some(object)
    }

    fn set_values(&mut self, slot: u32, values: Prepared) {
        for (index, values) in self.indexes.iter_mut().zip(values.into_values()) {
            index.set(slot, values);
        }
    }

    /// The indexes that there are, to be asked without the lock.
    pub(super) fn definitions(&self) -> Vec<Arc<Definition>> {
        self.indexes.iter().map(|index| index.definition.clone()).collect()
    }

    /// The index by this, a new one if there is none. From now on every write keeps it up to date;
    /// what was there before is missing.
    pub(super) fn register(&mut self, name: Arc<str>, source: Source) -> (usize, Arc<Definition>) {
        let mut indexes = self.indexes.iter().enumerate();
        if let Some((id, index)) = indexes.find(|(_, index)| index.definition.is_same(&source)) {
            return (id, index.definition.clone());
        }
        self.writes += 1;
        let definition = Arc::new(Definition::new(name, source));
        let slots = self.objects.iter().map(|(slot, _)| slot);
        self.indexes.push(Postings::new(definition.clone(), slots));
        (self.indexes.len() - 1, definition)
    }

    /// What is missing in an index.
    pub(super) fn unset(&self, id: usize) -> Vec<(u32, Object)> {
        let Some(index) = self.indexes.get(id).filter(|index| !index.is_complete()) else {
            return Vec::new();
        };
        let unset = self.objects.iter().filter(|(slot, _)| index.is_unset(*slot));
        unset.map(|(slot, object)| (slot, object.clone())).collect()
    }

    /// Puts in what was missing. A slot that is still unset has the object that it had when the
    /// index came: a write sets all values, for this object or a newer one.
    pub(super) fn fill(&mut self, id: usize, slot: u32, values: Vec<Arc<str>>) {
        if let Some(index) = self.indexes.get_mut(id).filter(|index| index.is_unset(slot)) {
            index.set(slot, values);
        }
    }
}

/// The same state again. Without a version nobody can tell.
fn same_state(new: &Object, stored: &Object) -> bool {
    !new.resource_version().is_empty() && new.same_version(stored)
}

fn key_of(objects: &Slab<Object>, slot: u32) -> Option<KeyRef<'_>> {
    objects.get(slot).map(|object| object.key().into())
}
