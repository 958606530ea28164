//! Rules: which fault fires for which request, when and how often.

use std::fmt;
use std::sync::Arc;

use super::fault::{Fault, Place};
use crate::access::User;
use crate::filter::Filter;
use crate::request::{Target, Verb};

/// The id of a rule, with which it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub(crate) u64);

impl fmt::Display for FaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The point of a response at which a rule asks its fault to fire, instead of the fault's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Unsaid,
    Events(u64),
    Bytes(u64),
}

/// The point of a response at which a fault fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before the response.
    Request,
    /// On the status and headers.
    Head,
    /// On the item after this many.
    Items(u64),
    /// After a watch has been sent this many events.
    Events(u64),
    /// On the first chunk of the body.
    Body,
    /// After this many bytes of the body.
    Bytes(u64),
}

/// A fault that waits for its point.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) rule: FaultId,
    pub(crate) fault: Arc<Fault>,
    pub(crate) point: Point,
    /// In a watch, the event before which it last had a chance to fire.
    pub(crate) asked: Option<u64>,
}

/// A rule in force.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: FaultId,
    pub(crate) filter: Filter,
    pub(crate) nth: Option<u64>,
    /// The number of matching requests so far.
    pub(crate) met: u64,
    pub(crate) after: After,
    pub(crate) remaining: Option<u64>,
    pub(crate) probability: Option<f64>,
    pub(crate) fault: Arc<Fault>,
}

impl Rule {
    /// Returns the fault that a new request will meet, if the rule matches it.
    pub(crate) fn meet_request(&mut self, user: &User, target: Option<&Target>) -> Option<Waiting> {
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

    /// Returns the fault that an open watch will meet, if the rule matches it.
    pub(crate) fn meet_running_watch(
        &self,
        user: &User,
        target: Option<&Target>,
    ) -> Option<Waiting> {
        if self.nth.is_some() || !self.fits(user, target) {
            return None;
        }
        let point = self.point(true).filter(|point| matches!(point, Point::Events(_)))?;
        Some(self.waiting(point))
    }

    fn fits(&self, user: &User, target: Option<&Target>) -> bool {
        self.filter.fits(&user.0, target)
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
