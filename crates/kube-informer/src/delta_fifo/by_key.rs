//! A queue that groups all deltas of a key.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::{Deleted, Delta, Error, FinalState, List, Lister, Object, ObjectKey};

#[derive(Default)]
pub(super) struct ByKey {
    /// No key has an empty list of deltas.
    items: HashMap<ObjectKey, Vec<Delta>>,
    /// Each key once, in order of its first delta.
    order: VecDeque<ObjectKey>,
}

impl ByKey {
    pub(super) fn push(&mut self, delta: Delta, known: &Lister) {
        let Some(object) = delta.object() else { return };
        let key = object.key().clone();
        // A delete of an unknown object is no news.
        let unknown = |queue: &Self| !queue.items.contains_key(&key) && known.get(&key).is_none();
        if matches!(delta, Delta::Deleted(_)) && unknown(self) {
            return;
        }
        self.append(&key, delta, known);
    }

    fn append(&mut self, key: &ObjectKey, delta: Delta, known: &Lister) {
        let deltas = self.items.entry(key.clone()).or_default();
        if deltas.is_empty() {
            self.order.push_back(key.clone());
        }
        match (deltas.split_last_mut(), delta) {
            (Some((Delta::Deleted(last), before)), Delta::Deleted(again)) => {
                let stored = known.get(key);
                let earlier = before.iter().filter_map(Delta::object).chain(&stored);
                if is_better(&again, last, earlier) {
                    *last = again;
                }
            }
            (_, delta) => deltas.push(delta),
        }
    }

    /// Queues the new content, and then the deletes, including those of objects that exist only in the queue.
    pub(super) fn replace(&mut self, objects: Vec<Object>, unreadable: &[Error], known: &Lister) {
        let mut listed: HashSet<ObjectKey> =
            unreadable.iter().filter_map(|error| error.key().cloned()).collect();
        listed.extend(objects.iter().map(|object| object.key().clone()));
        for object in objects {
            self.append(&object.key().clone(), Delta::Replaced(object), known);
        }
        let queued: Vec<_> =
            self.order.iter().filter(|key| !listed.contains(*key)).cloned().collect();
        for key in queued {
            let newest = self.items[&key].last().and_then(Delta::object).cloned();
            if let Some(object) = newest {
                self.append(&key, Self::tombstone(object), known);
            }
        }
        for object in known.list() {
            if !listed.contains(object.key()) && !self.items.contains_key(object.key()) {
                self.append(&object.key().clone(), Self::tombstone(object), known);
            }
        }
    }

    /// Queues the delete of an object whose last state cannot be read.
    pub(super) fn unreadable(&mut self, error: &Error, deleted: bool, known: &Lister) {
        let Some(key) = error.key().filter(|_| deleted) else { return };
        let newest = self.items.get(key).and_then(|deltas| deltas.last()).and_then(Delta::object);
        if let Some(object) = newest.cloned().or_else(|| known.get(key)) {
            self.append(key, Self::tombstone(object), known);
        }
    }

    fn tombstone(object: Object) -> Delta {
        Delta::Deleted(Deleted { object, final_state: FinalState::Unknown })
    }

    pub(super) fn resync(&mut self, known: List) {
        for object in known {
            let key = object.key().clone();
            if !self.items.contains_key(&key) {
                self.items.insert(key.clone(), vec![Delta::Sync(object)]);
                self.order.push_back(key);
            }
        }
    }

    pub(super) fn pop(&mut self) -> Vec<Delta> {
        self.order.pop_front().and_then(|key| self.items.remove(&key)).unwrap_or_default()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Vec<Delta>> {
        self.items.get(key)
    }

    /// Returns all deltas, those of the first key first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Delta> {
        self.order.iter().flat_map(|key| &self.items[key])
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.order.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }
}

/// Returns whether the second of two consecutive deletes is the one to keep. An observed delete is preferred,
/// because it has the final state. But a store ignores a delete that is older than the stored object. If the
/// server was restored from a backup, the observed delete can be older, and then the tombstone is kept.
fn is_better<'a>(
    again: &Deleted,
    last: &Deleted,
    mut earlier: impl Iterator<Item = &'a Object>,
) -> bool {
    let (seen, tombstone) = match (last.final_state, again.final_state) {
        (FinalState::Known, FinalState::Known) => return false,
        (FinalState::Unknown, FinalState::Unknown) => return true,
        (FinalState::Known, FinalState::Unknown) => (last, again),
        (FinalState::Unknown, FinalState::Known) => (again, last),
    };
    let is_newer = |object: &Object| object.resource_version() > seen.resource_version();
    let is_heeded = !is_newer(tombstone) && !earlier.any(is_newer);
    (again.final_state == FinalState::Known) == is_heeded
}
