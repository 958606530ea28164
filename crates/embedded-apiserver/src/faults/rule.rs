//! Rules: which fault strikes which request, when, and how often.

use std::fmt;
use std::sync::Arc;

use super::exposure::{Point, Waiting};
use super::fault::{Fault, Place};
use crate::access::User;
use crate::filter::Filter;
use crate::request::{Target, Verb};
use crate::server::ApiServer;

/// Names a rule, to take it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub(crate) u64);

impl fmt::Display for FaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where in an answer a fault is to strike, if not where it does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Unsaid,
    Events(u64),
    Bytes(u64),
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
    pub(super) fn new(server: &'a ApiServer, verb: Option<Verb>) -> Self {
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

/// A rule that holds.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: FaultId,
    pub(super) filter: Filter,
    pub(super) nth: Option<u64>,
    /// Matching requests so far.
    met: u64,
    pub(super) after: After,
    pub(super) remaining: Option<u64>,
    pub(super) probability: Option<f64>,
    pub(super) fault: Arc<Fault>,
}

impl Rule {
    /// What it holds in store for a request that has just come.
    pub(super) fn meet_request(
        &mut self,
        user: Option<&User>,
        target: Option<&Target>,
    ) -> Option<Waiting> {
        if !self.fits(user, target) {
            return None;
        }
        self.met += 1;
        if self.nth.is_some_and(|nth| self.met < nth) {
            return None;
        }
        let point = self.point(target.is_some_and(|target| target.verb == Verb::Watch))?;
        Some(self.waiting(point))
    }

    /// What it holds in store for a watch that was there before it.
    pub(super) fn meet_running_watch(
        &self,
        user: Option<&User>,
        target: Option<&Target>,
    ) -> Option<Waiting> {
        if self.nth.is_some() || !self.fits(user, target) {
            return None;
        }
        let point = self.point(true).filter(|point| matches!(point, Point::Events(_)))?;
        Some(self.waiting(point))
    }

    fn fits(&self, user: Option<&User>, target: Option<&Target>) -> bool {
        self.filter.fits(user.map_or("", |user| &user.0), target)
    }

    fn waiting(&self, point: Point) -> Waiting {
        Waiting { rule: self.id, fault: Arc::clone(&self.fault), point, asked: None }
    }

    fn point(&self, is_watch: bool) -> Option<Point> {
        let place = self.fault.place();
        Some(match (place, self.after) {
            (Place::Head, _) => Point::Head,
            (Place::Object, after) => {
                let n = if let After::Events(n) = after { n } else { 0 };
                if is_watch { Point::Events(n) } else { Point::Items(n) }
            }
            (Place::Request, _)
            | (Place::Status, After::Unsaid | After::Bytes(_))
            | (Place::Anywhere, After::Unsaid) => Point::Request,
            (Place::Status | Place::Anywhere | Place::Body, After::Events(n)) if is_watch => {
                Point::Events(n)
            }
            (Place::Status | Place::Anywhere | Place::Body, After::Events(_)) => return None,
            (Place::Anywhere | Place::Body, After::Bytes(n)) => Point::Bytes(n),
            (Place::Body, After::Unsaid) if is_watch => Point::Events(0),
            (Place::Body, After::Unsaid) => Point::Body,
        })
    }
}
