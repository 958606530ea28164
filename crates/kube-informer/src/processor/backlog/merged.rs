//! Events merged by key: the shortest way from the state that a listener knows to the current state.

use std::collections::{BTreeMap, HashMap};

use crate::{Deleted, Event, FinalState, Object, ObjectKey};

/// At most one entry per key, in the order in which the keys first had news.
///
/// Only keys that the listener knows or that are in the cache have an entry, and an entry is two events at
/// most. This bounds the backlog.
#[derive(Default)]
pub(super) struct Merged {
    entries: BTreeMap<u64, Pending>,
    places: HashMap<ObjectKey, u64>,
    /// The position of the end of the first list, if that has not been delivered yet.
    synced: Option<u64>,
    next: u64,
    len: usize,
}

/// The undelivered news about one key.
enum Pending {
    Added {
        object: Object,
        initial: bool,
    },
    Updated {
        old: Object,
        new: Object,
    },
    Deleted(Deleted),
    /// Deleted and recreated since: two events, because the listener knows the deleted object.
    Replaced {
        gone: Deleted,
        object: Object,
    },
}

impl Merged {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of pending events.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Records the current state of an object. Returns whether that was merged into a pending entry.
    pub(super) fn is(
        &mut self,
        old: Option<&Object>,
        new: &Object,
        initial: bool,
        let_go: &mut Vec<Object>,
    ) -> bool {
        let (key, new) = (new.key(), new.clone());
        let Some((place, before)) = self.take(key) else {
            let pending = match old.cloned() {
                Some(old) => Pending::Updated { old, new },
                None => Pending::Added { object: new, initial },
            };
            self.begin(pending);
            return false;
        };
        self.put(place, before.then_is(new, let_go));
        true
    }

    /// Records that an object is gone. Returns whether that was merged into a pending entry, or cancelled it.
    pub(super) fn is_gone(&mut self, gone: &Deleted, let_go: &mut Vec<Object>) -> bool {
        let Some((place, before)) = self.take(gone.key()) else {
            self.begin(Pending::Deleted(gone.clone()));
            return false;
        };
        match before.then_is_gone(gone.clone(), let_go) {
            Some(pending) => self.put(place, pending),
            None => self.forget(gone.key()),
        }
        true
    }

    /// Takes out the pending entry of a key, with its place.
    fn take(&mut self, key: &ObjectKey) -> Option<(u64, Pending)> {
        let place = *self.places.get(key)?;
        let pending = self.entries.remove(&place)?;
        self.len -= pending.events();
        Some((place, pending))
    }

    /// Adds the first entry of a key.
    fn begin(&mut self, pending: Pending) {
        let place = self.place();
        self.places.insert(pending.key().clone(), place);
        self.put(place, pending);
    }

    pub(super) fn push_synced(&mut self) {
        self.synced = Some(self.place());
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let first = self.entries.first_key_value().map_or(u64::MAX, |(place, _)| *place);
        if self.synced.take_if(|place| *place < first).is_some() {
            self.len -= 1;
            return Some(Event::Synced);
        }
        let (place, pending) = self.entries.pop_first()?;
        self.len -= pending.events();
        let event = match pending {
            Pending::Replaced { gone, object } => {
                // The second half comes next, unless it is cancelled first.
                self.put(place, Pending::Added { object, initial: false });
                return Some(Event::Deleted(gone));
            }
            Pending::Added { object, initial } => Event::Added { object, initial },
            Pending::Updated { old, new } => Event::Updated { old, new },
            Pending::Deleted(deleted) => Event::Deleted(deleted),
        };
        if let Some(object) = event.object() {
            self.forget(object.key());
        }
        Some(event)
    }

    fn place(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn put(&mut self, place: u64, pending: Pending) {
        self.len += pending.events();
        self.entries.insert(place, pending);
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.places.remove(key);
        if self.places.is_empty() {
            // The burst is over: release its memory.
            self.places = HashMap::new();
        }
    }
}

impl Pending {
    fn key(&self) -> &ObjectKey {
        match self {
            Pending::Added { object, .. } | Pending::Updated { new: object, .. } => object.key(),
            Pending::Deleted(gone) | Pending::Replaced { gone, .. } => gone.key(),
        }
    }

    fn events(&self) -> usize {
        if matches!(self, Pending::Replaced { .. }) { 2 } else { 1 }
    }

    fn then_is(self, new: Object, let_go: &mut Vec<Object>) -> Self {
        match self {
            Pending::Added { initial, object } => {
                let_go.push(object);
                Pending::Added { object: new, initial }
            }
            Pending::Updated { old, new: between } => {
                let_go.push(between);
                Pending::Updated { old, new }
            }
            Pending::Deleted(gone) => Pending::Replaced { gone, object: new },
            Pending::Replaced { gone, object } => {
                let_go.push(object);
                Pending::Replaced { gone, object: new }
            }
        }
    }

    /// Returns `None` if the listener need not learn of either.
    fn then_is_gone(self, deleted: Deleted, let_go: &mut Vec<Object>) -> Option<Self> {
        match self {
            // It was added and deleted before the listener saw it.
            Pending::Added { object, .. } => {
                let_go.extend([object, deleted.object]);
                None
            }
            Pending::Replaced { gone, object } => {
                let_go.extend([object, deleted.object]);
                Some(Pending::Deleted(gone))
            }
            Pending::Updated { old, new } => {
                let_go.extend([old, new]);
                Some(Pending::Deleted(deleted))
            }
            // Deleted twice: an observed delete is more precise than an inferred one.
            Pending::Deleted(gone) => {
                let (more, less) = match deleted.final_state {
                    FinalState::Known => (deleted, gone),
                    FinalState::Unknown => (gone, deleted),
                };
                let_go.push(less.object);
                Some(Pending::Deleted(more))
            }
        }
    }
}
