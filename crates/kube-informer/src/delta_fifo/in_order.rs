//! One delta after the other, in the order of their arrival.

use std::collections::VecDeque;

use hashbrown::HashSet;

use crate::{Delta, List, ObjectKey};

#[derive(Default)]
pub(super) struct InOrder(VecDeque<Delta>);

impl InOrder {
    pub(super) fn push(&mut self, delta: Delta) {
        self.0.push_back(delta);
    }

    /// A list comes alone; what else waits comes together, up to `max`.
    pub(super) fn pop(&mut self, max: usize) -> Vec<Delta> {
        let alone = |delta: &Delta| matches!(delta, Delta::ReplacedAll { .. });
        let count = match self.0.iter().take(max).position(alone) {
            Some(0) => 1,
            Some(before) => before,
            None => self.0.len().min(max),
        };
        self.0.drain(..count).collect()
    }

    pub(super) fn resync(&mut self, known: List) {
        let waiting: HashSet<ObjectKey> = self.keys().into_iter().collect();
        self.0.extend(
            known.into_iter().filter(|object| !waiting.contains(object.key())).map(Delta::Sync),
        );
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Delta> {
        self.0.iter()
    }

    /// Also those within a list that waits.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        let mut see = |key: &ObjectKey| {
            if seen.insert(key.clone()) {
                keys.push(key.clone());
            }
        };
        for delta in &self.0 {
            if let Delta::ReplacedAll { objects, .. } = delta {
                for object in objects {
                    see(object.key());
                }
            }
            if let Some(object) = delta.object() {
                see(object.key());
            }
        }
        keys
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
