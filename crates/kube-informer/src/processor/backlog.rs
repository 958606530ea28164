//! What waits for one listener: every event in order while that is little, merged by key when it is
//! much. No async, no locks, no clock.

mod merged;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Event, Object};

use merged::Merged;

/// How many events wait one by one before further ones are merged by key.
///
/// Enough for the bursts that controllers cause (a rollout, a drained node), so that usually every
/// state is seen. Little enough to cost nothing: two pointers and a tag each, and the old states of
/// objects that they keep alive, about 1 MB of pods. client-go begins to log at the same number.
pub(crate) const BACKLOG_EVENTS_MAX: usize = 1024;

/// What listeners are told. Lists are shared between all of them.
#[derive(Clone, Debug)]
pub(crate) enum Notification {
    /// One object was added, updated or deleted.
    Event(Event),
    /// The first list: each object is added, as an initial one.
    Initial(Arc<[Object]>),
    /// Objects that a relist found as they were: each is an update to the same version.
    Unchanged(Arc<[Object]>),
    /// All objects, since the resync period of the listener is over.
    Resync(Arc<[Object]>),
    /// The first list is complete.
    Synced,
}

impl Notification {
    pub(super) fn is_synced(&self) -> bool {
        matches!(self, Notification::Synced | Notification::Event(Event::Synced))
    }
}

/// The queue of one listener.
///
/// Two parts, delivered one after the other: `queue` has everything in order. Once it has `limit`
/// single events, further ones go to `merged`, until that is empty again.
pub(super) struct Backlog {
    queue: VecDeque<Item>,
    merged: Merged,
    limit: usize,
    only_changes: bool,
    /// Events in `queue` that are not part of a list.
    singles: usize,
    /// Events in `queue`, those in lists too.
    queued: usize,
    /// By kind: a list waits, and nothing of it has been delivered yet.
    waits: [bool; 3],
    synced: bool,
    merged_total: u64,
    skipped_total: u64,
}

enum Item {
    Event(Event),
    List { kind: ListKind, objects: Arc<[Object]>, next: usize },
}

#[derive(Clone, Copy, PartialEq)]
enum ListKind {
    Initial,
    Unchanged,
    Resync,
}

impl ListKind {
    fn event(self, object: Object) -> Event {
        match self {
            ListKind::Initial => Event::Added { object, initial: true },
            ListKind::Unchanged => Event::Updated { old: object.clone(), new: object },
            ListKind::Resync => Event::Resynced(object),
        }
    }
}

impl Backlog {
    pub(super) fn new(limit: usize, only_changes: bool) -> Self {
        Self {
            queue: VecDeque::new(),
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

    pub(super) fn push(&mut self, notification: &Notification) {
        match notification {
            Notification::Event(Event::Synced) | Notification::Synced => self.push_synced(),
            Notification::Event(Event::Resynced(object)) => {
                self.push_repeated(ListKind::Resync, &[object.clone()].into());
            }
            Notification::Event(event) => self.push_event(event.clone()),
            Notification::Initial(objects) if self.is_merging() => {
                let added = |object: &Object| ListKind::Initial.event(object.clone());
                objects.iter().map(added).for_each(|event| self.push_event(event));
            }
            Notification::Initial(objects) => self.push_list(ListKind::Initial, objects),
            Notification::Unchanged(objects) => self.push_repeated(ListKind::Unchanged, objects),
            Notification::Resync(objects) => self.push_repeated(ListKind::Resync, objects),
        }
    }

    fn push_event(&mut self, event: Event) {
        if self.only_changes && is_repetition(&event) {
            return;
        }
        if self.is_merging() || self.singles >= self.limit {
            self.merged_total += u64::from(self.merged.push(event));
        } else {
            self.singles += 1;
            self.queued += 1;
            self.queue.push_back(Item::Event(event));
        }
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
            self.queue.push_back(Item::Event(Event::Synced));
        }
    }

    /// Repetitions say nothing new: one that has not begun is enough, and none is better for a
    /// listener that is far behind.
    fn push_repeated(&mut self, kind: ListKind, objects: &Arc<[Object]>) {
        if self.only_changes || objects.is_empty() {
            return;
        }
        let behind = self.is_merging() || self.singles >= self.limit;
        if behind || self.waits[kind as usize] {
            self.skipped_total += objects.len() as u64;
        } else {
            self.push_list(kind, objects);
        }
    }

    fn push_list(&mut self, kind: ListKind, objects: &Arc<[Object]>) {
        if objects.is_empty() {
            return;
        }
        self.waits[kind as usize] = true;
        self.queued += objects.len();
        self.queue.push_back(Item::List { kind, objects: objects.clone(), next: 0 });
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let Some(front) = self.queue.front_mut() else { return self.merged.pop() };
        self.queued -= 1;
        let Item::List { kind, objects, next } = front else {
            let Some(Item::Event(event)) = self.queue.pop_front() else { return None };
            self.singles -= usize::from(!matches!(event, Event::Synced));
            return Some(event);
        };
        let event = kind.event(objects[*next].clone());
        if *next == 0 {
            self.waits[*kind as usize] = false;
        }
        *next += 1;
        if *next == objects.len() {
            self.queue.pop_front();
        }
        Some(event)
    }
}

/// An update that changes nothing. Without versions nobody can tell.
fn is_repetition(event: &Event) -> bool {
    let Event::Updated { old, new } = event else { return false };
    let comparable = !new.resource_version().is_empty();
    old.is_same_instance(new) || comparable && old.same_content(new)
}

#[cfg(test)]
mod tests;
