//! The faults, by name.

use std::time::Duration;

use http::{HeaderValue, StatusCode};

use crate::store::Snapshot;

/// A failure of the server, or between a client and the server.
///
/// Each variant describes what a client observes, followed by what a correct client guarantees. If
/// a fault can fire at several points of a response, the rule chooses the point:
/// [`after_events`](crate::FaultRule::after_events) and
/// [`after_bytes`](crate::FaultRule::after_bytes).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is refused, and the request is not carried out. In process, the call fails.
    /// On a socket, the existing connection is reset: for a closed port, use [`Fault::Down`].
    ///
    /// A client keeps its version and retries with backoff. It need not relist.
    Refused,
    /// The server is down for a time: all connections break, including this one, and new ones are
    /// refused until the time is over. On a socket, the port is closed.
    ///
    /// A client reconnects within its maximum backoff after the server is up, and never retries
    /// faster than its backoff allows.
    Down(Duration),
    /// The connection is reset, either before the response and without carrying out the request, or
    /// in the middle of the response.
    ///
    /// A client resumes from the last complete event, without gaps, duplicates or a relist. It
    /// discards a partial list.
    Reset,
    /// The request is carried out, but the connection is reset instead of sending the response.
    ///
    /// A client that writes cannot know whether the write succeeded, and must find out.
    LostAnswer,
    /// The connection stays open but silent in both directions, before the response or in the
    /// middle of it. On a socket this affects the whole connection, with all requests that share
    /// it.
    ///
    /// A client detects this in bounded time, and reports until then how stale its state is.
    HalfOpen,
    /// The request is accepted and never answered. On a socket the connection itself stays alive.
    ///
    /// A client's request times out and reports the cause. Nothing waits without a timeout.
    StalledHeaders,
    /// The status and the headers are sent, but no body, or only its beginning.
    ///
    /// As for [`Fault::HalfOpen`], except that pings on the connection do not detect it.
    StalledBody,
    /// From this point, the body is sent in chunks of `bytes`, one per `every`.
    ///
    /// A client buffers no more than one event or one list at a time, and does not mistake a slow
    /// connection for a dead one.
    SlowBytes {
        /// The bytes per chunk; at least one.
        bytes: usize,
        /// The delay before each chunk.
        every: Duration,
    },
    /// The request is delayed before it is carried out. In a watch, the next event is delayed.
    ///
    /// A client's correctness does not depend on the speed of responses.
    Latency(Duration),
    /// A response with any status code and the `Status` that Kubernetes has for it. The request is
    /// not carried out. In a watch, the `Status` is an ERROR event, and the stream ends. See
    /// [`Fault::status`] and [`Fault::status_retry_after`].
    ///
    /// A client keeps its state, marks it as stale, honours `Retry-After`, and backs off. It
    /// relists only if that can resolve the error.
    Status {
        /// The HTTP status.
        code: StatusCode,
        /// The `Retry-After` header, verbatim. A number of seconds is also put into the `Status`.
        retry_after: Option<HeaderValue>,
    },
    /// A 410 with reason `Expired`, whatever the version: as the response, or in a watch as an
    /// ERROR event that ends the stream. It does not change which versions can be read: see
    /// [`Fault::Compact`].
    ///
    /// A client relists, reports the objects that were deleted in the meantime, and never reverts
    /// to an older state.
    Gone,
    /// An HTML page from a proxy, with any status code (login pages have 200). The request is not
    /// carried out.
    ///
    /// A client reports an error that names the content type, and retries.
    Html(StatusCode),
    /// The response with a content type that does not match its body.
    ///
    /// A client does not parse a body of an unexpected type.
    ContentType(HeaderValue),
    /// A list that is this many versions old, as from a lagging replica, with the version of that
    /// time. Continued lists are not affected. If that version has been compacted, the oldest
    /// available state is returned.
    ///
    /// A client never reverts an object to an older state.
    StaleList {
        /// The number of versions.
        versions: u64,
    },
    /// All superseded states are compacted, and then the request is carried out. Continued lists,
    /// and watches from an older version, receive a 410.
    ///
    /// A client that pages restarts its list, and never mixes pages of two versions.
    Compact,
    /// All watches end gracefully, as when a server shuts down.
    ///
    /// A client resumes its watch without relisting.
    DropWatches,
    /// All connections break, including this one. The objects are retained.
    ///
    /// As for [`Fault::Reset`], for all clients at once. They do not reconnect as a thundering
    /// herd.
    Restart,
    /// Objects and versions revert to a snapshot, as after restoring a backup. Versions since then
    /// are assigned again, to other states.
    ///
    /// A client detects that versions went back, relists, and reports the objects that are gone as
    /// deleted.
    Rollback {
        /// The state to restore.
        snapshot: Snapshot,
        /// If true, connections stay open, and watches receive nothing until the version passes the
        /// one that they had reached. Otherwise all connections break.
        silent: bool,
    },
    /// The next event of a watch (not a bookmark) is not sent. In a list, the next item is omitted.
    ///
    /// This is a bug of the server that no client can detect immediately. An audit or the next list
    /// corrects the state.
    DropEvent,
    /// The next event of a watch (not a bookmark), or item of a list, is sent twice.
    ///
    /// A client applies and reports each version once.
    DuplicateEvent,
    /// The next event of a watch (not a bookmark) is sent after the one that follows it, or never
    /// if the stream ends first. In a list, two items are swapped.
    ///
    /// A client never reverts an object to an older state, and its cache contains everything up to
    /// the version that it reports.
    ReorderEvents,
    /// The next bookmark is not sent. The one that ends the initial events is not affected.
    ///
    /// A client does not depend on it: at worst it resumes from an older version, or relists.
    BookmarkLost,
    /// The bookmark that ends the initial events is not sent.
    ///
    /// A client stops waiting for it after a time, and falls back to a list.
    EndBookmarkMissing,
    /// The next object (of a watch, a list or another response) does not match its type: `metadata`
    /// is valid, but everything else (`spec`, `status`, `data`) is a number.
    ///
    /// One invalid object does not affect the others, and is not dropped silently: a client reports
    /// it by name.
    WrongType,
    /// The next object has an annotation of this many bytes, which may be far more than can be
    /// stored.
    ///
    /// A client's memory is bounded: it rejects an object that is too large, and reports it.
    Oversized {
        /// The length of the annotation.
        bytes: usize,
    },
    /// The next object's `metadata.managedFields` is nested to this depth.
    ///
    /// A client's stack is bounded: its parser rejects input that is too deep instead of
    /// overflowing.
    TooDeep {
        /// The number of nested objects.
        levels: usize,
    },
    /// The body ends gracefully in the middle of its JSON: in the next event of a watch, or in the
    /// first chunk of another body.
    ///
    /// A client discards incomplete input.
    Truncated,
    /// From this point, the chunks of the body are split inside every multi-byte UTF-8 sequence.
    /// The bytes themselves are valid. A body of plain ASCII is not affected.
    ///
    /// A client decodes text only once it is complete.
    SplitUtf8,
    /// The last string of the next event, or of the first chunk of another body, contains a byte
    /// that is not valid UTF-8. In a protobuf event, the byte is in the event's type.
    ///
    /// A client treats an unreadable event as a gap, and never skips it silently.
    MalformedUtf8,
}

/// The points in the course of a response at which a fault can fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Only before the response.
    Request,
    /// Instead of the response, or after some events of a watch if the rule says so.
    Status,
    /// Before the response, or after some events or bytes of it if the rule says so.
    Anywhere,
    /// On the status and headers of the response.
    Head,
    /// On an event of a watch, or an item of another response.
    Object,
    /// On the bytes of a body, from the start unless the rule says otherwise.
    Body,
}

/// Defines the names of all faults in one place.
macro_rules! names {
    ($($fault:pat => $name:literal,)*) => {
        /// Returns the name that is logged, such as `half-open`.
        pub fn name(&self) -> &'static str {
            match self {
                $($fault => $name,)*
            }
        }

        /// Returns the names of all faults.
        pub fn all_names() -> &'static [&'static str] {
            &[$($name),*]
        }
    };
}

impl Fault {
    names! {
        Self::Refused => "refused",
        Self::Down(_) => "down",
        Self::Reset => "reset",
        Self::LostAnswer => "lost-answer",
        Self::HalfOpen => "half-open",
        Self::StalledHeaders => "stalled-headers",
        Self::StalledBody => "stalled-body",
        Self::SlowBytes { .. } => "slow-bytes",
        Self::Latency(_) => "latency",
        Self::Status { .. } => "status",
        Self::Gone => "gone",
        Self::Html(_) => "html",
        Self::ContentType(_) => "content-type",
        Self::StaleList { .. } => "stale-list",
        Self::Compact => "compact",
        Self::DropWatches => "drop-watches",
        Self::Restart => "restart",
        Self::Rollback { .. } => "rollback",
        Self::DropEvent => "drop-event",
        Self::DuplicateEvent => "duplicate-event",
        Self::ReorderEvents => "reorder-events",
        Self::BookmarkLost => "bookmark-lost",
        Self::EndBookmarkMissing => "end-bookmark-missing",
        Self::WrongType => "wrong-type",
        Self::Oversized { .. } => "oversized",
        Self::TooDeep { .. } => "too-deep",
        Self::Truncated => "truncated",
        Self::SplitUtf8 => "split-utf8",
        Self::MalformedUtf8 => "malformed-utf8",
    }

    /// Creates a [`Fault::Status`] without a `Retry-After`. Panics if the code is invalid.
    pub fn status(code: u16) -> Self {
        Self::Status { code: status_code(code), retry_after: None }
    }

    /// Creates a [`Fault::Status`] with any text as its `Retry-After`: seconds, a date, or
    /// nonsense. Panics if the code is invalid, or if the text cannot be in a header.
    pub fn status_retry_after(code: u16, retry_after: &str) -> Self {
        Self::Status { code: status_code(code), retry_after: Some(header(retry_after)) }
    }

    /// Creates a [`Fault::Html`]. Panics if the code is invalid.
    pub fn html(code: u16) -> Self {
        Self::Html(status_code(code))
    }

    /// Creates a [`Fault::ContentType`]. Panics if the value cannot be in a header.
    pub fn content_type(content_type: &str) -> Self {
        Self::ContentType(header(content_type))
    }

    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Refused | Self::StalledHeaders | Self::Html(_) | Self::StaleList { .. } => {
                Place::Request
            }
            Self::Status { .. } | Self::Gone => Place::Status,
            Self::Down(_)
            | Self::Reset
            | Self::HalfOpen
            | Self::Latency(_)
            | Self::Compact
            | Self::DropWatches
            | Self::Restart
            | Self::Rollback { .. } => Place::Anywhere,
            Self::LostAnswer | Self::ContentType(_) => Place::Head,
            Self::DropEvent
            | Self::DuplicateEvent
            | Self::ReorderEvents
            | Self::BookmarkLost
            | Self::EndBookmarkMissing
            | Self::WrongType
            | Self::Oversized { .. }
            | Self::TooDeep { .. } => Place::Object,
            Self::StalledBody
            | Self::SlowBytes { .. }
            | Self::Truncated
            | Self::SplitUtf8
            | Self::MalformedUtf8 => Place::Body,
        }
    }
}

fn status_code(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("a status code has three digits")
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("a header's value is visible ASCII")
}
