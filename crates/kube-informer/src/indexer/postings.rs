//! One index: which slots have which values.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::definition::Definition;
use super::values::Values;

/// An index as the store keeps it. What a slot has is remembered by numbers: a function that gives
/// something else the next time cannot leave anything behind.
pub(super) struct Postings {
    pub(super) definition: Arc<Definition>,
    pub(super) values: Values,
    /// By slot.
    held: Vec<Held>,
    /// The values of slots that hold several, in order.
    many: BTreeMap<u32, Box<[u32]>>,
    /// How many slots have an object whose values were not put in yet.
    unset: usize,
}

/// What a slot has in an index.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    /// The object was there before the index, and its values were not put in yet.
    Unset,
    None,
    One(u32),
    Many,
}

impl Postings {
    /// An index of a store in which these slots have an object.
    pub(super) fn new(definition: Arc<Definition>, slots: impl Iterator<Item = u32>) -> Self {
        let (mut held, mut unset) = (Vec::new(), 0);
        for slot in slots {
            held.resize(slot as usize, Held::None);
            held.push(Held::Unset);
            unset += 1;
        }
        Self { definition, values: Values::default(), held, many: BTreeMap::new(), unset }
    }

    /// Every object is in the index: only now may anybody ask it.
    pub(super) fn is_complete(&self) -> bool {
        self.unset == 0
    }

    pub(super) fn is_unset(&self, slot: u32) -> bool {
        self.held(slot) == Held::Unset
    }

    /// The slot has these values from now on, and no others. They are sorted, each once.
    pub(super) fn set(&mut self, slot: u32, texts: Vec<Arc<str>>) {
        if let ([text], Held::One(id)) = (&*texts, self.held(slot))
            && self.values.text(id) == &**text
        {
            return;
        }
        // First in, then out, so that a value that stays keeps its number.
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

    /// The slot has no object any more.
    pub(super) fn clear(&mut self, slot: u32) {
        for id in self.take(slot) {
            self.values.remove(id, slot);
        }
    }

    /// The numbers that the slot had; it has none now.
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

#[cfg(test)]
mod tests {
    use super::super::definition::Source;
    use super::*;

    #[test]
    fn s8_nothing_is_left_of_slots_that_were_cleared() {
        let definition = Arc::new(Definition::new("".into(), Source::Controller));
        let mut postings = Postings::new(definition, [1, 4].into_iter());
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
}
