//! The values of one index, and the slots that have them.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::slab::Slab;

/// Values under numbers, found by their text. A value whose last slot leaves goes with it.
#[derive(Default)]
pub(super) struct Values {
    entries: Slab<Value>,
    by_text: HashTable<u32>,
    /// Seeded at random, since users choose the texts; nobody sees the order of this table.
    hasher: DefaultHashBuilder,
}

struct Value {
    text: Arc<str>,
    slots: Slots,
}

/// At least one slot. Half of all indexes are close to unique, and a lone slot needs no allocation;
/// a tree is as small as a hash set of such small numbers, and gives them in order.
enum Slots {
    One(u32),
    Many(BTreeSet<u32>),
}

impl Values {
    /// The number of the value, which this slot now has.
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

    /// This slot does not have the value any more.
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

    /// The slots that have this value, in order.
    pub(super) fn slots(&self, text: &str) -> impl Iterator<Item = u32> {
        let value = self.find(text).and_then(|id| self.entries.get(id));
        let (one, many) = match value.map(|value| &value.slots) {
            Some(Slots::One(slot)) => (Some(*slot), None),
            Some(Slots::Many(slots)) => (None, Some(slots)),
            None => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    /// How many slots have this value.
    pub(super) fn count(&self, text: &str) -> usize {
        match self.find(text).and_then(|id| self.entries.get(id)).map(|value| &value.slots) {
            Some(Slots::One(_)) => 1,
            Some(Slots::Many(slots)) => slots.len(),
            None => 0,
        }
    }

    /// All values that some slot has.
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

    /// Whether any slot is left; if not, nothing was done.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
