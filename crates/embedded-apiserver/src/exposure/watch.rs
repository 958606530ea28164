//! The layer that applies faults to a watch. It receives events from the store and returns the
//! bytes to send: dropped, delayed, duplicated, reordered, truncated or garbled according to the
//! rules.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::stream;

use super::body::{Pieces, malformed};
use super::{Exposed, objects, status_of};
use crate::body::{Body, Events};
use crate::codec::Codec;
use crate::faults::{Chance, Fault, Point, Waiting};
use crate::record::Delivery;
use crate::status::Status;
use crate::store::{EVENT_CLOSING, EventType};
use crate::view::{WatchEvent, event_line};

/// Returns a watch that is exposed to its pending faults and to later rules. `newest_rule` is the
/// newest that has been checked.
pub(super) fn damaged(
    events: Events,
    codec: Codec,
    request: Arc<Exposed>,
    waiting: Vec<Waiting>,
    newest_rule: u64,
) -> Body {
    let position = request.asked_version();
    let chances = Chances { request, waiting, newest_rule, offered: 0, sent: 0 };
    let (first, held, pieces) = (VecDeque::new(), None, Pieces::default());
    let watch = Watch { events, codec, chances, first, held, pieces, position, over: false };
    // Boxed, so that only a pointer moves from event to event.
    Body::chunks(stream::unfold(Some(Box::new(watch)), |watch| async move {
        let mut watch = watch?;
        let bytes = watch.next().await?;
        // After an error, the stream ends.
        let rest = bytes.is_ok().then_some(watch);
        Some((bytes, rest))
    }))
}

/// A watch that is exposed to faults.
struct Watch {
    /// The events without faults.
    events: Events,
    codec: Codec,
    chances: Chances,
    /// Events that are sent unchanged before any other: duplicates, and those that were overtaken.
    first: VecDeque<WatchEvent>,
    /// An event that waits for another to overtake it.
    held: Option<WatchEvent>,
    pieces: Pieces,
    /// The latest version that the client may know.
    position: u64,
    /// Whether the stream ends after what has been sent.
    over: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(piece) = self.pieces.next(&self.chances.request).await {
                return Some(piece);
            }
            if self.over {
                return None;
            }
            match self.event().await.transpose()? {
                Ok(event) => {
                    let line = self.send(event);
                    if let Some(line) = self.pieces.push(line) {
                        return Some(Ok(line));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Returns the next event to send, if any.
    async fn event(&mut self) -> io::Result<Option<WatchEvent>> {
        loop {
            if let Some(error) = self.interrupt().await? {
                return Ok(Some(error));
            }
            if let Some(event) = self.first.pop_front() {
                return Ok(Some(event));
            }
            // A new rule wakes all watches, and applies to events that are read after its
            // injection.
            let next = poll_fn(|context| {
                if self.chances.has_news() {
                    return Poll::Ready(None);
                }
                match self.events.as_mut().poll_next(context) {
                    Poll::Pending if self.chances.has_news() => Poll::Ready(None),
                    polled => polled.map(Some),
                }
            });
            let Some(next) = next.await else { continue };
            let Some(event) = next.transpose()? else { return Ok(None) };
            // Since the last check, another thread may have added a rule and then written this
            // event.
            if self.chances.has_news()
                && let Some(error) = self.interrupt().await?
            {
                return Ok(Some(error));
            }
            if let Some(event) = self.exchange(event).await? {
                return Ok(Some(event));
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Applies the faults that fire before the next event, which may not exist yet. Returns the
    /// ERROR event if one of them ends the stream with it.
    async fn interrupt(&mut self) -> io::Result<Option<WatchEvent>> {
        self.chances.look_at_rules();
        let mut at = 0;
        while let Some(fault) = self.chances.next(&mut at, strikes_between) {
            let request = &self.chances.request;
            let status = match &*fault {
                Fault::Gone => Status::too_old(self.position, request.revision()),
                Fault::Status { code, retry_after } => status_of(*code, retry_after.as_ref()),
                other => {
                    request.suffer(other).await?;
                    continue;
                }
            };
            return Ok(Some(WatchEvent::error(&status, self.codec)));
        }
        Ok(None)
    }

    /// Returns the event to send instead of this one, if any.
    async fn exchange(&mut self, event: WatchEvent) -> io::Result<Option<WatchEvent>> {
        self.chances.offered += 1;
        self.position = self.position.max(event.version);
        let overtaken = self.held.take();
        // An event that overtakes another can be delayed, but is exempt from other faults.
        let spared = |fault: &Fault| overtaken.is_some() && !matches!(fault, Fault::Latency(_));
        let mut at = 0;
        while let Some(fault) = self.chances.next(&mut at, |f| exchanges(f, &event) && !spared(f)) {
            match &*fault {
                Fault::Latency(time) => self.chances.request.wait(*time).await?,
                Fault::DuplicateEvent => self.first.push_back(event.clone()),
                Fault::ReorderEvents => {
                    self.held = Some(event);
                    return Ok(None);
                }
                _ => return Ok(None),
            }
        }
        self.first.extend(overtaken);
        Ok(Some(event))
    }

    /// Encodes an event as it is sent, and records it.
    fn send(&mut self, event: WatchEvent) -> Bytes {
        let WatchEvent { event_type, key, version, line, .. } = event;
        self.over |= event_type == EventType::Error;
        let faults = self.of_line(event_type, &line);
        let line = self.damage(event_type, line, &faults);
        self.chances.sent += 1;
        let request = &self.chances.request;
        let (watch, fault) = (request.id, faults.last().map(|fault| fault.name()));
        let delivery = Delivery { watch, event_type, key, version, fault };
        request.server.shared.record.delivery(delivery);
        line
    }

    /// Returns the faults that alter this line. Those that split lines into chunks take effect from
    /// here on.
    fn of_line(&mut self, event_type: EventType, line: &Bytes) -> Vec<Arc<Fault>> {
        let Self { chances, pieces, codec, .. } = self;
        // Protobuf cannot represent a value of another type, so the content of objects is changed
        // in JSON only.
        let applies = |fault: &Fault| {
            is_of_line(fault) && (*codec == Codec::Json || !objects::is_of_objects(fault))
        };
        let is_object = !matches!(event_type, EventType::Bookmark | EventType::Error);
        let mut of_line = Vec::new();
        let mut at = 0;
        while let Some(fault) = chances
            .next(&mut at, |fault| pieces.would_cut(fault, line) || (is_object && applies(fault)))
        {
            if is_of_line(&fault) {
                of_line.push(fault);
            } else {
                pieces.cut_from_now_on(&fault);
            }
        }
        of_line
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
                Fault::MalformedUtf8 if self.codec == Codec::Protobuf => {
                    line = malformed_frame(&line);
                }
                Fault::MalformedUtf8 => line = malformed(&line),
                Fault::Truncated => {
                    self.over = true;
                    line.truncate(line.len() / 2);
                }
                _ => {}
            }
        }
        line
    }
}

/// The pending faults of a watch, and its progress.
struct Chances {
    request: Arc<Exposed>,
    waiting: Vec<Waiting>,
    newest_rule: u64,
    /// The number of events so far, whether or not they were sent.
    offered: u64,
    sent: u64,
}

impl Chances {
    /// Returns whether there are rules that have not been checked.
    fn has_news(&self) -> bool {
        self.request.server.shared.faults.newest() != self.newest_rule
    }

    fn look_at_rules(&mut self) {
        if !self.has_news() {
            return;
        }
        let Exposed { user, target, server, .. } = &*self.request;
        let faults = &server.shared.faults;
        let (news, newest) = faults.meet_running_watch(user, target.as_ref(), self.newest_rule);
        self.waiting.extend(news);
        self.newest_rule = newest;
    }

    /// Returns the next fault from `at` on that is due, `applies` and fires.
    fn next(&mut self, at: &mut usize, applies: impl Fn(&Fault) -> bool) -> Option<Arc<Fault>> {
        while let Some(candidate) = self.waiting.get_mut(*at) {
            let due = matches!(candidate.point, Point::Events(after) if after <= self.sent);
            // A fault has one chance between two events, however often the watch wakes up.
            let asked = candidate.asked == Some(self.offered);
            if !due || asked || !applies(&candidate.fault) {
                *at += 1;
                continue;
            }
            candidate.asked = Some(self.offered);
            match self.request.draw(candidate, self.sent) {
                Chance::Over => drop(self.waiting.remove(*at)),
                Chance::Misses => *at += 1,
                Chance::Strikes => {
                    *at += 1;
                    return Some(Arc::clone(&self.waiting[*at - 1].fault));
                }
            }
        }
        None
    }
}

/// Returns whether a fault fires between two events.
fn strikes_between(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Reset
            | Fault::Down(_)
            | Fault::HalfOpen
            | Fault::StalledBody
            | Fault::Status { .. }
            | Fault::Gone
            | Fault::Compact
            | Fault::DropWatches
            | Fault::Restart
            | Fault::Rollback { .. }
    )
}

/// Returns whether a fault changes if and when this event is sent.
fn exchanges(fault: &Fault, event: &WatchEvent) -> bool {
    match (event.event_type, fault) {
        (EventType::Error, _) => false,
        (_, Fault::Latency(_)) => true,
        (EventType::Bookmark, Fault::BookmarkLost) => !event.initial_events_end,
        (EventType::Bookmark, Fault::EndBookmarkMissing) => event.initial_events_end,
        (EventType::Bookmark, _) => false,
        (_, Fault::DropEvent | Fault::DuplicateEvent | Fault::ReorderEvents) => true,
        _ => false,
    }
}

/// Returns whether a fault changes the content of an event's line.
fn is_of_line(fault: &Fault) -> bool {
    objects::is_of_objects(fault) || matches!(fault, Fault::Truncated | Fault::MalformedUtf8)
}

/// Returns the frame with an event type that is not valid UTF-8. The lengths in the protobuf still
/// match.
fn malformed_frame(frame: &Bytes) -> Bytes {
    // The length of the frame, followed by the tag and length of the type.
    const TYPE: usize = 4 + 2;
    let mut out = frame.to_vec();
    if let Some(byte) = out.get_mut(TYPE) {
        *byte = 0xFF;
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use kube_schema::WatchFrame;

    use super::*;

    #[test]
    fn malformed_frames_keep_their_length() {
        let frame = Bytes::from(WatchFrame { event_type: "ADDED", object: b"k8s\0" }.to_vec());
        let malformed = malformed_frame(&frame);
        assert_eq!((malformed.len(), &malformed[..4]), (frame.len(), &frame[..4]));
        assert!(WatchFrame::parse(&frame[4..]).is_ok());
        assert!(WatchFrame::parse(&malformed[4..]).is_err());
    }
}
