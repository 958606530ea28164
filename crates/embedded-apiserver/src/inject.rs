//! How faults are injected: rules, and scenarios of several, from Rust and from text.

mod presets;
pub(crate) mod text;
mod words;

use std::sync::Arc;

pub use text::FaultTextError;

use crate::faults::{After, Fault, FaultId, FaultState, FiredFault, Rule};
use crate::filter::Filter;
use crate::request::Verb;
use crate::server::ApiServer;

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
        self.state().count()
    }

    /// The last faults that struck, oldest first.
    pub fn fired(self) -> Vec<FiredFault> {
        self.state().fired.lock().iter().cloned().collect()
    }

    fn state(self) -> &'a FaultState {
        &self.server.shared.faults
    }
}

/// A rule that is being made: which requests, when, how often. It holds once it is
/// [`inject`](Self::inject)ed.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until it is injected"]
pub struct FaultRule<'a> {
    server: &'a ApiServer,
    filter: Filter,
    /// Which matching request is the first; None: any, and also watches that run already.
    nth: Option<u64>,
    after: After,
    /// None: without end.
    times: Option<u64>,
    probability: Option<f64>,
}

impl<'a> FaultRule<'a> {
    fn new(server: &'a ApiServer, verb: Option<Verb>) -> Self {
        let filter = Filter { verbs: verb.into_iter().collect(), ..Filter::default() };
        let after = After::Unsaid;
        Self { server, filter, nth: None, after, times: Some(1), probability: None }
    }

    /// Only this resource, such as `pods` or `pods/status`.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.filter.resource = Some(resource.into());
        self
    }

    /// Only this API group; "" is the core group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.filter.group = Some(group.into());
        self
    }

    /// Only requests for this namespace; "" are those for all namespaces, or for none.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.filter.namespace = Some(namespace.into());
        self
    }

    /// Only this user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.filter.user = Some(user.into());
        self
    }

    /// From the n-th matching request on, counted from 1 and from the injection. A watch that runs
    /// already is none of them.
    pub fn nth(mut self, n: u64) -> Self {
        self.nth = Some(n);
        self
    }

    /// Once a watch has been sent `n` events, bookmarks included; 0 is before the first. A watch
    /// that runs already, and has been sent as many, is struck at once.
    ///
    /// Of other answers, faults of objects strike the item behind the first `n`. Faults of the
    /// connection or of the server leave them alone: see [`after_bytes`](Self::after_bytes).
    pub fn after_events(mut self, n: u64) -> Self {
        self.after = After::Events(n);
        self
    }

    /// Once `n` bytes of a body have been sent; a shorter body is left alone, and so are watches
    /// that run already. It is for faults that strike connections, bytes, or the server; others go
    /// by events and items.
    pub fn after_bytes(mut self, n: u64) -> Self {
        self.after = After::Bytes(n);
        self
    }

    /// So many times; once if nothing is said.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Every time, until it is removed.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Each time only with this probability, between 0 and 1. With a
    /// [seed](crate::Builder::seed), the same requests suffer the same.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }

    /// Makes it hold, from now on.
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
        // Watches that wait for changes look at the rules again.
        self.server.shared.store.wake_watchers();
        id
    }
}
