//! What each error does: one table.

use crate::Error;
use crate::error::Cause;

/// What went wrong, as far as the protocol is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// 410, in a stream, as is usual, or as the answer to a request.
    Expired { in_stream: bool },
    /// The version that was asked for is newer than the server's newest.
    TooLarge,
    /// 429.
    TooMany,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404: the resource is not served.
    NotFound,
    /// 400, 405, 406, 415, 422: the server does not understand the request.
    Refuses,
    /// The server cannot read one of its own objects: a relist shows what is left.
    StoreRead,
    /// 5xx.
    Server,
    /// Nobody listens.
    Refused,
    /// Reset, truncated, timed out.
    Broken,
    /// Nothing came for too long.
    Silence,
    /// The same on a watch that should have brought something, or ended: bookmarks have come before and the
    /// watch before it failed as well, no watch has ever brought anything, or it outlived its timeout.
    SilenceAgain,
    /// Not what was asked for: garbage, another kind, too large.
    Protocol,
    /// Versions went backwards.
    Regressed,
    /// The store did not take a list.
    Store,
}

pub(crate) fn classify(error: &Error) -> Fault {
    let status = match error.cause() {
        Cause::Refused => return Fault::Refused,
        Cause::Broken | Cause::Timeout | Cause::Stopped => return Fault::Broken,
        Cause::Silence => return Fault::Silence,
        Cause::Regressed => return Fault::Regressed,
        Cause::Store => return Fault::Store,
        Cause::Api { in_stream, .. } if error.is_expired() => {
            return Fault::Expired { in_stream: *in_stream };
        }
        Cause::Api { status, .. } => status,
        _ => return Fault::Protocol,
    };
    match status.code {
        _ if error.is_version_too_large() => Fault::TooLarge,
        _ if error.is_too_many_requests() => Fault::TooMany,
        _ if error.is_unauthorized() => Fault::Unauthorized,
        _ if error.is_forbidden() => Fault::Forbidden,
        _ if error.is_not_found() => Fault::NotFound,
        _ if status.reason == "StoreReadError" => Fault::StoreRead,
        400 | 405 | 406 | 415 | 422 => Fault::Refuses,
        _ => Fault::Server,
    }
}

/// The reflector's activity when something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum During {
    /// A LIST. On a page after the first; and was it asked for in pages?
    List { continued: bool, paged: bool },
    /// The initial events of a streaming list.
    Stream,
    /// A watch. Has it brought anything new, or lasted; and has it lasted?
    Watch { worked: bool, lasted: bool },
}

/// Where to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// The same again: the list or stream from its beginning, the watch from the last version.
    Again,
    /// List, or stream a list, not older than what was seen.
    Relist,
    /// The same, since watches keep failing: lists are all that is left.
    Poll,
    /// List with the most recent version, whatever was seen.
    RelistConsistent,
    /// The same list again without pages: its token has expired.
    ListUnpaged,
    /// List without streaming, now and from now on.
    FallBack,
}

/// How long to wait before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// At once, or as soon as the next watch may be opened.
    NextWatch,
    Now,
    /// At once after the first of consecutive failures.
    FirstNow,
    /// The exponential backoff.
    Backoff,
}

/// Consecutive failures after which a watch is given up for a list: what the cache has would freeze
/// where lists work and watches do not.
pub(crate) const WATCH_FAILURES_MAX: u32 = 5;
/// Consecutive failures after which a list is tried where streams of it keep breaking.
pub(crate) const STREAM_FAILURES_MAX: u32 = 3;

/// The table. `failures` counts the consecutive ones before this; `consistent` says that the request
/// already was for the most recent version.
pub(crate) fn decide(
    fault: Fault,
    during: During,
    failures: u32,
    consistent: bool,
) -> (Then, Pace) {
    use During::{List, Stream, Watch};
    use Pace::{Backoff, FirstNow, NextWatch, Now};
    use Then::{Again, FallBack, ListUnpaged, Poll, Relist, RelistConsistent};
    match (fault, during) {
        // The token of a page expired: the rest of that list cannot be had any more. A server that
        // pages what it was asked for in one piece could say so for ever.
        (Fault::Expired { .. }, List { continued: true, paged }) => {
            (ListUnpaged, if paged { Now } else { Backoff })
        }
        // What was asked for is out of the server's reach, in either direction: take what it has.
        (Fault::Expired { .. } | Fault::TooLarge | Fault::Regressed, List { .. } | Stream) => {
            (RelistConsistent, if consistent { Backoff } else { Now })
        }
        (
            Fault::Expired { in_stream: false } | Fault::TooLarge | Fault::Regressed,
            Watch { .. },
        ) => (RelistConsistent, Backoff),

        (Fault::Unauthorized, _) => (Again, FirstNow),
        // Load balancers cut connections that were idle for half a minute: that is no failure, and
        // neither is a cut after which the next watch gets further.
        (Fault::Broken, Watch { worked: true, .. }) => (Again, NextWatch),
        // A list would get no further.
        (Fault::Refused | Fault::TooMany, _) => (Again, Backoff),
        // A resource that comes back under its name may be another one.
        (
            Fault::Expired { .. }
            | Fault::NotFound
            | Fault::Refuses
            | Fault::StoreRead
            | Fault::Protocol
            | Fault::Store,
            Watch { .. },
        ) => (Relist, Backoff),
        (_, Watch { .. }) if failures + 1 >= WATCH_FAILURES_MAX => (Poll, Backoff),
        (Fault::Silence, Watch { .. }) => (Again, FirstNow),
        (Fault::SilenceAgain, Watch { .. }) => (Relist, Backoff),

        // Servers that cannot stream lists, and proxies that swallow streams: a list may get through.
        (Fault::Refuses | Fault::Silence, Stream) => (FallBack, Now),
        // Not for long where it is a matter of seconds: a server that has just started refuses what it
        // allows, until it has read its roles, and a resource is served soon after it is defined.
        _ => (Again, Backoff),
    }
}
