//! What an informer is doing, and what went wrong.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{Error, ResourceVersion};

/// What an informer is doing right now.
///
/// States can be compared and asked. Two that back off are equal only if they do so until the same
/// instant and for the same reason; [`is_backing_off`](Self::is_backing_off) is for any.
///
/// ```
/// use kube_informer::State;
///
/// # let state = State::Watching;
/// // let state = informer.state();
/// assert!(state == State::Watching && state.is_watching());
/// if let Some(why) = state.why() {
///     println!("waiting until {:?}, because of {why}", state.until());
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum State {
    /// Not started.
    Idle,
    /// Reading a LIST.
    Listing,
    /// Reading the initial events of a streaming list (`WatchList`).
    Streaming,
    /// Following a watch.
    Watching,
    /// Waiting before the next try.
    BackingOff {
        /// When that will be.
        until: Instant,
        /// What went wrong.
        why: Error,
    },
    /// Stopped, for good.
    Stopped,
}

impl State {
    /// The state alone, in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Listing => "listing",
            State::Streaming => "streaming",
            State::Watching => "watching",
            State::BackingOff { .. } => "backing off",
            State::Stopped => "stopped",
        }
    }

    /// Whether it is [`Idle`](Self::Idle): not started.
    pub fn is_idle(&self) -> bool {
        *self == State::Idle
    }
    /// Whether it is [`Listing`](Self::Listing).
    pub fn is_listing(&self) -> bool {
        *self == State::Listing
    }
    /// Whether it is [`Streaming`](Self::Streaming) a list.
    pub fn is_streaming(&self) -> bool {
        *self == State::Streaming
    }
    /// Whether it is [`Watching`](Self::Watching).
    pub fn is_watching(&self) -> bool {
        *self == State::Watching
    }
    /// Whether it is [`BackingOff`](Self::BackingOff), for whatever reason.
    pub fn is_backing_off(&self) -> bool {
        matches!(self, State::BackingOff { .. })
    }
    /// Whether it is [`Stopped`](Self::Stopped).
    pub fn is_stopped(&self) -> bool {
        *self == State::Stopped
    }

    /// When the next try is, if it is backing off.
    pub fn until(&self) -> Option<Instant> {
        match self {
            State::BackingOff { until, .. } => Some(*until),
            _ => None,
        }
    }
    /// The error because of which it is backing off, if it is.
    pub fn why(&self) -> Option<&Error> {
        match self {
            State::BackingOff { why, .. } => Some(why),
            _ => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::BackingOff { why, .. } => write!(f, "backing off: {why}"),
            other => f.pad(other.as_str()),
        }
    }
}

/// An informer at a glance: for readiness probes, debug pages and errors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// Plural, group and version, scope and selectors, as text.
    pub name: Arc<str>,
    /// What it is doing.
    pub state: State,
    /// Since when.
    pub since: Instant,
    /// Whether the first list is in the cache.
    pub synced: bool,
    /// Whether a watch is up and has been heard within the silence limit.
    pub live: bool,
    /// How long ago the server last confirmed that we are up to date.
    pub staleness: Option<Duration>,
    /// Objects in the cache.
    pub objects: usize,
    /// Objects that the longest list so far has brought: how far a first list is that is not in the
    /// cache yet.
    pub received: u64,
    /// Objects that could not be kept.
    pub failed: usize,
    /// Bytes that the objects take, about.
    pub bytes: usize,
    /// How often functions of indexes have panicked.
    pub index_panics: u64,
    /// The version that the cache is at.
    pub resource_version: ResourceVersion,
    /// The last error, also when it has been overcome.
    pub last_error: Option<Error>,
}

/// An error of an informer and what will be done about it. `Display` is one good log line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ErrorReport {
    /// Which informer.
    pub informer: Arc<str>,
    /// What happened.
    pub error: Error,
    /// What it was doing.
    pub during: State,
    /// What it does next.
    pub next: Next,
    /// How many errors in a row, this one included.
    pub attempt: u32,
}

/// What an informer does about an error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Next {
    /// Nothing is lost: watch on from the last version.
    Resume {
        /// The pause before it.
        after: Duration,
    },
    /// List again, and deliver the difference.
    Relist {
        /// The pause before it.
        after: Duration,
    },
    /// Watches keep failing where lists may work: list again, as often as the backoff allows, until a
    /// watch works. The cache is as old as the last list until then.
    Poll {
        /// The pause before the next list.
        after: Duration,
    },
    /// The server cannot stream lists: LIST, from now on.
    FallBackToList,
    /// One object is recorded as failed; the rest goes on.
    SkipObject,
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Next::Resume { after } if after.is_zero() => f.write_str("resuming the watch"),
            Next::Resume { after } => {
                write!(f, "resuming the watch in {:.1} s", after.as_secs_f64())
            }
            Next::Relist { after } if after.is_zero() => f.write_str("listing again"),
            Next::Relist { after } => write!(f, "listing again in {:.1} s", after.as_secs_f64()),
            Next::Poll { after } => write!(
                f,
                "watches keep failing, polling with lists instead: the next in {:.1} s",
                after.as_secs_f64()
            ),
            Next::FallBackToList => f.write_str("listing without streaming from now on"),
            Next::SkipObject => f.write_str("going on without this object"),
        }
    }
}

impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (while {}", self.informer, self.error, self.during.as_str())?;
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        write!(f, "); {}", self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backing_off(until: Instant, why: &str) -> State {
        State::BackingOff { until, why: Error::connection(why) }
    }

    type Predicate = fn(&State) -> bool;

    #[test]
    fn every_state_has_one_predicate() {
        let predicates: [(State, Predicate); 6] = [
            (State::Idle, State::is_idle),
            (State::Listing, State::is_listing),
            (State::Streaming, State::is_streaming),
            (State::Watching, State::is_watching),
            (backing_off(Instant::now(), "reset"), State::is_backing_off),
            (State::Stopped, State::is_stopped),
        ];
        for (state, is) in &predicates {
            let found: Vec<&State> =
                predicates.iter().map(|(other, _)| other).filter(|other| is(other)).collect();
            assert_eq!(found, [state]);
            assert_eq!(*state, state.clone());
        }
    }

    #[test]
    fn a_state_that_backs_off_says_until_when_and_why() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        let state = backing_off(now, "reset");
        assert_eq!((state.until(), state.why()), (Some(now), Some(&Error::connection("reset"))));
        assert_eq!((State::Watching.until(), State::Watching.why()), (None, None));
        assert_ne!(state, backing_off(later, "reset"));
        assert_ne!(state, backing_off(now, "closed"));
    }

    #[test]
    fn reports_are_compared_by_what_they_say() {
        let report = |attempt, after| ErrorReport {
            informer: "pods".into(),
            error: Error::connection("reset"),
            during: State::Watching,
            next: Next::Resume { after },
            attempt,
        };
        assert_eq!(report(1, Duration::ZERO), report(1, Duration::ZERO));
        assert_ne!(report(1, Duration::ZERO), report(2, Duration::ZERO));
        assert_ne!(report(1, Duration::ZERO), report(1, Duration::from_secs(1)));
    }
}
