//! Faults on purpose: rules say which requests they strike, and a log says which they did.
//!
//! # Architecture invariants
//! - A server without rules pays one atomic load a request, and one an event of a watch.
//! - A rule is used up where its fault strikes, not where it might: of two watches, the first that
//!   comes to the point takes a one-shot.
//! - Whatever waits, waits on tokio's time or for the connections to end, and for nothing else.

mod body;
mod events;
mod exposure;
mod fault;
mod objects;
mod presets;
mod rule;
pub(crate) mod text;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use events::{Interruption, WatchFaults};
pub(crate) use exposure::Exposure;
use exposure::Waiting;
pub use fault::Fault;
use rule::Rule;
pub use rule::{FaultId, FaultRule};
pub use text::FaultTextError;

use crate::access::User;
use crate::limits::RECORD_MAX;
use crate::request::{Target, Verb};
use crate::server::ApiServer;
use crate::store::Snapshot;

/// The faults of a server: see [`ApiServer::faults`].
///
/// ```
/// # use embedded_apiserver::{ApiServer, Fault, Verb};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let server = ApiServer::start();
/// // The third watch of pods falls silent after ten events.
/// server.faults().on(Verb::Watch).resource("pods").nth(3).after_events(10).inject(Fault::HalfOpen);
/// // A tenth of all requests is turned away, until told otherwise.
/// let busy = Fault::status_retry_after(429, "1");
/// let id = server.faults().any().always().probability(0.1).inject(busy);
/// // … a client runs …
/// server.faults().remove(id);
/// for fired in server.faults().fired() {
///     println!("{} struck request {} at {}", fired.name, fired.request, fired.revision);
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Faults<'a> {
    server: &'a ApiServer,
}

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

impl ApiServer {
    /// Faults to inject, and those that struck.
    pub fn faults(&self) -> Faults<'_> {
        Faults { server: self }
    }
}

impl<'a> Faults<'a> {
    /// A rule for requests of one verb.
    pub fn on(self, verb: Verb) -> FaultRule<'a> {
        FaultRule::new(self.server, Some(verb))
    }

    /// A rule for all requests, also those that are about no resource: discovery, health.
    pub fn any(self) -> FaultRule<'a> {
        FaultRule::new(self.server, None)
    }

    /// Takes a rule back. Whether it was still there: a one-shot that struck is not. What it has
    /// done is not undone: who was made to wait waits on.
    pub fn remove(self, id: FaultId) -> bool {
        self.state().remove(id)
    }

    /// Takes all rules back.
    pub fn clear(self) {
        self.state().clear();
    }

    /// How many rules there are that can still strike.
    pub fn pending(self) -> usize {
        self.state().count.load(Ordering::Acquire)
    }

    /// The last faults that struck, oldest first.
    pub fn fired(self) -> Vec<FiredFault> {
        self.state().fired.lock().iter().cloned().collect()
    }

    fn state(self) -> &'a FaultState {
        &self.server.shared.faults
    }
}

/// The rules that hold, and the log.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    /// How many rules there are: requests look no further while there are none.
    count: AtomicUsize,
    /// The newest rule's id: running watches look no further until it changes.
    newest: AtomicU64,
    rules: Mutex<Vec<Rule>>,
    fired: Mutex<VecDeque<FiredFault>>,
    /// States to go back to, by the names that they were given in text.
    snapshots: Mutex<BTreeMap<String, Snapshot>>,
}

/// Whether a fault that could strike does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chance {
    Strikes,
    /// Not this time.
    Misses,
    /// Never again: the rule is used up, or was removed.
    Over,
}

impl FaultState {
    fn add(&self, make: impl FnOnce(FaultId) -> Rule) -> FaultId {
        let mut rules = self.rules.lock();
        let id = FaultId(self.newest.load(Ordering::Relaxed) + 1);
        rules.push(make(id));
        self.count.store(rules.len(), Ordering::Release);
        self.newest.store(id.0, Ordering::Release);
        id
    }

    fn remove(&self, id: FaultId) -> bool {
        let mut rules = self.rules.lock();
        let before = rules.len();
        rules.retain(|rule| rule.id != id);
        self.count.store(rules.len(), Ordering::Release);
        rules.len() < before
    }

    fn clear(&self) {
        let mut rules = self.rules.lock();
        rules.clear();
        self.count.store(0, Ordering::Release);
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// What the rules hold in store for a new request, and which is the newest of them.
    fn meet_request(&self, user: Option<&User>, target: Option<&Target>) -> (Vec<Waiting>, u64) {
        let mut rules = self.rules.lock();
        let waiting = rules.iter_mut().filter_map(|rule| rule.meet_request(user, target));
        (waiting.collect(), self.newest.load(Ordering::Relaxed))
    }

    /// The same of the rules that came since a watch looked at them last.
    fn meet_running_watch(
        &self,
        user: Option<&User>,
        target: Option<&Target>,
        seen: u64,
    ) -> (Vec<Waiting>, u64) {
        let rules = self.rules.lock();
        let new = rules.iter().filter(|rule| rule.id.0 > seen);
        let waiting = new.filter_map(|rule| rule.meet_running_watch(user, target));
        (waiting.collect(), self.newest.load(Ordering::Relaxed))
    }

    /// Uses a rule once, if its luck (a number in 0..1) is with it.
    fn draw(&self, id: FaultId, luck: impl FnOnce() -> f64) -> Chance {
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

    fn log(&self, fired: FiredFault) {
        let FiredFault { name, request, revision, after_events, .. } = fired;
        tracing::debug!(fault = name, request, revision, after_events, "a fault strikes");
        let mut log = self.fired.lock();
        if log.len() == RECORD_MAX {
            log.pop_front();
        }
        log.push_back(fired);
    }
}
