//! The state and the errors of an informer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{Error, ResourceVersion};

/// The current activity of an informer.
///
/// States can be compared and queried. Two backing-off states are equal only if they have the same
/// deadline and the same cause; [`is_backing_off`](Self::is_backing_off) matches any of them.
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
    /// Reading a list.
    Listing,
    /// Reading the initial events of a streaming list (`WatchList`).
    Streaming,
    /// Following a watch.
    Watching,
    /// Waiting before the next attempt.
    BackingOff {
        /// Time of the next attempt.
        until: Instant,
        /// The error that caused the pause.
        why: Error,
    },
    /// Stopped permanently.
    Stopped,
}

impl State {
    /// Returns the name of the state, without its details.
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

    /// Returns whether the state is [`Idle`](Self::Idle).
    pub fn is_idle(&self) -> bool {
        *self == State::Idle
    }
    /// Returns whether the state is [`Listing`](Self::Listing).
    pub fn is_listing(&self) -> bool {
        *self == State::Listing
    }
    /// Returns whether the state is [`Streaming`](Self::Streaming).
    pub fn is_streaming(&self) -> bool {
        *self == State::Streaming
    }
    /// Returns whether the state is [`Watching`](Self::Watching).
    pub fn is_watching(&self) -> bool {
        *self == State::Watching
    }
    /// Returns whether the state is [`BackingOff`](Self::BackingOff), for any reason.
    pub fn is_backing_off(&self) -> bool {
        matches!(self, State::BackingOff { .. })
    }
    /// Returns whether the state is [`Stopped`](Self::Stopped).
    pub fn is_stopped(&self) -> bool {
        *self == State::Stopped
    }

    /// Returns the time of the next attempt, if the informer is backing off.
    pub fn until(&self) -> Option<Instant> {
        match self {
            State::BackingOff { until, .. } => Some(*until),
            _ => None,
        }
    }
    /// Returns the error that caused the pause, if the informer is backing off.
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

/// A summary of an informer, for readiness probes, debug pages and error messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// Resource, scope and selectors, as text.
    pub name: Arc<str>,
    /// The current activity.
    pub state: State,
    /// When the informer entered that state.
    pub since: Instant,
    /// Whether the first list is in the cache.
    pub synced: bool,
    /// Whether a watch is open and has received something within the silence limit.
    pub live: bool,
    /// Time since the server last confirmed that the cache is up to date.
    pub staleness: Option<Duration>,
    /// Number of objects in the cache.
    pub objects: usize,
    /// Number of objects that the longest list so far has delivered: the progress of a first list
    /// that is not in the cache yet.
    pub received: u64,
    /// Number of objects that could not be stored.
    pub failed: usize,
    /// Approximate memory that the objects take, in bytes.
    pub bytes: usize,
    /// Number of panics in index functions.
    pub index_panics: u64,
    /// The version of the cache.
    pub resource_version: ResourceVersion,
    /// The most recent error, even if the informer has recovered from it.
    pub last_error: Option<Error>,
    /// Number of changes that have arrived and wait to be written to the cache.
    pub queued: usize,
    /// How long the oldest of these changes has been waiting.
    pub lag: Option<Duration>,
    /// How long the server may be silent before a watch is considered dead.
    pub silence_limit: Duration,
    /// The lists and watches so far.
    pub requests: RequestCounts,
}

/// Numbers of an informer's lists, watches and events, since it was created.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Number of lists that were begun.
    pub lists: u64,
    /// Number of watches that were opened.
    pub watches: u64,
    /// Number of watches that ended within a second without an event.
    pub short_watches: u64,
    /// Number of events that watches delivered, bookmarks included.
    pub events: u64,
    /// Number of objects that could not be read or kept.
    pub skipped: u64,
    /// Number of lists because of an error, by the error's category, such as `expired`.
    pub relists: BTreeMap<&'static str, u64>,
    /// Number of watches that were resumed after an error, by the error's category.
    pub restarts: BTreeMap<&'static str, u64>,
}

/// An error of an informer, and the informer's reaction to it. Its `Display` form is a complete log
/// line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ErrorReport {
    /// Name of the informer.
    pub informer: Arc<str>,
    /// The error.
    pub error: Error,
    /// The activity that failed.
    pub during: State,
    /// The informer's next step.
    pub next: Next,
    /// Number of consecutive errors, this one included.
    pub attempt: u32,
}

/// An informer's reaction to an error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Next {
    /// Resumes the watch from the last version; no change is lost.
    Resume {
        /// Pause before it does.
        after: Duration,
    },
    /// Lists again, and delivers the difference.
    Relist {
        /// Pause before it does.
        after: Duration,
    },
    /// Lists repeatedly, as often as the backoff allows, because watches keep failing while lists may work.
    /// Until a watch succeeds, the cache is as old as the last list.
    Poll {
        /// Pause before the next list.
        after: Duration,
    },
    /// Uses plain lists from now on, because the server cannot stream them.
    FallBackToList,
    /// Records one object as failed, and continues with the others.
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
            Next::SkipObject => f.write_str("skipping this object"),
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
    fn backing_off_has_a_deadline_and_a_cause() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        let state = backing_off(now, "reset");
        assert_eq!((state.until(), state.why()), (Some(now), Some(&Error::connection("reset"))));
        assert_eq!((State::Watching.until(), State::Watching.why()), (None, None));
        assert_ne!(state, backing_off(later, "reset"));
        assert_ne!(state, backing_off(now, "closed"));
    }

    #[test]
    fn reports_with_equal_fields_are_equal() {
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
