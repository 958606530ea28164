//! The crate's error type, with predicates.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_core::Status;

use crate::shown::shown;
use crate::{ObjectKey, ResourceVersion};

/// Longer than any message of this crate: the rest comes from a server or from a hook.
const TEXT_CHARS_MAX: usize = 4000;

/// The error of a hook; `anyhow::Error`, `kube::Error` and `String` all convert into it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate: opaque, with a predicate for each cause. Cheap to clone.
///
/// The message says what failed, where, and if possible what to do about it. It never contains an object's
/// body, a token or a header, and is a single line: control characters in text from a server or a hook are
/// escaped, and long text is truncated.
///
/// The message is complete: it includes that of the underlying error as far as it is safe to repeat.
/// [`source`](std::error::Error::source) returns the underlying error itself, for programs that look for its
/// type: the client's if a connection failed (`kube::Error`, with hyper's error and the `io::Error` below it),
/// or that of a transform or a store. Errors of credential plugins and of decoding have no source, because
/// their messages quote tokens and values.
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

/// The cause of an error, as far as code depends on it.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The server refused, with its HTTP status or with an ERROR event inside a watch.
    Api { status: Box<Status>, retry_after: Option<Duration>, in_stream: bool },
    /// The connection was refused.
    Refused,
    /// The connection or the stream broke: it was reset, truncated, or timed out on the way.
    Broken,
    /// There was no response, or none in time.
    Timeout,
    /// A watch was silent for longer than the interval between the server's bookmarks.
    Silence,
    /// The response is not the expected one: not JSON, not a list, another kind, or too large.
    Protocol,
    /// The version is older than one that was seen before: the server has a different history.
    Regressed,
    /// The object has changed since it was read, or is gone.
    Conflict,
    /// The body cannot be decoded as the requested type.
    Decode { key: Option<ObjectKey> },
    /// The object cannot be stored: it has no metadata, or its transform failed.
    Unreadable { key: Option<ObjectKey> },
    /// A store rejected a list.
    Store,
    /// A snapshot cannot be written, or an informer cannot start from it.
    Snapshot,
    /// No index has this name.
    UnknownIndex,
    /// Another index has this name.
    IndexConflict,
    /// The version cannot be compared with the cache's.
    IncomparableVersion,
    /// The informer or factory was stopped.
    Stopped,
    /// The caller passed an invalid argument.
    Invalid,
}

impl Error {
    /// The cause in a word or two, one of a few: a label of metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match &self.0.cause {
            Cause::Api { .. } if self.is_expired() => "expired",
            Cause::Api { status, .. } => match status.code {
                401 => "unauthorized",
                403 => "forbidden",
                404 => "not_found",
                429 => "too_many_requests",
                500..=599 => "server_error",
                _ => "refused_by_server",
            },
            Cause::Refused => "connection_refused",
            Cause::Broken => "connection_broken",
            Cause::Timeout => "timeout",
            Cause::Silence => "silence",
            Cause::Protocol => "protocol",
            Cause::Regressed => "version_went_back",
            Cause::Conflict => "conflict",
            Cause::Decode { .. } | Cause::Unreadable { .. } => "unreadable_object",
            Cause::Store => "store",
            Cause::Snapshot => "snapshot",
            Cause::Stopped => "stopped",
            Cause::UnknownIndex
            | Cause::IndexConflict
            | Cause::IncomparableVersion
            | Cause::Invalid => "invalid",
        }
    }

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
            "cannot tell whether the cache has reached version {:?}: it is at {:?}, and only numbers can be compared",
            version.as_str(),
            cache.as_str(),
        );
        Self::new(Cause::IncomparableVersion, text)
    }
    pub(crate) fn no_snapshot() -> Self {
        Self::new(
            Cause::Snapshot,
            "informers of several namespaces, or with a custom source, do not support snapshots",
        )
    }
    pub(crate) fn stopped() -> Self {
        Self::new(Cause::Stopped, "the informer has been stopped")
    }

    /// Creates an error from a server's response: for custom sources, and for fakes. `in_stream` says whether
    /// it came as an event of a watch, as a 410 usually does.
    pub fn from_status(status: Status, in_stream: bool) -> Self {
        let text = format!("the server says {}: {}", status.code, status.message);
        Self::new(Cause::Api { status: Box::new(status), retry_after: None, in_stream }, text)
    }

    /// Creates an error for a connection or a stream that broke: for custom sources, and for fakes.
    pub fn connection(text: impl Into<String>) -> Self {
        Self::new(Cause::Broken, text)
    }

    /// Returns the same error, with the failed operation prepended to its message.
    pub(crate) fn within(&self, what: impl fmt::Display) -> Self {
        Self::new(self.cause().clone(), format!("{what}: {self}")).caused_as(self)
    }

    /// Returns the same error with a [`source`](std::error::Error::source). The message stays the
    /// same. The source is visible to the program, so it should contain no secrets.
    pub fn caused_by(self, source: impl Into<BoxError>) -> Self {
        self.with_source(Some(Arc::from(source.into())))
    }

    /// Returns the same error with the source of the error that it replaces.
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

    /// Returns the key of the object that the error is about, if there is one.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self.cause() {
            Cause::Decode { key } | Cause::Unreadable { key } => key.as_ref(),
            _ => None,
        }
    }

    /// Returns the server's `Status`, if it sent one.
    pub fn status(&self) -> Option<&Status> {
        match self.cause() {
            Cause::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns whether a body could not be decoded as the requested type.
    pub fn is_decode(&self) -> bool {
        matches!(self.cause(), Cause::Decode { .. })
    }
    /// Returns whether an object could not be stored: it has no metadata, is of another kind, or
    /// its transform failed.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.cause(), Cause::Unreadable { .. })
    }
    /// Returns whether the server responded with 401: it does not accept the credentials, or no
    /// longer.
    pub fn is_unauthorized(&self) -> bool {
        self.code_or_reason(401, "Unauthorized")
    }
    /// Returns whether the server responded with 403: the user lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        self.code_or_reason(403, "Forbidden")
    }
    /// Returns whether the server responded with 404: the resource is not served (its CRD is not
    /// installed, or was removed).
    pub fn is_not_found(&self) -> bool {
        self.code_or_reason(404, "NotFound")
    }
    /// Returns whether the server responded with 409, or the test of a JSON patch failed: the object has
    /// changed since it was read, or is gone. Retry once the cache has the newer state.
    pub fn is_conflict(&self) -> bool {
        matches!(self.cause(), Cause::Conflict) || self.code_or_reason(409, "Conflict")
    }
    /// Returns whether the server responded with 409 because an object of that name exists.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }
    /// Returns whether the server responded with 410, as its HTTP status or inside a stream: the
    /// version has expired, and the informer relists.
    pub fn is_expired(&self) -> bool {
        self.code_or_reason(410, "Expired") || self.code_or_reason(410, "Gone")
    }
    /// Returns whether the server responded with 429: it is throttling requests.
    pub fn is_too_many_requests(&self) -> bool {
        self.code_or_reason(429, "TooManyRequests")
    }
    /// Returns whether the server refused, with its HTTP status or with an ERROR event inside a
    /// watch: [`status`](Self::status) has the details. The predicates above distinguish some of
    /// these errors.
    pub fn is_api(&self) -> bool {
        matches!(self.cause(), Cause::Api { .. })
    }
    /// Returns whether the connection was refused: no server is listening at the address.
    pub fn is_connection_refused(&self) -> bool {
        matches!(self.cause(), Cause::Refused)
    }
    /// Returns whether a connection could not be established or broke: it was reset, closed in the middle of a
    /// response, or failed in the TLS handshake or for lack of credentials. For refused connections, see
    /// [`is_connection_refused`](Self::is_connection_refused).
    pub fn is_connection_broken(&self) -> bool {
        matches!(self.cause(), Cause::Broken)
    }
    /// Returns whether there was no response in time. A server that itself reports a timeout has
    /// responded: see [`is_api`](Self::is_api).
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause(), Cause::Timeout)
    }
    /// Returns whether a watch was silent for so long that its connection is considered dead.
    pub fn is_silence(&self) -> bool {
        matches!(self.cause(), Cause::Silence)
    }
    /// Returns whether the response is not the expected one: not JSON, not a list, another kind, or
    /// too large.
    pub fn is_protocol(&self) -> bool {
        matches!(self.cause(), Cause::Protocol)
    }
    /// Returns whether the server is at an older version than before, as after a restore of its
    /// etcd.
    pub fn is_regressed(&self) -> bool {
        matches!(self.cause(), Cause::Regressed)
    }
    /// Returns whether a custom store rejected a list; it is offered the next one after a pause.
    pub fn is_store(&self) -> bool {
        matches!(self.cause(), Cause::Store)
    }
    /// Returns whether a snapshot cannot be written, or an informer cannot start from it because it is damaged
    /// or describes something else. Such an informer lists as it would without a snapshot.
    pub fn is_snapshot(&self) -> bool {
        matches!(self.cause(), Cause::Snapshot)
    }
    /// Returns whether another index has this name.
    pub fn is_index_conflict(&self) -> bool {
        matches!(self.cause(), Cause::IndexConflict)
    }
    /// Returns whether no index has this name.
    pub fn is_unknown_index(&self) -> bool {
        matches!(self.cause(), Cause::UnknownIndex)
    }
    /// Returns whether the program waited for a version that cannot be compared with the cache's:
    /// only decimal numbers can.
    pub fn is_incomparable_version(&self) -> bool {
        matches!(self.cause(), Cause::IncomparableVersion)
    }
    /// Returns whether the informer or factory was stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.cause(), Cause::Stopped)
    }
    /// Returns whether the program passed an invalid argument: a malformed key, selector or path,
    /// or an object that cannot be written. A server that rejects a request as invalid has
    /// responded: see [`is_api`](Self::is_api).
    pub fn is_invalid(&self) -> bool {
        matches!(self.cause(), Cause::Invalid)
    }

    /// Returns whether the requested version is newer than any that the server has.
    pub(crate) fn is_version_too_large(&self) -> bool {
        let Some(status) = self.status() else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let mut causes = causes.map(|cause| cause.reason.as_str());
        // Servers before 1.19 say so only in the message.
        causes.any(|reason| reason == "ResourceVersionTooLarge")
            || (status.code == 504 || status.reason == "Timeout")
                && status.message.contains("Too large resource version")
    }

    /// Returns how long the server asks clients to wait, at least.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self.cause() {
            Cause::Api { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Follows client-go: the reason decides, and the code only if there is no reason.
    fn code_or_reason(&self, code: u16, reason: &str) -> bool {
        self.status().is_some_and(|status| {
            status.reason == reason || status.code == code && !known_reason(&status.reason)
        })
    }
}

/// Returns whether a reason implies a code of its own, so that the code is irrelevant.
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

/// Compares the messages, and ignores the sources.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}
impl Eq for Error {}

#[cfg(test)]
mod tests;
