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

    /// The object is this now. Whether that became part of what was waiting.
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

    /// The object is gone. Whether that became part of what was waiting, or cancelled it.
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

    /// The first event of a key.
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

    /// `None` if the listener need not know of either.
    fn then_is_gone(self, deleted: Deleted, let_go: &mut Vec<Object>) -> Option<Self> {
        match self {
            // It came and went unseen.
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
            // Told twice: a delete that was seen says more than one that was found out.
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
