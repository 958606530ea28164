//! The faults, by name.

use std::time::Duration;

use http::{HeaderValue, StatusCode};

use crate::store::Snapshot;

/// Something that goes wrong between a client and the server, or in the server.
///
/// Each says what a client sees of it, and what a client must hold under it. Where it can strike
/// at several points of an answer, the point is the rule's:
/// [`after_events`](crate::FaultRule::after_events) and
/// [`after_bytes`](crate::FaultRule::after_bytes).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is refused, and nothing is done. In process, the call fails so; on a socket
    /// the connection is there already, and is reset: for a closed port, use [`Fault::Down`].
    ///
    /// A client stays on the version that it has and tries again, later and later; it need not list
    /// anew.
    Refused,
    /// The server is down for a time: all connections break, this one too, and new ones are refused
    /// (on a socket: the port is closed) until the time is over.
    ///
    /// A client comes back within its longest delay after the server does, and does not ask more
    /// often than it said it would.
    Down(Duration),
    /// The connection is reset: before the answer, with nothing done; or in the middle of it.
    ///
    /// A client resumes from the last event that it got whole, without a gap and without a second
    /// copy, and does not list anew. Half of a list is not a list.
    Reset,
    /// The request is carried out, and then the connection is reset instead of the answer.
    ///
    /// A client that writes does not know whether it has written, and must find out.
    LostAnswer,
    /// Silence both ways, with the connection open: before the answer, or in the middle of it. On a
    /// socket the whole connection falls silent, with all requests that share it.
    ///
    /// A client notices by itself, in bounded time, and until then says how stale it is.
    HalfOpen,
    /// The request is taken, and never answered. On a socket the connection itself stays alive.
    ///
    /// A client's waiting ends, with a cause; nothing hangs without a timer.
    StalledHeaders,
    /// The status and the headers come, and then nothing more, or nothing more from some point on.
    ///
    /// As with [`Fault::HalfOpen`], where pings of the connection do not help.
    StalledBody,
    /// From the point on, the body comes in bits of `bytes`, one `every` so often.
    ///
    /// A client holds no more than one event or one list at a time, and takes slow for slow, not
    /// for dead.
    SlowBytes {
        /// How many bytes come at once; at least one.
        bytes: usize,
        /// The time before each.
        every: Duration,
    },
    /// The request is held up before it is carried out; in a watch, the next event is.
    ///
    /// Nothing may depend on how fast an answer is.
    Latency(Duration),
    /// An answer of any code, with the `Status` that Kubernetes has for it, and nothing done. In a
    /// watch, the `Status` is an ERROR event, and the stream ends. See [`Fault::status`] and
    /// [`Fault::status_retry_after`].
    ///
    /// A client keeps what it has, flagged as not live, waits as long as it was told to, and backs
    /// off; it lists anew only for what listing anew can mend.
    Status {
        /// The HTTP status.
        code: StatusCode,
        /// The `Retry-After` header, as it is. A number of seconds is also put into the `Status`.
        retry_after: Option<HeaderValue>,
    },
    /// 410 with reason `Expired`, whatever the version: as the answer, or in a watch as an ERROR
    /// event, after which the stream ends. What remains readable is not changed by it: that is
    /// [`Fault::Compact`].
    ///
    /// A client lists anew, reports what was deleted meanwhile, and never shows an older state than
    /// it has shown.
    Gone,
    /// A page of HTML from a proxy, with any code (200 is what a login page has). Nothing is done.
    ///
    /// A client fails with a cause that names the content, and tries again.
    Html(StatusCode),
    /// The answer, with another content type than its body has.
    ///
    /// A client does not parse what it was not promised.
    ContentType(HeaderValue),
    /// A list as it was so many versions ago, with the version of then: from a replica that lags.
    /// Lists that continue another are left alone. What is forgotten cannot be shown: the oldest
    /// state that is remembered is.
    ///
    /// A client never goes back to an older state of an object than it has shown.
    StaleList {
        /// How many versions.
        versions: u64,
    },
    /// All superseded states are forgotten now; the request goes on, and finds what it finds. Pages
    /// that continue a list, and watches from an older version, get a 410.
    ///
    /// A client that pages begins its list again, and never mixes pages of two versions.
    Compact,
    /// All watches end, in an orderly way, as from a server that is about to stop.
    ///
    /// A client watches on from where it was, without listing anew.
    DropWatches,
    /// All connections break, this one too; the objects stay.
    ///
    /// As with [`Fault::Reset`], for all at once: clients do not come back in one herd.
    Restart,
    /// Objects and versions go back to a snapshot, as with a restore from a backup: versions that
    /// were given out are given out again, for other states.
    ///
    /// A client sees that versions went back, lists anew, and reports as deleted what is gone.
    Rollback {
        /// Where to.
        snapshot: Snapshot,
        /// Connections stay, and watches are given nothing until the versions have passed the
        /// point where they were; otherwise all connections break.
        silent: bool,
    },
    /// The next event of a watch (not a bookmark) is not sent; of a list, the next item is left out.
    ///
    /// That is a bug of the server which no client can see at once: what is wrong must be found by
    /// an audit, or mended by the next list.
    DropEvent,
    /// The next event of a watch (not a bookmark), or item of a list, comes twice.
    ///
    /// A client applies and reports a version once.
    DuplicateEvent,
    /// The next event of a watch (not a bookmark) comes after the one that follows it, or never, if
    /// the stream ends first; of a list, two items change places.
    ///
    /// The state of an object never goes back, and a version of the cache means that everything up
    /// to it is in there.
    ReorderEvents,
    /// The next bookmark is not sent. The one that ends the initial events is left alone.
    ///
    /// A client gets along without: at worst it begins from an older version, or lists anew.
    BookmarkLost,
    /// The bookmark that ends the initial events is not sent.
    ///
    /// A client's waiting for the first state ends: it falls back to a list.
    EndBookmarkMissing,
    /// The next object (of a watch, a list or another answer) does not fit its type: `metadata` is
    /// right, all else (`spec`, `status`, `data`) is a number.
    ///
    /// One bad object does not take the others down, and is not forgotten: a client names it.
    WrongType,
    /// The next object has an annotation of so many bytes, far beyond what can be stored if so
    /// asked.
    ///
    /// A client's memory is bounded: it refuses what is too large, and says so.
    Oversized {
        /// The length of the annotation.
        bytes: usize,
    },
    /// The next object's `metadata.managedFields` nests so many objects.
    ///
    /// A client's stack is bounded: a parser refuses what is too deep, and does not overflow.
    TooDeep {
        /// How many objects, one in the other.
        levels: usize,
    },
    /// The body ends, in an orderly way, in the middle of its JSON: of the next event of a watch, or
    /// of the first piece of another body.
    ///
    /// What came in part has not come.
    Truncated,
    /// From the point on, the pieces of a body end inside of every UTF-8 sequence of more than one
    /// byte. The bytes are right. A body of plain ASCII is left alone.
    ///
    /// Text is decoded once it is whole.
    SplitUtf8,
    /// There is a byte that is no UTF-8 in the last text of the next event, or of the first piece
    /// of another body. In an event in protobuf it is in the type of the event.
    ///
    /// An event that cannot be read counts as a gap, and is never skipped in silence.
    MalformedUtf8,
}

/// When, in the course of an answer, a fault has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the answer, and nowhere else.
    Request,
    /// Instead of the answer; or, if so asked, after some events of a watch.
    Status,
    /// Before the answer; or, if so asked, after some events or bytes of it.
    Anywhere,
    /// Once the answer is there, on its head.
    Head,
    /// On an event of a watch, or an item of another answer.
    Object,
    /// On the bytes of a body, from its beginning if nothing else is asked.
    Body,
}

/// The names, and which has which, in one place.
macro_rules! names {
    ($($fault:pat => $name:literal,)*) => {
        /// The name, as it is logged: `half-open`.
        pub fn name(&self) -> &'static str {
            match self {
                $($fault => $name,)*
            }
        }

        /// The names of all faults.
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

    /// [`Fault::Status`] without a Retry-After. Panics if it is no status code.
    pub fn status(code: u16) -> Self {
        Self::Status { code: status_code(code), retry_after: None }
    }

    /// [`Fault::Status`] with a `Retry-After` of any text: seconds, a date, nonsense. Panics if it
    /// is no status code, or cannot be in a header.
    pub fn status_retry_after(code: u16, retry_after: &str) -> Self {
        Self::Status { code: status_code(code), retry_after: Some(header(retry_after)) }
    }

    /// [`Fault::Html`]. Panics if it is no status code.
    pub fn html(code: u16) -> Self {
        Self::Html(status_code(code))
    }

    /// [`Fault::ContentType`]. Panics if it cannot be in a header.
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
