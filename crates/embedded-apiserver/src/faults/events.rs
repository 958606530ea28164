//! What faults make of the events of a watch, before they become bytes, and of their lines.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::body::{Pieces, malformed};
use super::exposure::{Exposed, Exposure, Point, status_of};
use super::fault::Fault;
use super::{Chance, objects};
use crate::rest::Pending;
use crate::status::Status;
use crate::store::{EVENT_CLOSING, EventType};
use crate::view::event_line;

/// One watch, as faults see it.
#[derive(Debug)]
pub(crate) struct WatchFaults {
    chances: Chances,
    /// Events that go out as they are, before any other: second copies, and those overtaken.
    first: VecDeque<Pending>,
    /// Waits for another to overtake it.
    held: Option<Pending>,
    pieces: Pieces,
    /// Nothing more is sent.
    cut: bool,
}

/// What comes between two events.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// Nothing.
    None,
    /// Something that may have changed what is to be sent, or whether.
    Passed,
    /// The stream ends.
    End,
    /// The connection broke.
    Broken(io::Error),
    /// The stream fails, with an error in it.
    Failed(Status),
}

impl WatchFaults {
    pub(crate) fn new(exposure: Exposure) -> Self {
        let chances = Chances { exposure, offered: 0, sent: 0 };
        let (first, held) = (VecDeque::new(), None);
        Self { chances, first, held, pieces: Pieces::default(), cut: false }
    }

    /// Whether rules were made that have not been looked at.
    pub(crate) fn has_news(&self) -> bool {
        self.chances.has_news()
    }

    /// The next bytes of an event that is sent in pieces.
    pub(crate) async fn piece(&mut self) -> Option<io::Result<Bytes>> {
        self.pieces.next(self.chances.exposure.request.as_ref()?).await
    }

    /// What happens before the next event, which need not be there yet: it is if the watch is
    /// `ready`. `position` is the watch's. The last words of one that is `over` are left alone.
    pub(crate) async fn interrupt(
        &mut self,
        position: u64,
        ready: bool,
        over: bool,
    ) -> Interruption {
        if self.chances.has_news() {
            self.chances.look_at_rules();
        }
        if self.cut {
            return Interruption::End;
        }
        let ready = ready || !self.first.is_empty();
        let applies = |fault: &Fault| !over && strikes_between(fault, ready);
        let Some(fault) = self.chances.next(&mut 0, applies) else { return Interruption::None };
        let Some(request) = &self.chances.exposure.request else { return Interruption::None };
        let failure = match &*fault {
            Fault::Gone => Status::too_old(position, request.revision()),
            Fault::Status { code, retry_after } => status_of(*code, retry_after.as_ref()),
            other => {
                let Err(error) = request.suffer(other).await else { return Interruption::Passed };
                self.cut = true;
                return Interruption::Broken(error);
            }
        };
        self.first.clear();
        self.held = None;
        Interruption::Failed(failure)
    }

    /// The next event that goes out as it is.
    pub(crate) fn first(&mut self) -> Option<Pending> {
        self.first.pop_front()
    }

    /// The event that is sent now where this one should be, if any is.
    pub(crate) fn exchange(&mut self, pending: Pending) -> Option<Pending> {
        self.chances.offered += 1;
        if let Some(held) = self.held.take() {
            // After an error comes nothing.
            if !matches!(pending, Pending::Error(_)) {
                self.first.push_back(held);
            }
            return Some(pending);
        }
        let mut at = 0;
        while let Some(fault) = self.chances.next(&mut at, |fault| exchanges(fault, &pending)) {
            match &*fault {
                Fault::DuplicateEvent => self.first.push_back(pending.clone()),
                Fault::ReorderEvents => {
                    self.held = Some(pending);
                    return None;
                }
                _ => return None,
            }
        }
        Some(pending)
    }

    /// The line of an event as it is sent, and the fault that made it another.
    pub(crate) fn line(
        &mut self,
        event_type: EventType,
        line: Bytes,
    ) -> (Bytes, Option<&'static str>) {
        let Self { chances, pieces, .. } = self;
        let is_object = !matches!(event_type, EventType::Bookmark | EventType::Error);
        let mut struck = Vec::new();
        let mut at = 0;
        while let Some(fault) = chances.next(&mut at, |fault| {
            pieces.would_cut(fault, &line) || (is_object && is_of_line(fault))
        }) {
            if is_of_line(&fault) {
                struck.push(fault);
            } else {
                pieces.cut_from_now_on(&fault);
            }
        }
        chances.sent += 1;
        let name = struck.last().map(|fault| fault.name());
        (self.damage(event_type, line, &struck), name)
    }

    fn damage(&mut self, event_type: EventType, mut line: Bytes, faults: &[Arc<Fault>]) -> Bytes {
        if faults.iter().any(|fault| objects::is_of_objects(fault)) {
            let object = &line[event_type.opening().len()..line.len() - EVENT_CLOSING.len()];
            if let Some(object) = objects::damaged(object, faults) {
                line = event_line(event_type, object.as_bytes());
            }
        }
        for fault in faults {
            match **fault {
                Fault::MalformedUtf8 => line = malformed(&line),
                Fault::Truncated => {
                    self.cut = true;
                    line.truncate(line.len() / 2);
                }
                _ => {}
            }
        }
        line
    }

    /// The line, or its first piece.
    pub(crate) async fn paced(&mut self, line: Bytes) -> io::Result<Bytes> {
        match self.pieces.push(line) {
            Some(line) => Ok(line),
            None => self.piece().await.unwrap_or_else(|| Ok(Bytes::new())),
        }
    }
}

/// The faults that wait for a watch's events, and how far it is.
#[derive(Debug)]
struct Chances {
    exposure: Exposure,
    /// Events so far, whatever became of them.
    offered: u64,
    sent: u64,
}

impl Chances {
    fn has_news(&self) -> bool {
        let newest =
            |request: &Arc<Exposed>| request.server.shared.faults.newest.load(Ordering::Acquire);
        let newest = self.exposure.request.as_ref().map(newest);
        newest.is_some_and(|newest| newest != self.exposure.newest_rule)
    }

    fn look_at_rules(&mut self) {
        let Exposure { request: Some(request), waiting, newest_rule } = &mut self.exposure else {
            return;
        };
        let faults = &request.server.shared.faults;
        let (news, newest) =
            faults.meet_running_watch(request.user(), request.target(), *newest_rule);
        waiting.extend(news);
        *newest_rule = newest;
    }

    /// The next fault from `at` on whose time it is, that `applies` and strikes.
    fn next(&mut self, at: &mut usize, applies: impl Fn(&Fault) -> bool) -> Option<Arc<Fault>> {
        let Exposure { request: Some(request), waiting, .. } = &mut self.exposure else {
            return None;
        };
        while let Some(candidate) = waiting.get_mut(*at) {
            let due = matches!(candidate.point, Point::Events(after) if after <= self.sent);
            // Between two events there is one chance, however often the watch wakes up.
            let asked = candidate.asked == Some(self.offered);
            if !due || asked || !applies(&candidate.fault) {
                *at += 1;
                continue;
            }
            candidate.asked = Some(self.offered);
            match request.draw(candidate, self.sent) {
                Chance::Over => drop(waiting.remove(*at)),
                Chance::Misses => *at += 1,
                Chance::Strikes => {
                    *at += 1;
                    return Some(Arc::clone(&waiting[*at - 1].fault));
                }
            }
        }
        None
    }
}

/// Whether a fault strikes between events; one that holds up the next only if there is one.
fn strikes_between(fault: &Fault, ready: bool) -> bool {
    match fault {
        Fault::Latency(_) => ready,
        Fault::Reset
        | Fault::Down(_)
        | Fault::HalfOpen
        | Fault::StalledBody
        | Fault::Status { .. }
        | Fault::Gone
        | Fault::Compact
        | Fault::DropWatches
        | Fault::Restart
        | Fault::Rollback { .. } => true,
        _ => false,
    }
}

/// Whether a fault changes if and when this event is sent.
fn exchanges(fault: &Fault, pending: &Pending) -> bool {
    match pending {
        Pending::Event(..) => {
            matches!(fault, Fault::DropEvent | Fault::DuplicateEvent | Fault::ReorderEvents)
        }
        Pending::Bookmark { initial_events_end: false, .. } => {
            matches!(fault, Fault::BookmarkLost)
        }
        Pending::Bookmark { initial_events_end: true, .. } => {
            matches!(fault, Fault::EndBookmarkMissing)
        }
        Pending::Error(_) => false,
    }
}

/// Whether a fault changes what the line of an event says.
fn is_of_line(fault: &Fault) -> bool {
    objects::is_of_objects(fault) || matches!(fault, Fault::Truncated | Fault::MalformedUtf8)
}
