//! The locked state: objects in slots, found by key and by their indexed values.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::applied::{Applied, Listed};
use super::index::{Asked, Definition, NAMESPACE, Owner};
use super::parts::Parts;
use super::postings::{Postings, Slab, Values};
use crate::error::Cause;
use crate::object::Codec;
use crate::{
    Deleted, Delta, Error, FinalState, KeyRef, Object, ObjectKey, ResourceVersion, Result,
};

/// The effects of a write, and the objects that it released. It must be dropped without the lock held,
/// because it may contain user types whose `Drop` runs user code.
pub(crate) struct Written {
    pub(crate) applied: Vec<Applied>,
    let_go: Vec<Object>,
    #[expect(dead_code, reason = "held, not read: an index may have gone while it was asked")]
    asked: Vec<Arc<Definition>>,
}

/// The states that may replace a stored object.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Accept {
    /// Neither the same state again nor an older one, since watches repeat themselves.
    Newer,
    /// Any state.
    Any,
}

/// The steps that turn the content of a part into that of a list.
#[derive(Default)]
pub(super) struct Plan {
    /// The number of writes for which this plan is valid.
    writes: u64,
    /// The place of each object of the list.
    pub(super) places: Vec<Place>,
    /// Slots of objects that the list does not contain, sorted by key.
    gone: Vec<u32>,
}

/// The place of a list's object in the store.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    New,
    /// The slot has another state of the object.
    Other(u32),
    /// The slot already has this state.
    Same(u32),
}

/// An object whose body was packed after it was stored.
pub(super) struct Settled {
    pub(super) slot: u32,
    pub(super) plain: Object,
    pub(super) packed: Object,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) objects: Slab<Object>,
    by_key: HashTable<u32>,
    /// Seeded at random, since users choose the keys. The order of this table is never visible.
    hasher: DefaultHashBuilder,
    /// Needs no record of each slot's value, which is part of the key.
    pub(super) namespaces: Values,
    indexes: Vec<Postings>,
    /// The number of panics in the functions of removed indexes.
    past_panics: u64,
    pub(super) parts: Parts,
    /// The version of `parts`, cached.
    pub(super) version: ResourceVersion,
    pub(super) bytes: usize,
    /// The codec of an object whose body can be packed once there is a dictionary.
    unsettled: Option<Arc<Codec>>,
    pub(super) synced: bool,
    /// The number of writes, which tells whether a plan is still valid.
    writes: u64,
}

/// Objects that were read together, in the order of their slots, and the version at that time.
pub(crate) type Snapshot = (Vec<Object>, ResourceVersion);

impl State {
    pub(super) fn apply(
        &mut self,
        part: usize,
        delta: Delta,
        values: Asked,
        accept: Accept,
        written: &mut Written,
    ) {
        self.writes += 1;
        match delta {
            Delta::Added(object) | Delta::Updated(object) => {
                self.parts.advance(part, object.resource_version());
                self.put(object, values, accept, written);
            }
            Delta::Replaced(object) => {
                self.parts.advance(part, object.resource_version());
                self.put_listed(object, values, written);
            }
            Delta::Sync(object) => {
                let stored = self.find(object.key().into()).map(|(_, stored)| stored.clone());
                written.list(Listed::Resync, stored.into_iter().collect());
                written.let_go.push(object);
            }
            Delta::Deleted(deleted) => {
                // The version of a missed delete is unknown: the one that the object has is older.
                if deleted.final_state == FinalState::Known {
                    self.parts.advance(part, deleted.resource_version());
                }
                self.delete(deleted, written);
            }
            // A deleted object goes, readable or not. An existing one keeps its last readable state.
            Delta::Unreadable { error, version, deleted } => {
                self.parts.advance(part, &version);
                let gone = error.key().filter(|_| deleted).and_then(|key| self.find(key.into()));
                let gone = gone.map(|(slot, _)| slot).and_then(|slot| self.remove(slot));
                written.applied.extend(gone.map(tombstone));
            }
            Delta::Bookmark(version) => self.parts.advance(part, &version),
            // Always a batch of its own.
            Delta::ReplacedAll { .. } => {}
        }
    }

    fn put(&mut self, new: Object, values: Asked, accept: Accept, written: &mut Written) {
        let Some((slot, stored)) = self.find(new.key().into()) else {
            self.insert(new.clone(), values);
            return written.applied.push(Applied::Added(new));
        };
        let stale = new.resource_version() < stored.resource_version() || same_state(&new, stored);
        if stale && accept == Accept::Newer {
            return written.let_go.push(new);
        }
        let old = self.exchange(slot, new.clone(), values);
        written.applied.extend(old.map(|old| Applied::Updated { old, new }));
    }

    /// Stores an object of a list that arrives object by object. As with a whole list, any other state is
    /// accepted, because the list may be of another history.
    fn put_listed(&mut self, new: Object, values: Asked, written: &mut Written) {
        let found = self.find(new.key().into()).map(|(_, stored)| stored);
        let same = |stored: &&Object| same_state(&new, stored) && new.same_content(stored);
        match found.filter(same).cloned() {
            Some(stored) => {
                written.list(Listed::Unchanged, vec![stored]);
                written.let_go.push(new);
            }
            None => self.put(new, values, Accept::Any, written),
        }
    }

    fn delete(&mut self, Deleted { object, final_state }: Deleted, written: &mut Written) {
        let known = final_state == FinalState::Known;
        let is_older =
            |stored: &Object| known && object.resource_version() < stored.resource_version();
        let found = self.find(object.key().into()).filter(|(_, stored)| !is_older(stored));
        let Some(stored) = found.map(|(slot, _)| slot).and_then(|slot| self.remove(slot)) else {
            return written.let_go.push(object);
        };
        // An observed delete has the final state; otherwise the stored state is the best known.
        let (object, other) = if known { (object, stored) } else { (stored, object) };
        written.let_go.push(other);
        written.applied.push(Applied::Deleted(Deleted { object, final_state }));
    }

    /// Plans the steps that turn the content of a part into a list, without changing anything.
    pub(super) fn plan<'a>(
        &self,
        part: usize,
        objects: impl Iterator<Item = &'a Object>,
        keep: &[ObjectKey],
        version: &ResourceVersion,
    ) -> Plan {
        // A list of another history, in which the same version may be a different state.
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
        let place = |object: &Object| match find(object.key()) {
            None => Place::New,
            Some((slot, stored)) if is_same(object, stored) => Place::Same(slot),
            Some((slot, _)) => Place::Other(slot),
        };
        let places = objects.map(place).collect();
        // A version that the list has not reached is of another history. Compared with it, later states of
        // this history would look old.
        let is_ahead = |key: &&ObjectKey| {
            self.find((*key).into())
                .is_some_and(|(_, stored)| *version < *stored.resource_version())
        };
        for key in keep.iter().filter(|key| !is_ahead(key)) {
            find(key);
        }
        let mut gone = self.slots_of(part);
        gone.retain(|slot| !stays[*slot as usize]);
        gone.sort_unstable_by_key(|slot| self.objects.get(*slot).map(Object::key));
        Plan { writes: self.writes, places, gone }
    }

    fn slots_of(&self, part: usize) -> Vec<u32> {
        match self.parts.namespace(part) {
            Some(namespace) => self.namespaces.slots(namespace).collect(),
            None => self.objects.iter().map(|(slot, _)| slot).collect(),
        }
    }

    /// Returns whether nothing was written since the plan was made.
    pub(super) fn holds(&self, plan: &Plan) -> bool {
        plan.writes == self.writes
    }

    /// Carries out a plan. The effects start with the deletes; the rest is the whole new content.
    pub(super) fn replace(
        &mut self,
        part: usize,
        list: Vec<(Object, Asked)>,
        plan: Plan,
        version: ResourceVersion,
        written: &mut Written,
    ) {
        self.writes += 1;
        self.parts.set(part, version);
        let initial = !self.synced;
        let (mut added, mut unchanged) = (Vec::new(), Vec::new());
        // Remove before adding, so that new objects reuse the slots.
        let gone = plan.gone.into_iter().filter_map(|slot| self.remove(slot));
        written.applied.extend(gone.map(tombstone));
        for ((object, values), place) in list.into_iter().zip(plan.places) {
            match place {
                Place::New => {
                    self.insert(object.clone(), values);
                    added.push(object);
                }
                Place::Other(slot) => {
                    let old = self.exchange(slot, object.clone(), values);
                    written.applied.extend(old.map(|old| Applied::Updated { old, new: object }));
                }
                Place::Same(slot) => {
                    unchanged.extend(self.objects.get(slot).cloned());
                    written.let_go.push(object);
                }
            }
        }
        if initial {
            written.list(Listed::Initial, added);
        } else {
            written.applied.extend(added.into_iter().map(Applied::Added));
        }
        written.list(Listed::Unchanged, unchanged);
        if initial && self.parts.are_listed() {
            self.synced = true;
            written.applied.push(Applied::Synced);
        }
    }

    /// Returns the objects in these slots, and the version.
    pub(super) fn read(&self, slots: impl Iterator<Item = u32>) -> Snapshot {
        let objects = slots.filter_map(|slot| self.objects.get(slot).cloned());
        (objects.collect(), self.version.clone())
    }

    pub(super) fn find(&self, key: KeyRef<'_>) -> Option<(u32, &Object)> {
        let hash = self.hasher.hash_one(key);
        let has_key = |&slot: &u32| self.objects.get(slot).is_some_and(|other| other.key().is(key));
        let slot = *self.by_key.find(hash, has_key)?;
        Some((slot, self.objects.get(slot)?))
    }

    fn insert(&mut self, object: Object, values: Asked) {
        self.bytes += object.memory();
        self.note_unsettled(&object);
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

    /// Replaces an object with another one of the same key.
    fn exchange(&mut self, slot: u32, object: Object, values: Asked) -> Option<Object> {
        self.note_unsettled(&object);
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

    fn note_unsettled(&mut self, object: &Object) {
        if self.unsettled.is_none() && object.codec().is_unsettled() {
            self.unsettled = Some(object.codec().clone());
        }
    }

    /// Returns the objects whose bodies are plain because there was no dictionary, if there is one now.
    pub(super) fn unsettled(&self) -> Option<Vec<(u32, Object)>> {
        self.unsettled.as_ref()?.settled()?;
        let objects = self.objects.iter().filter(|(_, object)| object.codec().is_unsettled());
        Some(objects.map(|(slot, object)| (slot, object.clone())).collect())
    }

    /// Replaces objects that are still stored with their packed versions. The replaced ones are left in
    /// `settled`.
    pub(super) fn settle(&mut self, settled: &mut [Settled]) {
        self.unsettled = None;
        for Settled { slot, plain, packed } in settled {
            let Some(place) = self.objects.get_mut(*slot) else { continue };
            if place.is_same_instance(plain) {
                self.bytes = (self.bytes + packed.memory()).saturating_sub(plain.memory());
                std::mem::swap(place, packed);
            }
        }
    }

    fn set_values(&mut self, slot: u32, values: Asked) {
        for (index, values) in self.indexes.iter_mut().zip(values.into_iter()) {
            index.set(slot, values);
        }
    }

    /// Returns the definitions of all indexes, whose functions are called without the lock held.
    pub(super) fn definitions(&self) -> Vec<Arc<Definition>> {
        self.indexes.iter().map(|index| index.definition.clone()).collect()
    }

    /// Returns whether these are the current indexes.
    pub(super) fn has_definitions(&self, asked: &[Arc<Definition>]) -> bool {
        let same = |(index, asked): (&Postings, _)| Arc::ptr_eq(&index.definition, asked);
        self.indexes.len() == asked.len() && self.indexes.iter().zip(asked).all(same)
    }

    /// Adds an index. Every write from now on keeps it up to date; objects that are already stored are missing.
    /// Returns false if its name is taken by an index that is not about to be removed.
    pub(super) fn register_new(&mut self, owner: &Arc<Owner>) -> bool {
        let mut alive = self.indexes.iter().filter(|index| index.owner.strong_count() > 0);
        let taken = alive.any(|index| index.definition.name == owner.definition.name);
        if !taken {
            self.add_index(owner);
        }
        !taken
    }

    /// Returns the existing index with the same source, or adds this one.
    pub(super) fn register(&mut self, owner: &Arc<Owner>) -> Arc<Owner> {
        let same = |index: &&mut Postings| index.definition.is_same(&owner.definition);
        if let Some(index) = self.indexes.iter_mut().find(same)
            && let Some(owner) = index.owner.upgrade()
        {
            return owner;
        }
        self.add_index(owner);
        owner.clone()
    }

    fn add_index(&mut self, owner: &Arc<Owner>) {
        let slots = self.objects.iter().map(|(slot, _)| slot);
        self.indexes.push(Postings::new(owner, slots));
    }

    /// Removes an index whose last handle was dropped.
    pub(super) fn unregister(&mut self, definition: &Arc<Definition>) -> Option<Postings> {
        let same = |index: &Postings| Arc::ptr_eq(&index.definition, definition);
        let at = self.indexes.iter().position(same)?;
        self.past_panics += definition.panics();
        Some(self.indexes.remove(at))
    }

    pub(super) fn index_panics(&self) -> u64 {
        let panics = self.indexes.iter().map(|index| index.definition.panics());
        self.past_panics + panics.sum::<u64>()
    }

    pub(super) fn index(&self, definition: &Arc<Definition>) -> Option<&Postings> {
        self.indexes.iter().find(|index| Arc::ptr_eq(&index.definition, definition))
    }

    /// Returns the index of this name, if it covers every object.
    pub(super) fn index_named(&self, name: &str) -> Result<&Postings> {
        let mut complete = self.indexes.iter().filter(|index| index.is_complete());
        complete.clone().find(|index| *index.definition.name == *name).ok_or_else(|| {
            let mut names: Vec<&str> =
                complete.by_ref().map(|index| &*index.definition.name).collect();
            names.push(NAMESPACE);
            names.sort_unstable();
            let text = format!("there is no index {name:?}; the indexes are {names:?}");
            Error::new(Cause::UnknownIndex, text)
        })
    }

    /// Returns the objects that are missing in an index.
    pub(super) fn unset(&self, definition: &Arc<Definition>) -> Vec<(u32, Object)> {
        let Some(index) = self.index(definition).filter(|index| !index.is_complete()) else {
            return Vec::new();
        };
        let unset = self.objects.iter().filter(|(slot, _)| index.is_unset(*slot));
        unset.map(|(slot, object)| (slot, object.clone())).collect()
    }

    /// Adds the missing values. A slot that is still unset has the object that it had when the index was added,
    /// because a write sets all values.
    pub(super) fn fill(
        &mut self,
        definition: &Arc<Definition>,
        missing: impl Iterator<Item = (u32, Vec<Arc<str>>)>,
    ) {
        let same = |index: &&mut Postings| Arc::ptr_eq(&index.definition, definition);
        let Some(index) = self.indexes.iter_mut().find(same) else { return };
        for (slot, values) in missing {
            if index.is_unset(slot) {
                index.set(slot, values);
            }
        }
    }
}

impl Written {
    pub(super) fn new(asked: Vec<Arc<Definition>>) -> Self {
        Self { applied: Vec::new(), let_go: Vec::new(), asked }
    }

    fn list(&mut self, listed: Listed, objects: Vec<Object>) {
        if !objects.is_empty() {
            self.applied.push(Applied::List(listed, objects.into()));
        }
    }
}

/// Returns a missed delete, with the last known state.
fn tombstone(object: Object) -> Applied {
    Applied::Deleted(Deleted { object, final_state: FinalState::Unknown })
}

/// Returns whether both are the same state. Without a version there is no way to tell.
fn same_state(new: &Object, stored: &Object) -> bool {
    !new.resource_version().is_empty() && new.same_version(stored)
}

fn key_of(objects: &Slab<Object>, slot: u32) -> Option<KeyRef<'_>> {
    objects.get(slot).map(|object| object.key().into())
}
