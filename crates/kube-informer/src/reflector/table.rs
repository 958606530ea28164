//! The table of reactions to errors.

use crate::Error;
use crate::error::Cause;

/// The kinds of failures that the protocol distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// 410, usually in a stream, but also as the response to a request.
    Expired { in_stream: bool },
    /// The requested version is newer than the server's newest.
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
    /// The server cannot read one of its own objects: a relist shows the others.
    StoreRead,
    /// 5xx.
    Server,
    /// The connection was refused.
    Refused,
    /// The connection was reset, truncated, or timed out.
    Broken,
    /// Nothing arrived for too long.
    Silence,
    /// Like `Silence`, on a watch that should have delivered something, or ended: bookmarks have arrived before
    /// and the previous watch failed as well, no watch has ever delivered anything, or it outlived its timeout.
    SilenceAgain,
    /// The response is not the expected one: garbage, another kind, or too large.
    Protocol,
    /// Versions went backwards.
    Regressed,
    /// The store rejected a list.
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

/// The activity that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum During {
    /// A LIST. `continued` on a page after the first, `paged` if it was requested in pages.
    List { continued: bool, paged: bool },
    /// The initial events of a streaming list.
    Stream,
    /// A watch. `worked` if it has delivered something new, or lasted; `lasted` if it has lasted.
    Watch { worked: bool, lasted: bool },
}

/// The next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// The same again: the list or stream from its start, the watch from the last version.
    Again,
    /// List, or stream a list, not older than what was seen.
    Relist,
    /// Like `Relist`, because watches keep failing and only lists work.
    Poll,
    /// List the most recent version, regardless of what was seen.
    RelistConsistent,
    /// The same list again without pages, because its token has expired.
    ListUnpaged,
    /// Use plain lists instead of streaming ones from now on.
    FallBack,
}

/// The pause before the next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// No pause, except that until the next watch may be opened.
    NextWatch,
    Now,
    /// No pause after the first of consecutive failures.
    FirstNow,
    /// Exponential backoff.
    Backoff,
}

/// Number of consecutive failures after which a list replaces a watch: otherwise the cache would
/// freeze if lists work and watches do not.
pub(crate) const WATCH_FAILURES_MAX: u32 = 5;
/// Number of consecutive failures of streams after which a list is tried.
pub(crate) const STREAM_FAILURES_MAX: u32 = 3;

/// The table. `failures` is the number of consecutive failures before this one; `consistent` says that the
/// request already was for the most recent version.
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
        // The token of a page expired: the rest of that list is unavailable. A server that pages a
        // list that was requested in one piece could respond like this indefinitely.
        (Fault::Expired { .. }, List { continued: true, paged }) => {
            (ListUnpaged, if paged { Now } else { Backoff })
        }
        // The requested version is out of the server's reach, in either direction: list what it
        // has.
        (Fault::Expired { .. } | Fault::TooLarge | Fault::Regressed, List { .. } | Stream) => {
            (RelistConsistent, if consistent { Backoff } else { Now })
        }
        (
            Fault::Expired { in_stream: false } | Fault::TooLarge | Fault::Regressed,
            Watch { .. },
        ) => (RelistConsistent, Backoff),

        (Fault::Unauthorized, _) => (Again, FirstNow),
        // Load balancers cut idle connections after half a minute: that is not a failure, and
        // neither is a cut after which the next watch gets further.
        (Fault::Broken, Watch { worked: true, .. }) => (Again, NextWatch),
        // A list would not fare better.
        (Fault::Refused | Fault::TooMany, _) => (Again, Backoff),
        // A resource that returns under the same name may be another one.
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

        // Servers that cannot stream lists, and proxies that swallow streams: a list may succeed.
        (Fault::Refuses | Fault::Silence, Stream) => (FallBack, Now),
        // Short pauses if it is a matter of seconds: a server that has just started refuses requests until it
        // has read its roles, and a resource is served soon after its CRD is created.
        _ => (Again, Backoff),
    }
}
