//! An index: the values of each slot, and the slots of each value.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::{Arc, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::index::{Definition, Owner};

/// An index as the store keeps it. The values of each slot are recorded by number, so that a function that
/// returns different values the next time leaves nothing behind.
pub(super) struct Postings {
    pub(super) definition: Arc<Definition>,
    /// The index is removed with its last handle.
    pub(super) owner: Weak<Owner>,
    pub(super) values: Values,
    /// By slot.
    held: Vec<Held>,
    /// The values of slots that have several, in order.
    many: BTreeMap<u32, Box<[u32]>>,
    /// The number of slots with an object whose values have not been added yet.
    unset: usize,
}

/// The values of a slot in an index.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    /// The object is older than the index, and its values have not been added yet.
    Unset,
    None,
    One(u32),
    Many,
}

impl Postings {
    /// Creates an index for a store that has objects in these slots.
    pub(super) fn new(owner: &Arc<Owner>, slots: impl Iterator<Item = u32>) -> Self {
        let (definition, owner) = (owner.definition.clone(), Arc::downgrade(owner));
        let (mut held, mut unset) = (Vec::new(), 0);
        for slot in slots {
            held.resize(slot as usize, Held::None);
            held.push(Held::Unset);
            unset += 1;
        }
        Self { definition, owner, values: Values::default(), held, many: BTreeMap::new(), unset }
    }

    /// Returns whether the index covers every object. Before that, it must not be queried.
    pub(super) fn is_complete(&self) -> bool {
        self.unset == 0
    }

    pub(super) fn is_unset(&self, slot: u32) -> bool {
        self.held(slot) == Held::Unset
    }

    /// Replaces the values of a slot. The new ones are sorted and without duplicates.
    pub(super) fn set(&mut self, slot: u32, texts: Vec<Arc<str>>) {
        if let ([text], Held::One(id)) = (&*texts, self.held(slot))
            && self.values.text(id) == &**text
        {
            return;
        }
        // Add before removing, so that a value that stays keeps its number.
        let mut new: Vec<u32> = texts.into_iter().map(|text| self.values.add(text, slot)).collect();
        new.sort_unstable();
        for id in self.take(slot) {
            if new.binary_search(&id).is_err() {
                self.values.remove(id, slot);
            }
        }
        let held = match &*new {
            [] => Held::None,
            [id] => Held::One(*id),
            _ => {
                self.many.insert(slot, new.into());
                Held::Many
            }
        };
        let at = slot as usize;
        if at >= self.held.len() {
            self.held.resize(at + 1, Held::None);
        }
        self.held[at] = held;
    }

    /// Removes the values of a slot that no longer has an object.
    pub(super) fn clear(&mut self, slot: u32) {
        for id in self.take(slot) {
            self.values.remove(id, slot);
        }
    }

    /// Takes out the numbers of a slot's values.
    fn take(&mut self, slot: u32) -> impl Iterator<Item = u32> + use<> {
        let held = self.held.get_mut(slot as usize);
        let (one, many) = match held.map(|held| std::mem::replace(held, Held::None)) {
            Some(Held::One(id)) => (Some(id), None),
            Some(Held::Many) => (None, self.many.remove(&slot)),
            Some(Held::Unset) => {
                self.unset -= 1;
                (None, None)
            }
            Some(Held::None) | None => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn held(&self, slot: u32) -> Held {
        self.held.get(slot as usize).copied().unwrap_or(Held::None)
    }
}

/// Numbered values, found by their text. A value is dropped with its last slot.
#[derive(Default)]
pub(super) struct Values {
    entries: Slab<Value>,
    by_text: HashTable<u32>,
    /// Seeded at random, since users choose the texts. The order of this table is never visible.
    hasher: DefaultHashBuilder,
}

struct Value {
    text: Arc<str>,
    slots: Slots,
}

/// At least one slot. Half of all indexes are nearly unique, and a single slot needs no allocation. A tree of
/// such small numbers is as small as a hash set, and is ordered.
enum Slots {
    One(u32),
    Many(BTreeSet<u32>),
}

impl Values {
    /// Adds a slot to a value, and returns the value's number.
    pub(super) fn add(&mut self, text: impl AsRef<str> + Into<Arc<str>>, slot: u32) -> u32 {
        if let Some(id) = self.find(text.as_ref()) {
            if let Some(value) = self.entries.get_mut(id) {
                value.slots.insert(slot);
            }
            return id;
        }
        let text = text.into();
        let hash = self.hasher.hash_one(&*text);
        let id = self.entries.insert(Value { text, slots: Slots::One(slot) });
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.by_text.insert_unique(hash, id, |&id| hasher.hash_one(text_of(entries, id)));
        id
    }

    /// Removes a slot from a value.
    pub(super) fn remove(&mut self, id: u32, slot: u32) {
        let Some(value) = self.entries.get_mut(id) else { return };
        if value.slots.remove(slot) {
            return;
        }
        let hash = self.hasher.hash_one(&*value.text);
        if let Ok(entry) = self.by_text.find_entry(hash, |&known| known == id) {
            entry.remove();
        }
        self.entries.remove(id);
    }

    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.by_text.find(hash, |&id| text_of(&self.entries, id) == text).copied()
    }

    pub(super) fn text(&self, id: u32) -> &str {
        text_of(&self.entries, id)
    }

    /// Returns the slots that have this value, in order.
    pub(super) fn slots(&self, text: &str) -> impl Iterator<Item = u32> {
        let value = self.find(text).and_then(|id| self.entries.get(id));
        let (one, many) = match value.map(|value| &value.slots) {
            Some(Slots::One(slot)) => (Some(*slot), None),
            Some(Slots::Many(slots)) => (None, Some(slots)),
            None => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    /// Returns the number of slots that have this value.
    pub(super) fn count(&self, text: &str) -> usize {
        match self.find(text).and_then(|id| self.entries.get(id)).map(|value| &value.slots) {
            Some(Slots::One(_)) => 1,
            Some(Slots::Many(slots)) => slots.len(),
            None => 0,
        }
    }

    /// Returns all values that at least one slot has.
    pub(super) fn texts(&self) -> Vec<Arc<str>> {
        self.entries.iter().map(|(_, value)| value.text.clone()).collect()
    }
}

fn text_of(entries: &Slab<Value>, id: u32) -> &str {
    entries.get(id).map_or("", |value| &value.text)
}

impl Slots {
    fn insert(&mut self, slot: u32) {
        match self {
            Slots::One(known) if *known == slot => {}
            Slots::One(known) => *self = Slots::Many(BTreeSet::from([*known, slot])),
            Slots::Many(slots) => {
                slots.insert(slot);
            }
        }
    }

    /// Removes a slot unless it is the only one. Returns whether any other slot is left.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Slots::One(known) => *known != slot,
            Slots::Many(slots) => {
                slots.remove(&slot);
                if let (1, Some(&last)) = (slots.len(), slots.first()) {
                    *self = Slots::One(last);
                }
                true
            }
        }
    }
}

/// Numbered values. Iteration in the order of the numbers is the same in every run, unlike that of a randomly
/// seeded map.
pub(super) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.entries[at as usize] = Some(value);
            return at;
        }
        self.entries.push(Some(value));
        (self.entries.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let removed = self.entries.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(removed)
    }

    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.entries.get(at as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.entries.get_mut(at as usize)?.as_mut()
    }

    /// Returns all values with their numbers, in the order of the numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.entries.iter().enumerate();
        numbered.filter_map(|(at, entry)| Some((at as u32, entry.as_ref()?)))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns one more than the highest number ever assigned.
    pub(super) fn places(&self) -> usize {
        self.entries.len()
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::super::index::Source;
    use super::*;

    #[test]
    fn s8_nothing_is_left_of_slots_that_were_cleared() {
        let owner = Owner::new(&Store::new(), Definition::new("".into(), Source::Controller));
        let mut postings = Postings::new(&owner, [1, 4].into_iter());
        let texts = |texts: &[&str]| texts.iter().map(|text| Arc::from(*text)).collect();
        assert!(!postings.is_complete() && postings.is_unset(1) && !postings.is_unset(0));
        postings.set(1, texts(&["a", "b"]));
        postings.clear(4);
        assert!(postings.is_complete());
        postings.set(9, texts(&["b"]));
        postings.set(1, texts(&["c", "d", "e"]));
        postings.set(9, texts(&[]));
        assert_eq!(postings.values.texts().len(), 3);
        postings.clear(1);
        postings.clear(9);
        postings.clear(100);
        assert!(postings.many.is_empty() && postings.values.texts().is_empty());
    }

    fn slots(values: &Values, text: &str) -> Vec<u32> {
        let slots: Vec<u32> = values.slots(text).collect();
        assert_eq!(values.count(text), slots.len());
        slots
    }

    #[test]
    fn s8_a_value_goes_with_its_last_slot_and_stays_until_then() {
        let mut values = Values::default();
        let a = values.add("a", 7);
        assert_eq!((values.add("a", 3), values.add("a", 3), values.add("a", 5)), (a, a, a));
        let b = values.add("b", 3);
        assert_eq!(slots(&values, "a"), [3, 5, 7]);
        values.remove(a, 5);
        values.remove(a, 3);
        values.remove(a, 3);
        assert_eq!((slots(&values, "a"), values.find("a")), (vec![7], Some(a)));
        values.remove(a, 7);
        values.remove(a, 7);
        assert_eq!((values.find("a"), values.entries.len(), values.by_text.len()), (None, 1, 1));
        assert_eq!((values.text(b), slots(&values, "b")), ("b", vec![3]));
        assert_eq!(values.texts(), [Arc::from("b")]);
    }

    #[test]
    fn many_values_are_all_found_when_the_table_has_grown() {
        let mut values = Values::default();
        for slot in 0..1000_u32 {
            values.add(slot.to_string(), slot);
        }
        assert!((0..1000).all(|slot| slots(&values, &slot.to_string()) == [slot]));
    }

    #[test]
    fn places_are_used_again_and_visited_in_order() {
        let mut slab = Slab::default();
        let [a, b, c] = ["a", "b", "c"].map(|text| slab.insert(text));
        assert_eq!((slab.remove(b), slab.remove(b), slab.remove(9)), (Some("b"), None, None));
        assert_eq!((slab.len(), slab.get(b)), (2, None));
        assert_eq!(slab.insert("d"), b);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(a, &"a"), (b, &"d"), (c, &"c")]);
        assert_eq!((slab.len(), slab.places()), (3, 3));
    }
}
