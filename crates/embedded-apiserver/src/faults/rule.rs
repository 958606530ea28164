//! Rules: which fault strikes which request, when, and how often.

use std::fmt;
use std::sync::Arc;

use super::fault::{Fault, Place};
use crate::access::User;
use crate::filter::Filter;
use crate::request::{Target, Verb};

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
pub(crate) enum After {
    Unsaid,
    Events(u64),
    Bytes(u64),
}

/// Where in the course of an answer a fault is to strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before it.
    Request,
    /// On its status and headers.
    Head,
    /// On the item behind so many.
    Items(u64),
    /// Once a watch has been sent so many events.
    Events(u64),
    /// On the first piece of the body.
    Body,
    /// Once so many bytes of the body have been sent.
    Bytes(u64),
}

/// A fault that waits for its point.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) rule: FaultId,
    pub(crate) fault: Arc<Fault>,
    pub(crate) point: Point,
    /// In a watch: the event before which it had its last chance.
    pub(crate) asked: Option<u64>,
}

/// A rule that holds.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: FaultId,
    pub(crate) filter: Filter,
    pub(crate) nth: Option<u64>,
    /// Matching requests so far.
    pub(crate) met: u64,
    pub(crate) after: After,
    pub(crate) remaining: Option<u64>,
    pub(crate) probability: Option<f64>,
    pub(crate) fault: Arc<Fault>,
}

impl Rule {
    /// What it holds in store for a request that has just come.
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

    /// What it holds in store for a watch that was there before it.
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
