//! The state of each task in the queue, without clock, locks or waiting, which are in `shared`.
//!
//! A task occupies one slot for as long as the queue knows it, in whatever state it is: ready, in progress, due
//! later, or several of these. Linked lists run through the slots, so moving a task between lists allocates
//! nothing.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Nanoseconds since the queue was created: half the size of an `Instant`, and each task has three.
pub(super) type Nanos = u64;

/// Every so many tasks, the longest-waiting one is next regardless of its priority. However many tasks of a
/// higher priority keep arriving, the lower ones get this share.
pub(super) const OLDEST_EVERY: u32 = 16;

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

/// A due time that never comes.
const NEVER: Nanos = Nanos::MAX;

/// The number of priority levels that are kept while empty, since they are likely to be used again.
const LEVELS_KEPT: usize = 8;

/// An empty queue releases the memory of more slots than this.
const SLOTS_KEPT: usize = 1024;

pub(super) struct State<T> {
    /// Slots by task.
    table: HashTable<u32>,
    slots: Vec<Slot<T>>,
    /// The head of the list of free slots, linked by `next`.
    free: u32,
    /// The ready tasks, by descending priority and then in order of arrival. Programs use few priorities, so
    /// a vector is faster than a tree.
    ready: Vec<Level>,
    /// Tasks in progress, longest-running first.
    running: List,
    /// Tasks that are due later.
    later: BTreeSet<(Nanos, u32)>,
    counts: Counts,
    shut_down: bool,
    /// Tasks handed out since the oldest one was last chosen.
    turn: u32,
}

/// Counters.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ready: usize,
    pub(super) running: usize,
    /// The running tasks that will be repeated.
    again: usize,
    /// Adds, except for those that were refused and those of tasks that were already ready.
    pub(super) adds: u64,
    /// Adds for later, even if due at once: mostly retries.
    pub(super) retries: u64,
}

/// The tasks of one priority.
struct Level {
    priority: i32,
    tasks: List,
}

struct Slot<T> {
    /// `None` only if the slot is free.
    task: Option<T>,
    hash: Hashed,
    place: Place,
    /// The priority of the task that is ready, or that will be when its worker finishes.
    priority: i32,
    /// The priority of the task when it comes due.
    later_priority: i32,
    /// Since when the task has been ready or in progress.
    since: Nanos,
    /// When the task was added again while in progress.
    again_since: Nanos,
    /// When the task is due, independently of its other states.
    due: Nanos,
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Due later, if at all.
    Idle,
    Ready,
    Running,
    /// In progress, and to be repeated after that.
    RunningAgain,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// When a task is due, and the current time.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) now: Nanos,
    pub(super) at: Nanos,
}

/// The effect of a change on waiting workers.
#[derive(Clone, Copy, Default)]
pub(super) struct Effect {
    /// Whether one more task can be handed out.
    pub(super) ready: bool,
    /// Whether the next task is due earlier than before.
    pub(super) earlier: bool,
}

/// The hash of a task. Small, since each slot has one.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Hashed(u32);

impl Hashed {
    pub(super) fn of<T: Hash>(task: &T, hasher: &DefaultHashBuilder) -> Self {
        Self((hasher.hash_one(task) >> 32) as u32)
    }

    /// Spreads the hash over the 64 bits that the table uses.
    fn spread(self) -> u64 {
        u64::from(self.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// A task that was taken by a worker.
pub(super) struct Taken<T> {
    pub(super) slot: u32,
    pub(super) task: T,
    pub(super) priority: i32,
    /// When it was taken, and how long it had been ready by then.
    pub(super) at: Nanos,
    pub(super) waited: Nanos,
}

impl<T: Clone + Eq + Hash> State<T> {
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            slots: Vec::new(),
            free: NONE,
            ready: Vec::new(),
            running: List::EMPTY,
            later: BTreeSet::new(),
            counts: Counts::default(),
            shut_down: false,
            turn: 0,
        }
    }

    /// Makes a task ready, or marks it to be repeated if it is in progress. Returns whether that is one more
    /// task to hand out.
    ///
    /// Like every method that accepts a task, this returns the task if it does not keep it, so that the task is
    /// dropped without the lock held.
    pub(super) fn add(
        &mut self,
        task: T,
        hash: Hashed,
        priority: i32,
        now: Nanos,
    ) -> (bool, Option<T>) {
        if self.shut_down {
            return (false, Some(task));
        }
        let (slot, spare) = self.slot(task, hash);
        (self.make_ready(slot, priority, now), spare)
    }

    /// Schedules a task for later. If it is already scheduled, the earlier time wins.
    pub(super) fn add_later(
        &mut self,
        task: T,
        hash: Hashed,
        priority: i32,
        due: Due,
    ) -> (Effect, Option<T>) {
        if self.shut_down {
            return (Effect::default(), Some(task));
        }
        let (slot, spare) = self.slot(task, hash);
        (self.make_due(slot, priority, due), spare)
    }

    /// Makes ready every task that is due, and returns how many more can be handed out.
    pub(super) fn come_due(&mut self, now: Nanos) -> usize {
        let mut more = 0;
        while let Some(&(due, slot)) = self.later.first()
            && due <= now
        {
            self.later.pop_first();
            let entry = &mut self.slots[slot as usize];
            entry.due = NEVER;
            let priority = entry.later_priority;
            more += usize::from(self.make_ready(slot, priority, due));
        }
        more
    }

    /// Returns when the next task is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.later.first().map(|&(due, _)| due)
    }

    /// Hands out the next task.
    pub(super) fn take(&mut self, now: Nanos) -> Option<Taken<T>> {
        let level = self.next_level()?;
        let priority = self.ready[level].priority;
        let slot = self.ready[level].tasks.first;
        self.unlink_ready(level, slot);
        self.counts.ready -= 1;
        self.counts.running += 1;
        self.running.push(&mut self.slots, slot);
        let entry = &mut self.slots[slot as usize];
        entry.place = Place::Running;
        let waited = now.saturating_sub(std::mem::replace(&mut entry.since, now));
        let task = entry.task.clone().expect("a slot in a list has a task");
        Some(Taken { slot, task, priority, at: now, waited })
    }

    /// Returns whether a task in progress may be ready again when its worker finishes.
    pub(super) fn may_be_again(&self, slot: u32) -> bool {
        let entry = &self.slots[slot as usize];
        entry.place == Place::RunningAgain || entry.due != NEVER
    }

    /// Marks a task as finished. Returns whether it is ready again, and the task itself if the queue no longer
    /// needs it.
    pub(super) fn finish(&mut self, slot: u32) -> (bool, Option<T>) {
        self.running.remove(&mut self.slots, slot);
        self.counts.running -= 1;
        let entry = &mut self.slots[slot as usize];
        let again = std::mem::replace(&mut entry.place, Place::Idle) == Place::RunningAgain;
        if !again {
            return (false, self.release(slot));
        }
        self.counts.again -= 1;
        let (priority, since) = (entry.priority, entry.again_since);
        self.push_ready(slot, priority, since);
        (true, None)
    }

    /// Marks a task as finished and schedules it for later.
    pub(super) fn finish_until(
        &mut self,
        slot: u32,
        priority: i32,
        due: Due,
    ) -> (Effect, Option<T>) {
        let mut effect = Effect::default();
        if !self.shut_down {
            effect = self.make_due(slot, priority, due);
        }
        let (ready, task) = self.finish(slot);
        (Effect { ready, ..effect }, task)
    }

    /// Stops accepting tasks, and drops those that are due later.
    pub(super) fn shut_down(&mut self) -> Vec<T> {
        self.shut_down = true;
        let later = std::mem::take(&mut self.later);
        let forget = |(_, slot): (Nanos, u32)| {
            self.slots[slot as usize].due = NEVER;
            self.release(slot)
        };
        later.into_iter().filter_map(forget).collect()
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// Returns whether the queue has been shut down and no further task will become ready.
    pub(super) fn is_over(&self) -> bool {
        self.shut_down && self.counts.again == 0
    }

    /// Returns whether the queue has been shut down and nothing is left to do.
    pub(super) fn is_drained(&self) -> bool {
        self.shut_down && self.counts.ready == 0 && self.counts.running == 0
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn later(&self) -> usize {
        self.later.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns the task that has been in progress longest, and since when.
    pub(super) fn longest_running(&self) -> Option<(T, Nanos)> {
        let entry = self.slots.get(self.running.first as usize)?;
        Some((entry.task.clone()?, entry.since))
    }

    /// Returns the total time that the tasks now in progress have been in progress.
    pub(super) fn unfinished(&self, now: Nanos) -> Nanos {
        let mut total: Nanos = 0;
        let mut next = self.running.first;
        while let Some(entry) = self.slots.get(next as usize) {
            total = total.saturating_add(now.saturating_sub(entry.since));
            next = entry.next;
        }
        total
    }

    /// Returns since when the longest-waiting task has been ready.
    pub(super) fn oldest_ready(&self) -> Option<Nanos> {
        self.heads().map(|(_, since)| since).min()
    }

    /// Returns the levels that have tasks, each with the time at which its first task became ready.
    fn heads(&self) -> impl Iterator<Item = (usize, Nanos)> {
        let head = |level: &Level| Some(self.slots.get(level.tasks.first as usize)?.since);
        self.ready.iter().enumerate().filter_map(move |(at, level)| Some((at, head(level)?)))
    }

    fn next_level(&mut self) -> Option<usize> {
        let (highest, _) = self.heads().next()?;
        self.turn = OLDEST_EVERY.min(self.turn + 1);
        if self.turn < OLDEST_EVERY || self.heads().nth(1).is_none() {
            return Some(highest);
        }
        self.turn = 0;
        self.heads().min_by_key(|&(_, since)| since).map(|(level, _)| level)
    }

    fn make_ready(&mut self, slot: u32, priority: i32, now: Nanos) -> bool {
        let entry = &mut self.slots[slot as usize];
        match entry.place {
            Place::Idle => {
                self.counts.adds += 1;
                self.push_ready(slot, priority, now);
                return true;
            }
            Place::Ready if priority > entry.priority => {
                let (since, level) = (entry.since, entry.priority);
                let level = self.level(level).expect("a task that is ready is in its level");
                self.unlink_ready(level, slot);
                self.counts.ready -= 1;
                self.push_ready(slot, priority, since);
            }
            Place::Ready => {}
            Place::Running => {
                (entry.place, entry.priority) = (Place::RunningAgain, priority);
                entry.again_since = now;
                self.counts.again += 1;
                self.counts.adds += 1;
            }
            Place::RunningAgain => entry.priority = entry.priority.max(priority),
        }
        false
    }

    fn make_due(&mut self, slot: u32, priority: i32, due: Due) -> Effect {
        self.counts.retries += 1;
        if due.at <= due.now {
            return Effect { ready: self.make_ready(slot, priority, due.now), earlier: false };
        }
        let at = due.at.min(NEVER - 1);
        let earlier = self.next_due().is_none_or(|next| at < next);
        let entry = &mut self.slots[slot as usize];
        if entry.due == NEVER {
            entry.later_priority = priority;
        } else {
            entry.later_priority = entry.later_priority.max(priority);
            if entry.due <= at {
                return Effect::default();
            }
            self.later.remove(&(entry.due, slot));
        }
        entry.due = at;
        self.later.insert((at, slot));
        Effect { ready: false, earlier }
    }

    fn push_ready(&mut self, slot: u32, priority: i32, since: Nanos) {
        let entry = &mut self.slots[slot as usize];
        (entry.place, entry.priority, entry.since) = (Place::Ready, priority, since);
        self.counts.ready += 1;
        let level = self.level(priority).unwrap_or_else(|at| {
            self.ready.insert(at, Level { priority, tasks: List::EMPTY });
            at
        });
        self.ready[level].tasks.push(&mut self.slots, slot);
    }

    /// Returns the position of a priority's level, or the position where it belongs.
    fn level(&self, priority: i32) -> Result<usize, usize> {
        self.ready.binary_search_by_key(&Reverse(priority), |level| Reverse(level.priority))
    }

    fn unlink_ready(&mut self, level: usize, slot: u32) {
        let tasks = &mut self.ready[level].tasks;
        tasks.remove(&mut self.slots, slot);
        if tasks.is_empty() && self.ready.len() > LEVELS_KEPT {
            self.ready.remove(level);
        }
    }

    /// Returns the slot of a task, allocating one if needed. If the task already has a slot, the task is
    /// returned.
    fn slot(&mut self, task: T, hash: Hashed) -> (u32, Option<T>) {
        let is = |&slot: &u32| {
            let entry = &self.slots[slot as usize];
            entry.hash == hash && entry.task.as_ref() == Some(&task)
        };
        let hash_of = |&slot: &u32| self.slots[slot as usize].hash.spread();
        let vacant = match self.table.entry(hash.spread(), is, hash_of) {
            Entry::Occupied(known) => return (*known.get(), Some(task)),
            Entry::Vacant(vacant) => vacant,
        };
        let entry = Slot {
            task: Some(task),
            hash,
            place: Place::Idle,
            priority: 0,
            later_priority: 0,
            since: 0,
            again_since: 0,
            due: NEVER,
            previous: NONE,
            next: NONE,
        };
        let slot = if self.free == NONE {
            self.slots.push(entry);
            u32::try_from(self.slots.len() - 1).expect("fewer tasks than fit into the memory")
        } else {
            let slot = self.free;
            self.free = self.slots[slot as usize].next;
            self.slots[slot as usize] = entry;
            slot
        };
        vacant.insert(slot);
        (slot, None)
    }

    /// Frees the slot of a task that is neither ready, nor in progress, nor due later.
    fn release(&mut self, slot: u32) -> Option<T> {
        let entry = &mut self.slots[slot as usize];
        if entry.place != Place::Idle || entry.due != NEVER {
            return None;
        }
        let hash = entry.hash.spread();
        let task = entry.task.take();
        entry.next = self.free;
        self.free = slot;
        if let Ok(found) = self.table.find_entry(hash, |&other| other == slot) {
            found.remove();
        }
        if self.table.is_empty() && self.slots.len() > SLOTS_KEPT {
            (self.slots, self.free, self.table) = (Vec::new(), NONE, HashTable::new());
        }
        task
    }
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    fn is_empty(self) -> bool {
        self.first == NONE
    }

    fn push<T>(&mut self, slots: &mut [Slot<T>], slot: u32) {
        (slots[slot as usize].previous, slots[slot as usize].next) = (self.last, NONE);
        match slots.get_mut(self.last as usize) {
            Some(last) => last.next = slot,
            None => self.first = slot,
        }
        self.last = slot;
    }

    fn remove<T>(&mut self, slots: &mut [Slot<T>], slot: u32) {
        let (previous, next) = (slots[slot as usize].previous, slots[slot as usize].next);
        match slots.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => self.first = next,
        }
        match slots.get_mut(next as usize) {
            Some(entry) => entry.previous = previous,
            None => self.last = previous,
        }
    }
}
