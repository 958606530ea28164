//! The state of each task in the queue. No clock, no lock, no waiting: those are in `shared`.
//!
//! A task has one slot for as long as the queue knows it, whatever it is doing: ready, with a worker,
//! due later, or several of these. Lists are threaded through the slots, so that moving a task from one
//! to another allocates nothing.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Nanoseconds since the queue was made: half the size of an `Instant`, and there are three per task.
pub(super) type Nanos = u64;

/// Every so many tasks the one that has waited longest is next, whatever its priority: however many
/// of a higher priority keep coming, those below get this share.
pub(super) const OLDEST_EVERY: u32 = 16;

/// No slot; the end of a list.
const NONE: u32 = u32::MAX;

/// Not due at any time.
const NEVER: Nanos = Nanos::MAX;

/// So many priorities keep their place while no task has them, since they are about to be used again.
const LEVELS_KEPT: usize = 8;

/// An empty queue gives back the memory of more slots than this.
const SLOTS_KEPT: usize = 1024;

pub(super) struct State<T> {
    /// Slots by their task.
    table: HashTable<u32>,
    slots: Vec<Slot<T>>,
    /// Slots to be used again, through `next`.
    free: u32,
    /// Tasks that are ready, the highest priority first, and in the order in which they came. Programs
    /// have few priorities, so that this is shorter than any tree.
    ready: Vec<Level>,
    /// Tasks that workers have, the longest first.
    running: List,
    /// Tasks that are due later.
    later: BTreeSet<(Nanos, u32)>,
    counts: Counts,
    shut_down: bool,
    /// Tasks handed out since the oldest one was last chosen.
    turn: u32,
}

/// How many there are of what.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ready: usize,
    pub(super) running: usize,
    /// Those of them that are to be done once more after that.
    again: usize,
    /// Adds that were neither refused nor for a task that was ready anyway.
    pub(super) adds: u64,
    /// Adds for later, due at once or not: retries, mostly.
    pub(super) retries: u64,
}

/// The tasks of one priority.
struct Level {
    priority: i32,
    tasks: List,
}

struct Slot<T> {
    /// None only if the slot is free.
    task: Option<T>,
    hash: Hashed,
    place: Place,
    /// Of the task that is ready, or will be when its worker has finished.
    priority: i32,
    /// Of the task when it comes due.
    later_priority: i32,
    /// Since when it is ready, or with its worker.
    since: Nanos,
    /// When it was added again while its worker had it.
    again_since: Nanos,
    /// When it is due, beside everything else.
    due: Nanos,
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Only due later, if at all.
    Idle,
    Ready,
    Running,
    /// With a worker, and to be done once more after that.
    RunningAgain,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// When a task is due, and what time it is.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) now: Nanos,
    pub(super) at: Nanos,
}

/// The effect of a change on waiting workers.
#[derive(Clone, Copy, Default)]
pub(super) struct Effect {
    /// There is one more task to hand out.
    pub(super) ready: bool,
    /// The next task is due earlier than before.
    pub(super) earlier: bool,
}

/// The hash of a task; small, since each slot has one.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Hashed(u32);

impl Hashed {
    pub(super) fn of<T: Hash>(task: &T, hasher: &DefaultHashBuilder) -> Self {
        Self((hasher.hash_one(task) >> 32) as u32)
    }

    /// A table wants all 64 bits to be used.
    fn spread(self) -> u64 {
        u64::from(self.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// A task for a worker.
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

    /// Makes a task ready, or has it done again after its worker. True if that is one more to hand out.
    ///
    /// Like everything that takes a task, it gives back the one that it does not keep, to be dropped where
    /// no lock is held.
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

    /// The same at a later time; the earliest wins.
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

    /// Makes everything ready that is due, and says how many of them are to be handed out.
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

    /// When the next task is due.
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

    /// Whether a task that a worker has may be ready again when that has finished.
    pub(super) fn may_be_again(&self, slot: u32) -> bool {
        let entry = &self.slots[slot as usize];
        entry.place == Place::RunningAgain || entry.due != NEVER
    }

    /// A worker has finished. True if the task is ready again; one that the queue no longer knows is
    /// given back.
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

    /// The same, and it is due later.
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

    /// Takes nothing more, and forgets what is due later.
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

    /// Shut down, and nothing will be ready that is not.
    pub(super) fn is_over(&self) -> bool {
        self.shut_down && self.counts.again == 0
    }

    /// Shut down, and nothing is left to do.
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

    /// The task that a worker has had for longest, and since when.
    pub(super) fn longest_running(&self) -> Option<(T, Nanos)> {
        let entry = self.slots.get(self.running.first as usize)?;
        Some((entry.task.clone()?, entry.since))
    }

    /// How long all tasks that workers have had been with them, added up.
    pub(super) fn unfinished(&self, now: Nanos) -> Nanos {
        let mut total: Nanos = 0;
        let mut next = self.running.first;
        while let Some(entry) = self.slots.get(next as usize) {
            total = total.saturating_add(now.saturating_sub(entry.since));
            next = entry.next;
        }
        total
    }

    /// Since when the task at the head of each priority has been ready: the earliest.
    pub(super) fn oldest_ready(&self) -> Option<Nanos> {
        self.heads().map(|(_, since)| since).min()
    }

    /// The levels that have tasks, with the time since when their first one is ready.
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

    /// Where the level of a priority is, or would have to be.
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

    /// The slot of a task, a new one if it has none. The task is given back if it has one.
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

    /// Forgets a task that is neither ready, nor with a worker, nor due later.
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
