//! Fault injection from Rust and from text, by single rules and by scenarios.

mod presets;
pub(crate) mod text;
mod words;

use std::sync::Arc;

pub use text::FaultTextError;

use crate::faults::{After, Fault, FaultId, FaultState, FiredFault, Rule};
use crate::filter::Filter;
use crate::request::Verb;
use crate::server::ApiServer;

/// The faults of a server, to inject more and to inspect those that fired. See
/// [`ApiServer::faults`].
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

impl ApiServer {
    /// Returns the faults of this server.
    pub fn faults(&self) -> Faults<'_> {
        Faults { server: self }
    }
}

impl<'a> Faults<'a> {
    /// Starts a rule for requests with this verb.
    pub fn on(self, verb: Verb) -> FaultRule<'a> {
        FaultRule::new(self.server, Some(verb))
    }

    /// Starts a rule for all requests, including those that concern no resource, such as discovery
    /// and health checks.
    pub fn any(self) -> FaultRule<'a> {
        FaultRule::new(self.server, None)
    }

    /// Removes a rule. Returns whether it was still there: a one-shot rule that fired is not.
    /// Effects on requests that it already affected remain: a stalled request stays stalled.
    pub fn remove(self, id: FaultId) -> bool {
        self.state().remove(id)
    }

    /// Removes all rules.
    pub fn clear(self) {
        self.state().clear();
    }

    /// Returns the number of rules that can still fire.
    pub fn pending(self) -> usize {
        self.state().count()
    }

    /// Returns the most recent faults that fired, oldest first.
    pub fn fired(self) -> Vec<FiredFault> {
        self.state().fired.lock().iter().cloned().collect()
    }

    fn state(self) -> &'a FaultState {
        &self.server.shared.faults
    }
}

/// A rule under construction: which requests, when and how often. It takes effect with
/// [`inject`](Self::inject).
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until it is injected"]
pub struct FaultRule<'a> {
    server: &'a ApiServer,
    filter: Filter,
    /// The first matching request that is affected. `None` means any, including watches that are
    /// already open.
    nth: Option<u64>,
    after: After,
    /// `None` means without limit.
    times: Option<u64>,
    probability: Option<f64>,
}

impl<'a> FaultRule<'a> {
    fn new(server: &'a ApiServer, verb: Option<Verb>) -> Self {
        let filter = Filter { verbs: verb.into_iter().collect(), ..Filter::default() };
        let after = After::Unsaid;
        Self { server, filter, nth: None, after, times: Some(1), probability: None }
    }

    /// Matches only this resource, such as `pods` or `pods/status`.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.filter.resource = Some(resource.into());
        self
    }

    /// Matches only this API group. "" is the core group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.filter.group = Some(group.into());
        self
    }

    /// Matches only requests for this namespace. "" matches requests for all namespaces and for
    /// cluster-scoped resources.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.filter.namespace = Some(namespace.into());
        self
    }

    /// Matches only this user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.filter.user = Some(user.into());
        self
    }

    /// Starts with the n-th matching request, counted from 1 since the injection. Watches that are
    /// already open do not count.
    pub fn nth(mut self, n: u64) -> Self {
        self.nth = Some(n);
        self
    }

    /// Fires after a watch has been sent `n` events, bookmarks included. 0 is before the first. An
    /// open watch that has already been sent as many is affected immediately.
    ///
    /// In other responses, faults that affect objects fire on the item after the first `n`. Faults
    /// of the connection or the server do not fire there: see [`after_bytes`](Self::after_bytes).
    pub fn after_events(mut self, n: u64) -> Self {
        self.after = After::Events(n);
        self
    }

    /// Fires after `n` bytes of a body have been sent. Shorter bodies and watches that are already
    /// open are not affected. Only faults of connections, bytes or the server support this; others
    /// are positioned by events and items.
    pub fn after_bytes(mut self, n: u64) -> Self {
        self.after = After::Bytes(n);
        self
    }

    /// Sets how many times the fault fires. The default is once.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Fires every time, until the rule is removed.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Fires with this probability, between 0 and 1, each time. With a
    /// [seed](crate::Builder::seed), the same requests are affected in each run.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }

    /// Injects the fault, effective immediately.
    pub fn inject(self, fault: Fault) -> FaultId {
        let id = self.server.shared.faults.add(|id| Rule {
            id,
            filter: self.filter,
            nth: self.nth,
            met: 0,
            after: self.after,
            remaining: self.times,
            probability: self.probability,
            fault: Arc::new(fault),
        });
        // Idle watches check the rules again.
        self.server.shared.store.wake_watchers();
        id
    }
}
