//! Watch: a position in a table's history that advances as fast as the client reads.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::vec;

use futures_util::stream;
use http::header::SEC_WEBSOCKET_VERSION;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Call;
use super::read::{fresh, invalid_options};
use crate::body::Body;
use crate::codec::Codec;
use crate::limits::WATCH_TIMEOUT;
use crate::matcher::Matcher;
use crate::negotiate;
use crate::request::{Query, VersionMatch, parse_version};
use crate::response::{failure, respond};
use crate::server::{Shared, WatchSlot};
use crate::status::{FieldError, Status};
use crate::store::{EventType, Revision, Subscription, Unreadable};
use crate::upgrade::{self, Messages, Upgrade, WEBSOCKET_VERSION};
use crate::view::{View, WatchEvent};

/// The number of events that are read from the store at once: enough that its lock is taken rarely,
/// few enough that a client that has stopped reading does not hold many.
const BATCH_EVENTS: usize = 256;

/// Longer than any watch, but within what the clock can represent, unlike some values of clients.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The time of the last bookmark before a watch times out, as on a real server, so that the next
/// watch starts from the latest possible version.
const LAST_BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

pub(super) async fn watch(
    shared: &Arc<Shared>,
    call: &Call,
    view: View,
) -> Result<Response<Body>, Status> {
    let query = &call.target.query;
    check_options(query)?;
    let matcher = Matcher::new(&call.target)?;
    let handshake = match handshake(&call.headers) {
        Ok(handshake) => handshake,
        Err(status) => {
            let mut refused = failure(&status, negotiate::status_codec(&call.headers));
            let version = HeaderValue::from_static(WEBSOCKET_VERSION);
            refused.headers_mut().insert(SEC_WEBSOCKET_VERSION, version);
            return Ok(refused);
        }
    };
    let asked = parse_version(&query.resource_version)?;
    let table = &call.target.resource.table;
    let subscription = shared.store.subscribe(table).ok_or_else(Status::no_such_resource)?;
    let slot = shared.watch_slot()?;
    let wants_initial = match query.send_initial_events {
        Some(wanted) => wanted,
        // A watch without a version has always started with the current state.
        None => asked == 0,
    };
    let now = Instant::now();
    let timeout = query.timeout.unwrap_or_else(|| WATCH_TIMEOUT.mul_f64(1.0 + shared.random()));
    let mut watch = Watch {
        shared: Arc::clone(shared),
        call_id: call.id,
        table: Arc::clone(table),
        view,
        matcher,
        subscription,
        initial: Vec::new().into_iter(),
        pending: VecDeque::new(),
        position: asked,
        unread: None,
        bookmarks: query.bookmarks,
        mute: negotiate::asks_for_a_list(&call.headers, call.target.resource.custom),
        next_bookmark: now,
        deadline: now + timeout.min(FOREVER),
        connections: shared.connections.current(),
        watches: shared.watches.current(),
        over: false,
        _slot: slot,
    };
    watch.schedule_bookmark();
    if wants_initial {
        match fresh(shared, asked).await {
            Ok(()) => watch.begin_with_state(query.bookmarks),
            Err(status) => watch.fail(status),
        }
    } else if asked == 0 {
        watch.position = shared.store.revision();
    } else if let Err(Unreadable::Expired { oldest }) = shared.store.check_start(asked) {
        watch.fail(Status::too_old(asked, oldest));
    }
    let codec = watch.view.codec();
    let mut response = respond(StatusCode::OK, codec.watch_content_type(), watch.into_body());
    if let Some(handshake) = handshake {
        let messages = if codec == Codec::Protobuf { Messages::Frames } else { Messages::Lines };
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().extend(handshake);
        response.extensions_mut().insert(messages);
    }
    Ok(response)
}

/// Returns the headers that turn the connection into a WebSocket, if the client asks for that.
fn handshake(headers: &HeaderMap) -> Result<Option<HeaderMap>, Status> {
    match Upgrade::of(headers) {
        Upgrade::Http => Ok(None),
        Upgrade::WebSocket => upgrade::accept_websocket(headers).map(Some),
        Upgrade::Unsupported => Err(Status::bad_request(
            "a watch cannot be upgraded to this protocol: use WebSocket, or plain HTTP",
        )),
    }
}

fn check_options(query: &Query) -> Result<(), Status> {
    const MATCH: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    let not_older = query.version_match == Some(VersionMatch::NotOlderThan);
    if query.send_initial_events.is_some() && !not_older {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if let Some(version_match) = &query.version_match {
        if query.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                       provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        if !not_older {
            let given = match version_match {
                VersionMatch::Unknown(other) => other,
                _ => "Exact",
            };
            errors.push(FieldError::not_supported(MATCH, given, &["NotOlderThan"]));
        }
    }
    if query.continue_token.is_some() {
        // A real server gives this message even if the client did not set resourceVersionMatch.
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    invalid_options(&errors)
}

/// An open watch.
struct Watch {
    shared: Arc<Shared>,
    call_id: u64,
    table: Arc<str>,
    view: View,
    matcher: Matcher,
    subscription: Subscription,
    /// The initial state, encoded as it is sent.
    initial: vec::IntoIter<Arc<Revision>>,
    pending: VecDeque<Pending>,
    /// The version up to which everything is sent or pending.
    position: u64,
    /// The number of events that the last read left in the store, after the first read.
    unread: Option<usize>,
    bookmarks: bool,
    /// Whether the watch ends at the first event instead of sending it.
    mute: bool,
    next_bookmark: Instant,
    deadline: Instant,
    /// Cancelled when connections are broken, and when watches are ended.
    connections: CancellationToken,
    watches: CancellationToken,
    over: bool,
    _slot: WatchSlot,
}

/// The next thing to send. It is encoded only when it is sent.
enum Pending {
    Event(EventType, Arc<Revision>),
    Bookmark { version: u64, initial_events_end: bool },
    Error(Box<Status>),
}

impl Watch {
    /// Sends the state at one version before later changes. For clients that accept bookmarks, one
    /// marks the end of the state, even if they did not ask for initial events.
    fn begin_with_state(&mut self, ends: bool) {
        let Ok(page) = self.shared.store.list(&self.table, None, &self.matcher.page()) else {
            self.over = true;
            return;
        };
        self.position = page.version;
        self.initial = page.items.into_iter();
        if ends {
            let version = page.version;
            self.pending.push_back(Pending::Bookmark { version, initial_events_end: true });
        }
    }

    /// Ends the stream with an ERROR event.
    fn fail(&mut self, status: Status) {
        self.pending.push_back(Pending::Error(Box::new(status)));
        self.over = true;
    }

    fn into_body(self) -> Body {
        // Boxed, so that only a pointer moves from event to event.
        Body::events(stream::unfold(Box::new(self), |mut watch| async move {
            let event = watch.next().await?;
            Some((event, watch))
        }))
    }

    async fn next(&mut self) -> Option<io::Result<WatchEvent>> {
        loop {
            if self.connections.is_cancelled() {
                return Some(Err(io::ErrorKind::ConnectionReset.into()));
            }
            if self.watches.is_cancelled() {
                return None;
            }
            if let Some(event) = self.upcoming() {
                return (!self.mute).then_some(Ok(event));
            }
            // Checked here as well, for a watch that always has something to send.
            if self.over || self.deadline <= Instant::now() {
                return None;
            }
            self.refill().await;
        }
    }

    /// Reads new events, or waits until there may be some.
    async fn refill(&mut self) {
        self.subscription.changed.mark_seen();
        let read_on = self.read();
        if !self.pending.is_empty() || self.over {
            return;
        }
        if read_on {
            // No event of the batch matched. Yield before reading the next one.
            tokio::task::consume_budget().await;
        } else if self.bookmarks && self.next_bookmark <= Instant::now() {
            // Sent here, because the read has just advanced the position past writes to other
            // tables. A watch from a future version receives no bookmark before it, as on a real
            // server.
            let version = self.position;
            if version > self.shared.store.revision() {
                self.schedule_bookmark();
            } else {
                self.pending.push_back(Pending::Bookmark { version, initial_events_end: false });
            }
        } else {
            self.wait().await;
        }
    }

    fn upcoming(&mut self) -> Option<WatchEvent> {
        let event = if let Some(revision) = self.initial.next() {
            self.view.event(EventType::Added, &revision)
        } else {
            self.pending_event()?
        };
        Some(event.unwrap_or_else(|status| {
            // Nothing may follow an event that could not be sent.
            self.over = true;
            self.initial = Vec::new().into_iter();
            self.pending.clear();
            WatchEvent::error(&status, self.view.codec())
        }))
    }

    fn pending_event(&mut self) -> Option<Result<WatchEvent, Status>> {
        Some(match self.pending.pop_front()? {
            Pending::Event(event_type, revision) => self.view.event(event_type, &revision),
            Pending::Bookmark { version, initial_events_end } => {
                self.schedule_bookmark();
                self.view.bookmark(version, initial_events_end)
            }
            Pending::Error(status) => Ok(WatchEvent::error(&status, self.view.codec())),
        })
    }

    /// Reads the next events from the store. Returns whether there are more.
    fn read(&mut self) -> bool {
        let store = &self.shared.store;
        let batch = match store.events_after(
            &self.table,
            &self.subscription,
            self.position,
            BATCH_EVENTS,
        ) {
            Ok(batch) => batch,
            Err(Unreadable::Expired { oldest }) => {
                self.fail(Status::too_old(self.position, oldest));
                return false;
            }
            Err(_) => {
                self.over = true;
                return false;
            }
        };
        // The number of events since the last read: the client's lag.
        let all = batch.events.len() + batch.remaining;
        let written = self.unread.map_or(0, |unread| all.saturating_sub(unread));
        if written > self.shared.options.watch_lag_max {
            tracing::debug!(
                watch = self.call_id,
                written,
                "a watcher that does not read is cut off"
            );
            self.over = true;
            return false;
        }
        self.unread = Some(batch.remaining);
        self.position = batch.seen;
        let events = batch.events.iter().filter_map(|event| self.matcher.event(event));
        self.pending.extend(events.map(|(event_type, state)| Pending::Event(event_type, state)));
        batch.remaining > 0
    }

    async fn wait(&mut self) {
        tokio::select! {
            // Ordered, so that two runs of a test under paused time are identical.
            biased;
            () = self.connections.cancelled() => {}
            () = self.watches.cancelled() => {}
            () = sleep_until(self.deadline) => {}
            () = sleep_until(self.next_bookmark), if self.bookmarks => {}
            () = self.subscription.changed.news() => {}
        }
    }

    fn schedule_bookmark(&mut self) {
        let now = Instant::now();
        let regular = now + self.shared.options.bookmark_interval.min(FOREVER);
        let last = self.deadline.checked_sub(LAST_BOOKMARK_BEFORE_END).filter(|last| *last > now);
        self.next_bookmark = last.map_or(regular, |last| last.min(regular));
    }
}
