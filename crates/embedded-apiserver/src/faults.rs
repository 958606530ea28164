//! Faults on purpose: what can go wrong, rules that say which requests it strikes, and a log that says
//! which it did.
//!
//! # Architecture invariants
//! - A server without rules pays one atomic load a request, and one an event of a watch.
//! - A rule is used up where its fault strikes, not where it might: of two watches, the first that
//!   comes to the point takes a one-shot.

mod fault;
mod rule;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

pub use fault::Fault;
pub use rule::FaultId;
pub(crate) use rule::{After, Point, Rule, Waiting};

use crate::access::User;
use crate::limits::RECORD_MAX;
use crate::request::Target;
use crate::store::Snapshot;

/// A fault that struck.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FiredFault {
    /// The rule that it was injected by.
    pub id: FaultId,
    /// [`Fault::name`].
    pub name: &'static str,
    /// [`RequestRecord::id`](crate::RequestRecord::id) of the request that it struck.
    pub request: u64,
    /// The newest version at that time.
    pub revision: u64,
    /// Time since the server's start.
    pub at: Duration,
    /// How many events the watch had been sent, bookmarks included; 0 if it struck no watch.
    pub after_events: u64,
}

/// The rules that hold, and the log.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    /// How many rules there are: requests look no further while there are none.
    count: AtomicUsize,
    /// The newest rule's id: running watches look no further until it changes.
    newest: AtomicU64,
    pub(crate) rules: Mutex<Vec<Rule>>,
    pub(crate) fired: Mutex<VecDeque<FiredFault>>,
    /// States to go back to, by the names that they were given in text.
    pub(crate) snapshots: Mutex<BTreeMap<String, Snapshot>>,
}

/// Whether a fault that could strike does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chance {
    Strikes,
    /// Not this time.
    Misses,
    /// Never again: the rule is used up, or was removed.
    Over,
}

impl FaultState {
    pub(crate) fn add(&self, make: impl FnOnce(FaultId) -> Rule) -> FaultId {
        let mut rules = self.rules.lock();
        let id = FaultId(self.newest.load(Ordering::Relaxed) + 1);
        rules.push(make(id));
        self.count.store(rules.len(), Ordering::Release);
        self.newest.store(id.0, Ordering::Release);
        id
    }

    pub(crate) fn remove(&self, id: FaultId) -> bool {
        let mut rules = self.rules.lock();
        let before = rules.len();
        rules.retain(|rule| rule.id != id);
        self.count.store(rules.len(), Ordering::Release);
        rules.len() < before
    }

    pub(crate) fn clear(&self) {
        let mut rules = self.rules.lock();
        rules.clear();
        self.count.store(0, Ordering::Release);
    }

    /// How many rules there are that can still strike.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// The newest rule's id.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// What the rules hold in store for a new request, and which is the newest of them.
    pub(crate) fn meet_request(&self, user: &User, target: Option<&Target>) -> (Vec<Waiting>, u64) {
        let mut rules = self.rules.lock();
        let waiting = rules.iter_mut().filter_map(|rule| rule.meet_request(user, target));
        (waiting.collect(), self.newest.load(Ordering::Relaxed))
    }

    /// The same of the rules that came since a watch looked at them last.
    pub(crate) fn meet_running_watch(
        &self,
        user: &User,
        target: Option<&Target>,
        seen: u64,
    ) -> (Vec<Waiting>, u64) {
        let rules = self.rules.lock();
        let new = rules.iter().filter(|rule| rule.id.0 > seen);
        let waiting = new.filter_map(|rule| rule.meet_running_watch(user, target));
        (waiting.collect(), self.newest.load(Ordering::Relaxed))
    }

    /// Uses a rule once, if its luck (a number in 0..1) is with it.
    pub(crate) fn draw(&self, id: FaultId, luck: impl FnOnce() -> f64) -> Chance {
        let mut rules = self.rules.lock();
        let Some(at) = rules.iter().position(|rule| rule.id == id) else { return Chance::Over };
        let rule = &mut rules[at];
        if rule.remaining == Some(0) {
            return Chance::Over;
        }
        if rule.probability.is_some_and(|probability| luck() >= probability) {
            return Chance::Misses;
        }
        if let Some(remaining) = &mut rule.remaining {
            *remaining -= 1;
            if *remaining == 0 {
                rules.remove(at);
                self.count.store(rules.len(), Ordering::Release);
            }
        }
        Chance::Strikes
    }

    pub(crate) fn log(&self, fired: FiredFault) {
        let FiredFault { name, request, revision, after_events, .. } = fired;
        tracing::debug!(fault = name, request, revision, after_events, "a fault strikes");
        let mut log = self.fired.lock();
        if log.len() == RECORD_MAX {
            log.pop_front();
        }
        log.push_back(fired);
    }
}
