//! Which objects a listener wants, and what an event means to it.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Deleted, Event, FinalState, Object, ObjectKey};

pub(crate) type ErasedFilter = Box<dyn Fn(&Object) -> bool + Send + Sync>;

/// The filters of one listener.
///
/// Whether it has an object is remembered, not asked of the filter again: filters may change their
/// mind, events may have been merged, and the object of a delete may differ from all that was
/// delivered. So everything that was added is deleted in the end, and nothing else.
pub(super) struct Filter {
    passes: Vec<ErasedFilter>,
    /// The keys that the listener has; empty without filters.
    delivered: HashSet<ObjectKey>,
}

impl Filter {
    pub(super) fn new(passes: Vec<ErasedFilter>) -> Self {
        Self { passes, delivered: HashSet::new() }
    }

    /// What the listener is to be told of an event, if anything; `panicked` hears of filters that do.
    pub(super) fn apply(&mut self, event: Event, panicked: impl FnOnce(&Object)) -> Option<Event> {
        if self.passes.is_empty() {
            return Some(event);
        }
        let (old, new) = match &event {
            Event::Synced => return Some(event),
            Event::Deleted(gone) => return self.delivered.remove(gone.key()).then_some(event),
            Event::Added { object, .. } | Event::Resynced(object) => (object, object),
            Event::Updated { old, new } => (old, new),
        };
        match (self.delivered.contains(new.key()), self.passes(new, panicked)) {
            (true, true) => Some(event),
            (false, true) => {
                self.delivered.insert(new.key().clone());
                let initial = matches!(event, Event::Added { initial: true, .. });
                Some(Event::Added { object: new.clone(), initial })
            }
            (true, false) => {
                self.delivered.remove(new.key());
                let final_state = FinalState::Known;
                Some(Event::Deleted(Deleted { object: old.clone(), final_state }))
            }
            (false, false) => None,
        }
    }

    fn passes(&self, object: &Object, panicked: impl FnOnce(&Object)) -> bool {
        let all = || self.passes.iter().all(|pass| pass(object));
        catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|_| {
            panicked(object);
            false
        })
    }
}

#[cfg(test)]
mod tests;
