//! A queue of deltas in order of arrival.

use std::collections::VecDeque;

use hashbrown::HashSet;

use crate::{Delta, List, ObjectKey};

#[derive(Default)]
pub(super) struct InOrder(VecDeque<Delta>);

impl InOrder {
    pub(super) fn push(&mut self, delta: Delta) {
        self.0.push_back(delta);
    }

    /// Pops a list alone, or other deltas together, up to `max`.
    pub(super) fn pop(&mut self, max: usize) -> Vec<Delta> {
        let count = match self.0.iter().take(max).position(is_list) {
            Some(0) => 1,
            Some(before) => before,
            None => self.0.len().min(max),
        };
        self.0.drain(..count).collect()
    }

    /// Queues nothing while a list is queued: the list affects every known object, including those that it
    /// deletes.
    pub(super) fn resync(&mut self, known: List) {
        if self.0.iter().any(is_list) {
            return;
        }
        let waiting: HashSet<ObjectKey> = self.keys().into_iter().collect();
        self.0.extend(
            known.into_iter().filter(|object| !waiting.contains(object.key())).map(Delta::Sync),
        );
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Delta> {
        self.0.iter()
    }

    /// Returns all keys, including those within a queued list.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        let mut seen = HashSet::new();
        let keys = self.0.iter().flat_map(Delta::keys);
        keys.filter(|key| seen.insert(*key)).cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn is_list(delta: &Delta) -> bool {
    matches!(delta, Delta::ReplacedAll { .. })
}
