//! Fault injection: the faults, the rules that choose the requests that they affect, and a log of
//! those that fired.
//!
//! # Architecture invariants
//! - Without rules, faults cost one atomic load per request and one per watch event.
//! - A rule is consumed when its fault fires, not when it first matches: of two watches, the first
//!   to reach the point receives a one-shot fault.

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

/// A fault that fired.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FiredFault {
    /// The rule that injected it.
    pub id: FaultId,
    /// [`Fault::name`].
    pub name: &'static str,
    /// The [`RequestRecord::id`](crate::RequestRecord::id) of the affected request.
    pub request: u64,
    /// The latest version at that time.
    pub revision: u64,
    /// The time since the server started.
    pub at: Duration,
    /// The number of events that the watch had been sent, bookmarks included; 0 if the request was
    /// not a watch.
    pub after_events: u64,
}

/// The rules in force, and the log.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    /// The number of rules. While it is 0, requests skip the rules.
    count: AtomicUsize,
    /// The newest rule's id. Until it changes, open watches skip the rules.
    newest: AtomicU64,
    pub(crate) rules: Mutex<Vec<Rule>>,
    pub(crate) fired: Mutex<VecDeque<FiredFault>>,
    /// Snapshots to restore, by the names that they have in text.
    pub(crate) snapshots: Mutex<BTreeMap<String, Snapshot>>,
}

/// Whether a fault that could fire does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chance {
    Strikes,
    /// Not this time.
    Misses,
    /// Never again: the rule is exhausted, or was removed.
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

    /// Returns the number of rules that can still fire.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns the newest rule's id.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Returns the faults that a new request will meet, and the newest rule's id.
    pub(crate) fn meet_request(&self, user: &User, target: Option<&Target>) -> (Vec<Waiting>, u64) {
        let mut rules = self.rules.lock();
        let waiting = rules.iter_mut().filter_map(|rule| rule.meet_request(user, target));
        (waiting.collect(), self.newest.load(Ordering::Relaxed))
    }

    /// Returns the faults that an open watch will meet, from rules newer than `seen`, and the
    /// newest rule's id.
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

    /// Decides whether a rule fires, and if so consumes one use. `luck` draws a number in 0..1.
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
