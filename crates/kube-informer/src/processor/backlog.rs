//! What waits for one listener: every event in order while that is little, merged by key when it is
//! much. No async, no locks, no clock.

mod merged;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::indexer::{Applied, Listed};
use crate::{Event, Object};

use merged::Merged;

/// How many events wait one by one before further ones are merged by key, or the informer waits for
/// a handler that has to see every state.
///
/// Enough for the bursts that controllers cause (a rollout, a drained node), so that usually every
/// state is seen. Little enough to cost nothing: two pointers and a tag each, and the old states of
/// objects that they keep alive, about 1 MB of pods. client-go begins to log at the same number.
pub(crate) const BACKLOG_EVENTS_MAX: usize = 1024;

/// The queue of one listener.
///
/// Two parts, delivered one after the other: `queue` has everything in order. Once it has `limit`
/// single events, further ones go to `merged`, until that is empty again.
pub(super) struct Backlog {
    queue: VecDeque<Applied>,
    /// How many objects of the list at the front of the queue have been delivered.
    of_front: usize,
    merged: Merged,
    limit: usize,
    only_changes: bool,
    /// Events in `queue` that are not part of a list.
    singles: usize,
    /// Events in `queue`, those in lists too.
    queued: usize,
    /// By what they are: a list waits, and nothing of it has been delivered yet.
    waits: [bool; 3],
    synced: bool,
    merged_total: u64,
    skipped_total: u64,
}

/// An event, and what is let go of with it: types of programs may be in it, so that it is dropped only
/// without a lock.
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

    /// How many events wait; a list counts as its objects.
    pub(super) fn len(&self) -> usize {
        self.queued + self.merged.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events wait one by one that are not part of a list.
    pub(super) fn singles(&self) -> usize {
        self.singles
    }

    /// Takes out all that waits; what was counted stays.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self {
            synced: self.synced,
            merged_total: self.merged_total,
            skipped_total: self.skipped_total,
            ..Self::new(self.limit, self.only_changes)
        };
        std::mem::replace(self, empty)
    }

    /// Events are being merged, since too many wait.
    pub(super) fn is_merging(&self) -> bool {
        !self.merged.is_empty()
    }

    /// How many events have become part of another one, ever.
    pub(super) fn merged_total(&self) -> u64 {
        self.merged_total
    }

    /// How many repetitions (resyncs, unchanged objects of relists) were left out, ever.
    pub(super) fn skipped_total(&self) -> u64 {
        self.skipped_total
    }

    /// Queues what was done. What that supersedes is handed out, to be dropped without a lock.
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

    /// Queues a single event; true if it has to be merged instead.
    fn merges(&mut self, applied: &Applied) -> bool {
        let merges = self.is_merging() || self.singles >= self.limit;
        if !merges {
            self.singles += 1;
            self.queued += 1;
            self.queue.push_back(applied.clone());
        }
        merges
    }

    /// Once in the life of a listener, after everything that came before.
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

    /// Repetitions say nothing new: one that has not begun is enough, and none is better for a
    /// listener that is far behind.
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

    /// The next event of the list that was at the front.
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

/// An update that changes nothing. Without versions nobody can tell.
fn is_repetition(old: &Object, new: &Object) -> bool {
    let comparable = !new.resource_version().is_empty();
    old.is_same_instance(new) || comparable && old.same_content(new)
}

#[cfg(test)]
mod tests;
