//! The backlog of one listener: all events in order while there are few, merged by key once there are many.
//! Free of async code, locks and clocks.

mod merged;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::indexer::{Applied, Listed};
use crate::{Event, Object};

use merged::Merged;

/// The number of events that wait individually. Beyond it, further events are merged by key, or the informer
/// waits, for a handler that must see every state.
///
/// This is enough for the bursts that controllers cause (a rollout, a drained node), so that handlers usually
/// see every state. It is also cheap: two pointers and a tag per event, plus the old states that the events
/// keep alive, about 1 MB of pods. client-go starts logging at the same number.
pub(crate) const BACKLOG_EVENTS_MAX: usize = 1024;

/// The queue of one listener.
///
/// It has two parts, delivered one after the other. `queue` has every event in order. Once it holds `limit`
/// single events, further events go to `merged`, until that is empty again.
pub(super) struct Backlog {
    queue: VecDeque<Applied>,
    /// The number of objects that have been delivered of the list at the front of the queue.
    of_front: usize,
    merged: Merged,
    limit: usize,
    only_changes: bool,
    /// The number of events in `queue` that are not part of a list.
    singles: usize,
    /// The number of events in `queue`, including those in lists.
    queued: usize,
    /// For each sort of list: whether one is queued of which nothing has been delivered yet.
    waits: [bool; 3],
    synced: bool,
    merged_total: u64,
    skipped_total: u64,
}

/// An event, and the list that it was the last of. The list may contain user types, so it must be dropped
/// without a lock held.
pub(super) type Popped = (Event, Option<Arc<[Object]>>);

impl Backlog {
    pub(super) fn new(limit: usize, only_changes: bool) -> Self {
        Self {
            queue: VecDeque::new(),
            of_front: 0,
            merged: Merged::default(),
            limit,
            only_changes,
            singles: 0,
            queued: 0,
            waits: [false; 3],
            synced: false,
            merged_total: 0,
            skipped_total: 0,
        }
    }

    /// Returns the number of pending events. A list counts as its objects.
    pub(super) fn len(&self) -> usize {
        self.queued + self.merged.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pending events that wait individually and are not part of a list.
    pub(super) fn singles(&self) -> usize {
        self.singles
    }

    /// Takes out everything that is pending, but keeps the counters.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self {
            synced: self.synced,
            merged_total: self.merged_total,
            skipped_total: self.skipped_total,
            ..Self::new(self.limit, self.only_changes)
        };
        std::mem::replace(self, empty)
    }

    /// Returns whether events are being merged because too many are pending.
    pub(super) fn is_merging(&self) -> bool {
        !self.merged.is_empty()
    }

    /// Returns how many events have been merged into another one so far.
    pub(super) fn merged_total(&self) -> u64 {
        self.merged_total
    }

    /// Returns how many repetitions (resyncs, unchanged objects of relists) have been skipped so far.
    pub(super) fn skipped_total(&self) -> u64 {
        self.skipped_total
    }

    /// Queues the effect of a write. Superseded objects go to `let_go`, to be dropped without a lock held.
    pub(super) fn push(&mut self, applied: &Applied, let_go: &mut Vec<Object>) {
        match applied {
            Applied::Added(new) => {
                if self.merges(applied) {
                    self.merged_total += u64::from(self.merged.is(None, new, false, let_go));
                }
            }
            Applied::Updated { old, new } => {
                if !(self.only_changes && is_repetition(old, new)) && self.merges(applied) {
                    self.merged_total += u64::from(self.merged.is(Some(old), new, false, let_go));
                }
            }
            Applied::Deleted(gone) => {
                if self.merges(applied) {
                    self.merged_total += u64::from(self.merged.is_gone(gone, let_go));
                }
            }
            Applied::List(Listed::Initial, objects) if self.is_merging() => {
                for new in objects.iter() {
                    self.merged_total += u64::from(self.merged.is(None, new, true, let_go));
                }
            }
            Applied::List(Listed::Initial, objects) => self.push_list(Listed::Initial, objects),
            Applied::List(listed, objects) => self.push_repeated(*listed, objects),
            Applied::Synced => self.push_synced(),
        }
    }

    /// Queues a single event unless it has to be merged. Returns whether it has to.
    fn merges(&mut self, applied: &Applied) -> bool {
        let merges = self.is_merging() || self.singles >= self.limit;
        if !merges {
            self.singles += 1;
            self.queued += 1;
            self.queue.push_back(applied.clone());
        }
        merges
    }

    /// Queues the end of the initial list, once per listener, after everything that came before.
    fn push_synced(&mut self) {
        if std::mem::replace(&mut self.synced, true) {
            return;
        }
        if self.is_merging() {
            self.merged.push_synced();
        } else {
            self.queued += 1;
            self.queue.push_back(Applied::Synced);
        }
    }

    /// Queues a repetition unless it is redundant. A repetition carries no news: one that has not started is
    /// enough, and a listener that is far behind gets none.
    fn push_repeated(&mut self, listed: Listed, objects: &Arc<[Object]>) {
        if self.only_changes || objects.is_empty() {
            return;
        }
        let behind = self.is_merging() || self.singles >= self.limit;
        if behind || self.waits[listed as usize] {
            self.skipped_total += objects.len() as u64;
        } else {
            self.push_list(listed, objects);
        }
    }

    fn push_list(&mut self, listed: Listed, objects: &Arc<[Object]>) {
        if objects.is_empty() {
            return;
        }
        self.waits[listed as usize] = true;
        self.queued += objects.len();
        self.queue.push_back(Applied::List(listed, objects.clone()));
    }

    pub(super) fn pop(&mut self) -> Option<Popped> {
        let Some(front) = self.queue.pop_front() else { return Some((self.merged.pop()?, None)) };
        self.queued -= 1;
        self.singles -= usize::from(!matches!(front, Applied::List(..) | Applied::Synced));
        Some(match front.into_event() {
            Ok(event) => (event, None),
            Err((listed, objects)) => self.pop_of(listed, objects),
        })
    }

    /// Returns the next event of the list that was at the front.
    fn pop_of(&mut self, listed: Listed, objects: Arc<[Object]>) -> Popped {
        if self.of_front == 0 {
            self.waits[listed as usize] = false;
        }
        let event = listed.event(objects[self.of_front].clone());
        self.of_front += 1;
        if self.of_front == objects.len() {
            self.of_front = 0;
            return (event, Some(objects));
        }
        self.queue.push_front(Applied::List(listed, objects));
        (event, None)
    }
}

/// Returns whether an update changes nothing. Without versions there is no way to tell.
fn is_repetition(old: &Object, new: &Object) -> bool {
    let comparable = !new.resource_version().is_empty();
    old.is_same_instance(new) || comparable && old.same_content(new)
}

#[cfg(test)]
mod tests;
