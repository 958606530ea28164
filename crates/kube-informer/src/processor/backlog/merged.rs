//! Events merged by key: what a listener needs to be told to get from what it knows to what is.

use std::collections::{BTreeMap, HashMap};

use crate::{Deleted, Event, FinalState, Object, ObjectKey};

/// At most one entry per key, in the order in which the keys first had something to tell.
///
/// Only keys that the listener knows or that the cache has are here, with two events at most: that
/// bounds what waits.
#[derive(Default)]
pub(super) struct Merged {
    entries: BTreeMap<u64, Pending>,
    places: HashMap<ObjectKey, u64>,
    /// Where the first list ended, if that still has to be told.
    synced: Option<u64>,
    next: u64,
    len: usize,
}

/// What a listener has to be told about one key.
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
    /// Deleted, and made again since: two events, as the listener knows the one that is gone.
    Replaced {
        gone: Deleted,
        object: Object,
    },
}

impl Merged {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether the event became part of one that was waiting, or cancelled it.
    pub(super) fn push(&mut self, event: Event) -> bool {
        let Some(key) = event.object().map(|object| object.key().clone()) else { return false };
        if let Some(place) = self.places.get(&key).copied()
            && let Some(before) = self.entries.remove(&place)
        {
            self.len -= before.events();
            match before.merge(event) {
                Some(pending) => self.put(place, pending),
                None => self.forget(&key),
            }
            return true;
        }
        if let Some(pending) = Pending::of(event) {
            let place = self.place();
            self.put(place, pending);
            self.places.insert(key, place);
        }
        false
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
                // The other half is next, unless it is cancelled before.
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
            // The storm is over: give back what it took.
            self.places = HashMap::new();
        }
    }
}

impl Pending {
    fn of(event: Event) -> Option<Self> {
        match event {
            Event::Added { object, initial } => Some(Pending::Added { object, initial }),
            Event::Updated { old, new } => Some(Pending::Updated { old, new }),
            Event::Deleted(deleted) => Some(Pending::Deleted(deleted)),
            // Never come here: the backlog skips the one and keeps the other apart.
            Event::Resynced(_) | Event::Synced => None,
        }
    }

    fn events(&self) -> usize {
        if matches!(self, Pending::Replaced { .. }) { 2 } else { 1 }
    }

    /// This, and then that, as one; `None` if the listener need not know of either.
    fn merge(self, event: Event) -> Option<Self> {
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                Some(self.then_is(object))
            }
            Event::Deleted(deleted) => self.then_is_gone(deleted),
            Event::Resynced(_) | Event::Synced => Some(self),
        }
    }

    fn then_is(self, new: Object) -> Self {
        match self {
            Pending::Added { initial, .. } => Pending::Added { object: new, initial },
            Pending::Updated { old, .. } => Pending::Updated { old, new },
            Pending::Deleted(gone) | Pending::Replaced { gone, .. } => {
                Pending::Replaced { gone, object: new }
            }
        }
    }

    fn then_is_gone(self, deleted: Deleted) -> Option<Self> {
        match self {
            // It came and went unseen.
            Pending::Added { .. } => None,
            Pending::Replaced { gone, .. } => Some(Pending::Deleted(gone)),
            Pending::Updated { .. } => Some(Pending::Deleted(deleted)),
            // Told twice: a delete that was seen says more than one that was found out.
            Pending::Deleted(gone) => match deleted.final_state {
                FinalState::Known => Some(Pending::Deleted(deleted)),
                FinalState::Unknown => Some(Pending::Deleted(gone)),
            },
        }
    }
}
