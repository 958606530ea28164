//! A work queue of plain lists.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::TASKS;

/// Every so many tasks, the one that has waited longest is next.
const OLDEST_EVERY: u32 = 16;

#[derive(Default)]
pub(super) struct Model {
    /// In the order in which they reached their priority.
    ready: Vec<Ready>,
    /// Each with the priority and the time of an add while it runs.
    running: BTreeMap<u32, Option<(i32, Duration)>>,
    /// When each is due, and with which priority.
    later: BTreeMap<u32, (Duration, i32)>,
    failures: BTreeMap<u32, u32>,
    turn: u32,
    pub(super) shut_down: bool,
    pub(super) adds: u64,
    pub(super) retries: u64,
}

struct Ready {
    task: u32,
    priority: i32,
    since: Duration,
    /// Number of others that have been handed out in the meantime.
    passed: u32,
}

/// A task that the model hands out.
pub(super) struct Handed {
    pub(super) task: u32,
    pub(super) priority: i32,
    /// Whether it was chosen by age, not by priority.
    pub(super) is_oldest: bool,
}

impl Model {
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.ready.len(), self.later.len(), self.running.len())
    }

    pub(super) fn failures(&self, task: u32) -> u32 {
        self.failures.get(&task).copied().unwrap_or_default()
    }

    pub(super) fn fail(&mut self, task: u32) {
        *self.failures.entry(task).or_default() += 1;
    }

    pub(super) fn forget(&mut self, task: u32) {
        self.failures.remove(&task);
    }

    /// Returns whether nothing more will become ready.
    pub(super) fn is_over(&self) -> bool {
        self.shut_down && self.running.values().all(Option::is_none)
    }

    pub(super) fn is_drained(&self) -> bool {
        self.shut_down && self.ready.is_empty() && self.running.is_empty()
    }

    /// Makes everything ready that is due, in that order. No two are due at the same time.
    pub(super) fn come_due(&mut self, now: Duration) {
        let due = self.later.iter().filter(|(_, (due, _))| *due <= now);
        let due: BTreeSet<_> =
            due.map(|(task, (due, priority))| (*due, *task, *priority)).collect();
        for (due, task, priority) in due {
            self.later.remove(&task);
            self.make_ready(task, priority, due);
        }
    }

    /// Adds a task. Returns whether it was raised to a higher priority.
    pub(super) fn add(&mut self, task: u32, priority: i32, now: Duration) -> bool {
        self.come_due(now);
        !self.shut_down && self.make_ready(task, priority, now)
    }

    pub(super) fn add_later(&mut self, task: u32, priority: i32, now: Duration, after: Duration) {
        self.come_due(now);
        if self.shut_down {
            return;
        }
        self.retries += 1;
        if after.is_zero() {
            self.make_ready(task, priority, now);
            return;
        }
        let (due, highest) = self.later.entry(task).or_insert((now + after, priority));
        (*due, *highest) = ((*due).min(now + after), (*highest).max(priority));
    }

    pub(super) fn take(&mut self, now: Duration) -> Option<Handed> {
        self.come_due(now);
        let levels: BTreeSet<i32> = self.ready.iter().map(|ready| ready.priority).collect();
        let highest = *levels.last()?;
        let head = |level: i32| self.ready.iter().position(|ready| ready.priority == level);
        let mut next = head(highest).expect("the level is not empty");
        self.turn = (self.turn + 1).min(OLDEST_EVERY);
        if self.turn == OLDEST_EVERY && levels.len() > 1 {
            self.turn = 0;
            let heads = levels.iter().rev().filter_map(|level| head(*level));
            next = heads.min_by_key(|at| self.ready[*at].since).expect("there are levels");
        }
        let Ready { task, priority, .. } = self.ready.remove(next);
        self.running.insert(task, None);
        for ready in &mut self.ready {
            ready.passed += 1;
            // Each time the oldest is chosen, it is this one or another that was queued before it.
            let bound = OLDEST_EVERY * (TASKS + 1);
            assert!(ready.passed <= bound, "{} starves", ready.task);
        }
        Some(Handed { task, priority, is_oldest: priority != highest })
    }

    pub(super) fn finish(&mut self, task: u32, now: Duration) {
        self.come_due(now);
        if let Some((priority, since)) = self.running.remove(&task).expect("a worker has it") {
            self.ready.push(Ready { task, priority, since, passed: 0 });
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.shut_down = true;
        self.later.clear();
    }

    fn make_ready(&mut self, task: u32, priority: i32, since: Duration) -> bool {
        if let Some(again) = self.running.get_mut(&task) {
            self.adds += u64::from(again.is_none());
            let (highest, _) = again.get_or_insert((priority, since));
            *highest = (*highest).max(priority);
            return false;
        }
        let Some(at) = self.ready.iter().position(|ready| ready.task == task) else {
            self.adds += 1;
            self.ready.push(Ready { task, priority, since, passed: 0 });
            return false;
        };
        let raised = self.ready[at].priority < priority;
        if raised {
            let ready = self.ready.remove(at);
            self.ready.push(Ready { priority, ..ready });
        }
        raised
    }
}
