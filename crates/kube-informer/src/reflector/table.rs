//! What each error does: one table.

use crate::Error;
use crate::error::Cause;

/// What went wrong, as far as the protocol is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// 410, in a stream (as the usual way of the world) or as the answer to a request.
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
    /// The same, after another failure, on a watch: its server may not have come to the version that it
    /// is asked for, since it was restored from a backup. Silence alone is no such failure where no bookmarks come.
    SilenceAgain,
    /// Not what was asked for: garbage, another kind, too large.
    Protocol,
    /// Versions went backwards.
    Regressed,
}

pub(crate) fn classify(error: &Error) -> Fault {
    let status = match error.cause() {
        Cause::Refused => return Fault::Refused,
        Cause::Broken | Cause::Timeout | Cause::Stopped => return Fault::Broken,
        Cause::Silence => return Fault::Silence,
        Cause::Regressed => return Fault::Regressed,
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

/// What the reflector is at when something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum During {
    /// A LIST; on a page after the first?
    List { continued: bool },
    /// The initial events of a streaming list.
    Stream,
    /// A watch.
    Watch,
}

/// Where to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// The same again: the list or stream from its beginning, the watch from the last version.
    Again,
    /// List, or stream a list, not older than what was seen.
    Relist,
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
    Now,
    /// At once if it is the first failure in a row.
    FirstNow,
    /// The exponential backoff.
    Backoff,
    /// Its longest delay at once.
    Slow,
}

/// Failures in a row after which a watch that the server keeps failing is given up for a list.
const SERVER_ERRORS_MAX: u32 = 5;
/// Failures in a row after which a list is tried where streams of it keep breaking.
pub(crate) const STREAM_FAILURES_MAX: u32 = 3;

/// The table. `failures` counts those in a row, this one not included; `consistent` says that the
/// request already was for the most recent version.
#[expect(clippy::match_same_arms, reason = "a table is read row by row")]
pub(crate) fn decide(
    fault: Fault,
    during: During,
    failures: u32,
    consistent: bool,
) -> (Then, Pace) {
    use During::{List, Stream, Watch};
    use Pace::{Backoff, FirstNow, Now, Slow};
    use Then::{Again, FallBack, ListUnpaged, Relist, RelistConsistent};
    match (fault, during) {
        // The token of a page expired: the rest of that list cannot be had any more.
        (Fault::Expired { .. }, List { continued: true }) => (ListUnpaged, Now),
        // What was asked for is out of the server's reach, in either direction: take what it has.
        (Fault::Expired { .. } | Fault::TooLarge | Fault::Regressed, List { .. } | Stream) => {
            (RelistConsistent, if consistent { Backoff } else { Now })
        }
        (Fault::Expired { in_stream: true }, Watch) => (Relist, Backoff),
        (Fault::Expired { in_stream: false } | Fault::TooLarge | Fault::Regressed, Watch) => {
            (RelistConsistent, Backoff)
        }

        (Fault::Unauthorized, _) => (Again, FirstNow),
        // Not slowly: a server that has just started refuses what it allows, until it has read its roles.
        (Fault::Forbidden, _) => (Again, Backoff),
        // It may be another resource that comes back under that name.
        (Fault::NotFound, Watch) => (Relist, Slow),
        (Fault::NotFound, _) => (Again, Slow),

        (Fault::Refuses, Stream) => (FallBack, Now),
        (Fault::Refuses | Fault::StoreRead | Fault::Protocol, Watch) => (Relist, Backoff),
        (Fault::Server, Watch) if failures + 1 >= SERVER_ERRORS_MAX => (Relist, Backoff),
        // Streams that break and proxies that swallow them: a list may get through.
        (Fault::Silence, Stream) => (FallBack, Now),
        (Fault::Silence, Watch) => (Again, FirstNow),
        (Fault::SilenceAgain, Watch) => (Relist, Backoff),

        (
            Fault::TooMany
            | Fault::Server
            | Fault::Refused
            | Fault::Broken
            | Fault::Silence
            | Fault::SilenceAgain
            | Fault::Refuses
            | Fault::StoreRead
            | Fault::Protocol,
            _,
        ) => (Again, Backoff),
    }
}
