//! Filters of a listener: the objects that it wants, and how an event looks through the filter.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Deleted, Event, FinalState, Object, ObjectKey};

pub(crate) type ErasedFilter = Box<dyn Fn(&Object) -> bool + Send + Sync>;

/// The filters of one listener.
///
/// The filter remembers which objects the listener has, rather than asking its functions again: their answers
/// may change, events may have been merged, and the object of a delete may differ from every state that was
/// delivered. Therefore every object that was added is eventually deleted, and no other.
pub(super) struct Filter {
    passes: Vec<ErasedFilter>,
    /// The keys of the objects that the listener has; empty if there are no filters.
    delivered: HashSet<ObjectKey>,
}

impl Filter {
    pub(super) fn new(passes: Vec<ErasedFilter>) -> Self {
        Self { passes, delivered: HashSet::new() }
    }

    /// Returns the event to deliver, if any. Calls `panicked` if a filter panics.
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
