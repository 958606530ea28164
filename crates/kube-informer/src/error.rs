//! One error, with predicates.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_core::Status;

use crate::shown::shown;
use crate::{ObjectKey, ResourceVersion};

/// Longer than any text of ours: more was written by a server, or by hooks.
const TEXT_CHARS_MAX: usize = 4000;

/// What hooks may fail with; `anyhow::Error`, `kube::Error` and `String` all convert.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, opaque; ask it with the predicates. Cheap to clone.
///
/// Its text says what was wrong, where, and where possible what to do about it. It never contains
/// the body of an object, a token, or a header, and is one line: whatever a server or a hook has written is
/// in it with control characters escaped, and cut off where it is long.
///
/// The text is complete: it has what the underlying error says, as far as that is safe to repeat.
/// [`source`](std::error::Error::source) gives that error itself, to programs that look for its type:
/// the client's where a connection failed (`kube::Error`, with hyper's and the `io::Error` below it),
/// that of a transform, or that of a store. Errors of credential plugins and of decoding have no
/// source, because their texts quote tokens and values.
///
/// ```
/// use std::error::Error as _;
/// use std::io;
///
/// use kube_informer::Error;
///
/// let reset = io::Error::from(io::ErrorKind::ConnectionReset);
/// let error = Error::connection("the cache server hung up").caused_by(reset);
/// assert!(error.is_connection_broken());
/// let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
/// assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionReset));
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    cause: Cause,
    text: Box<str>,
    source: Option<Source>,
}

type Source = Arc<dyn StdError + Send + Sync>;

/// What went wrong, as far as anybody decides by it.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The server said no, by its HTTP status or by an ERROR event inside a watch.
    Api { status: Box<Status>, retry_after: Option<Duration>, in_stream: bool },
    /// Nobody listens at the address.
    Refused,
    /// The connection or the stream broke: reset, truncated, timed out on the way.
    Broken,
    /// No answer, or none in time.
    Timeout,
    /// A watch on which nothing came for longer than the server's bookmarks take.
    Silence,
    /// An answer that is not what was asked for: not JSON, not a list, another kind, too large.
    Protocol,
    /// A version older than one that was seen before: the server has another history.
    Regressed,
    /// An object that has changed since it was read, or is gone.
    Conflict,
    /// A body that cannot be decoded as the type that was asked for.
    Decode { key: Option<ObjectKey> },
    /// An object that cannot be kept: no metadata, or a transform that failed.
    Unreadable { key: Option<ObjectKey> },
    /// A store that did not take a list.
    Store,
    /// A snapshot that cannot be written, or that an informer cannot begin with.
    Snapshot,
    /// No index of that name.
    UnknownIndex,
    /// Another index of that name.
    IndexConflict,
    /// A version that the cache's cannot be compared with.
    IncomparableVersion,
    /// The informer or factory was stopped.
    Stopped,
    /// Somebody called us with something that cannot be.
    Invalid,
}

impl Error {
    pub(crate) fn new(cause: Cause, text: impl Into<String>) -> Self {
        let text = shown(&text.into(), TEXT_CHARS_MAX).into();
        Self(Arc::new(Inner { cause, text, source: None }))
    }
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Cause::Invalid, text)
    }
    pub(crate) fn protocol(text: impl Into<String>) -> Self {
        Self::new(Cause::Protocol, text)
    }
    pub(crate) fn incomparable_version(version: &ResourceVersion, cache: &ResourceVersion) -> Self {
        let text = format!(
            "whether the cache has version {:?} cannot be known: it is at {:?}, and only numbers can be compared",
            version.as_str(),
            cache.as_str(),
        );
        Self::new(Cause::IncomparableVersion, text)
    }
    pub(crate) fn no_snapshot() -> Self {
        Self::new(
            Cause::Snapshot,
            "an informer of several namespaces, or with a source of the program's own, has no snapshots",
        )
    }
    pub(crate) fn stopped() -> Self {
        Self::new(Cause::Stopped, "the informer has been stopped")
    }

    /// What a server answered: for sources of one's own, and for fakes. `in_stream` where it came as
    /// an event of a watch, as a 410 usually does.
    pub fn from_status(status: Status, in_stream: bool) -> Self {
        let text = format!("the server says {}: {}", status.code, status.message);
        Self::new(Cause::Api { status: Box::new(status), retry_after: None, in_stream }, text)
    }

    /// A connection or a stream that broke: for sources of one's own, and for fakes.
    pub fn connection(text: impl Into<String>) -> Self {
        Self::new(Cause::Broken, text)
    }

    /// The same error with words before its text that say what failed by it.
    pub(crate) fn within(&self, what: impl fmt::Display) -> Self {
        Self::new(self.cause().clone(), format!("{what}: {self}")).caused_as(self)
    }

    /// The same error with a [`source`](std::error::Error::source). The text stays as it is, so the
    /// source should say nothing that must not be shown.
    pub fn caused_by(self, source: impl Into<BoxError>) -> Self {
        self.with_source(Some(Arc::from(source.into())))
    }

    /// The same error with the source of another, which it replaces.
    pub(crate) fn caused_as(self, replaced: &Error) -> Self {
        self.with_source(replaced.0.source.clone())
    }

    fn with_source(self, source: Option<Source>) -> Self {
        let Inner { cause, text, .. } = &*self.0;
        Self(Arc::new(Inner { cause: cause.clone(), text: text.clone(), source }))
    }

    pub(crate) fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The object that this is about, if it is about one.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self.cause() {
            Cause::Decode { key } | Cause::Unreadable { key } => key.as_ref(),
            _ => None,
        }
    }

    /// The server's `Status`, if it sent one.
    pub fn status(&self) -> Option<&Status> {
        match self.cause() {
            Cause::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    /// A body could not be decoded as the type that was asked for.
    pub fn is_decode(&self) -> bool {
        matches!(self.cause(), Cause::Decode { .. })
    }
    /// An object could not be kept: it has no metadata, is of another kind, or a transform failed.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.cause(), Cause::Unreadable { .. })
    }
    /// 401: the server does not know who we are (any more).
    pub fn is_unauthorized(&self) -> bool {
        self.code_or_reason(401, "Unauthorized")
    }
    /// 403: who we are may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.code_or_reason(403, "Forbidden")
    }
    /// 404: the resource is not served (a definition not installed, or gone).
    pub fn is_not_found(&self) -> bool {
        self.code_or_reason(404, "NotFound")
    }
    /// 409, or a JSON patch whose test failed: the object has changed since it was read, or is gone. Retry
    /// once the cache has the newer state.
    pub fn is_conflict(&self) -> bool {
        matches!(self.cause(), Cause::Conflict) || self.code_or_reason(409, "Conflict")
    }
    /// 409: there is an object of that name.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }
    /// 410, by HTTP status or inside a stream: the version is too old, a relist follows.
    pub fn is_expired(&self) -> bool {
        self.code_or_reason(410, "Expired") || self.code_or_reason(410, "Gone")
    }
    /// 429: the server asks for patience.
    pub fn is_too_many_requests(&self) -> bool {
        self.code_or_reason(429, "TooManyRequests")
    }
    /// The server said no, by its HTTP status or by an ERROR event inside a watch:
    /// [`status`](Self::status) has its answer. The predicates above tell some of them apart.
    pub fn is_api(&self) -> bool {
        matches!(self.cause(), Cause::Api { .. })
    }
    /// Nobody listens at the server's address.
    pub fn is_connection_refused(&self) -> bool {
        matches!(self.cause(), Cause::Refused)
    }
    /// The connection could not be made, or it broke: reset, closed in the middle of an answer, a TLS
    /// handshake or credentials that failed. Refused connections are
    /// [another thing](Self::is_connection_refused).
    pub fn is_connection_broken(&self) -> bool {
        matches!(self.cause(), Cause::Broken)
    }
    /// No answer, or none in time. A server that itself reports a timeout has answered:
    /// [`is_api`](Self::is_api).
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause(), Cause::Timeout)
    }
    /// A watch on which nothing came for too long: the connection is taken for dead.
    pub fn is_silence(&self) -> bool {
        matches!(self.cause(), Cause::Silence)
    }
    /// The answer is not what was asked for: not JSON, not a list, another kind, too large.
    pub fn is_protocol(&self) -> bool {
        matches!(self.cause(), Cause::Protocol)
    }
    /// The server is at an older version than before, as after a restore of its etcd.
    pub fn is_regressed(&self) -> bool {
        matches!(self.cause(), Cause::Regressed)
    }
    /// A store of the program's own did not take a list; it is offered the next one after a pause.
    pub fn is_store(&self) -> bool {
        matches!(self.cause(), Cause::Store)
    }
    /// A snapshot cannot be written, or an informer cannot begin with it: it is damaged, or of something
    /// else. Such an informer lists as it would without one.
    pub fn is_snapshot(&self) -> bool {
        matches!(self.cause(), Cause::Snapshot)
    }
    /// There is another index of that name.
    pub fn is_index_conflict(&self) -> bool {
        matches!(self.cause(), Cause::IndexConflict)
    }
    /// No index of that name.
    pub fn is_unknown_index(&self) -> bool {
        matches!(self.cause(), Cause::UnknownIndex)
    }
    /// A version was waited for that cannot be compared with the cache's: only decimal numbers can.
    pub fn is_incomparable_version(&self) -> bool {
        matches!(self.cause(), Cause::IncomparableVersion)
    }
    /// The informer or factory was stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.cause(), Cause::Stopped)
    }
    /// The program asked for something that cannot be: a malformed key, selector or path, an object
    /// that cannot be written. A server that finds a request invalid has answered:
    /// [`is_api`](Self::is_api).
    pub fn is_invalid(&self) -> bool {
        matches!(self.cause(), Cause::Invalid)
    }

    /// The version that was asked for is newer than any that the server has.
    pub(crate) fn is_version_too_large(&self) -> bool {
        let Some(status) = self.status() else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let mut causes = causes.map(|cause| cause.reason.as_str());
        // Servers before 1.19 say it in the message only.
        causes.any(|reason| reason == "ResourceVersionTooLarge")
            || (status.code == 504 || status.reason == "Timeout")
                && status.message.contains("Too large resource version")
    }

    /// How long the server asks us to wait, at least.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self.cause() {
            Cause::Api { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// As client-go does it: the reason decides, the code only where there is no reason.
    fn code_or_reason(&self, code: u16, reason: &str) -> bool {
        self.status().is_some_and(|status| {
            status.reason == reason || status.code == code && !known_reason(&status.reason)
        })
    }
}

/// Whether a reason means a code of its own, so that the code need not be asked.
fn known_reason(reason: &str) -> bool {
    const KNOWN: [&str; 17] = [
        "Unauthorized",
        "Forbidden",
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Gone",
        "Invalid",
        "ServerTimeout",
        "StoreReadError",
        "Timeout",
        "TooManyRequests",
        "BadRequest",
        "MethodNotAllowed",
        "NotAcceptable",
        "UnsupportedMediaType",
        "Expired",
        "InternalError",
    ];
    KNOWN.contains(&reason)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Error").field(&self.0.text).finish()
    }
}
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Equal if they say the same: texts are compared, sources are not.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}
impl Eq for Error {}

#[cfg(test)]
mod tests;
