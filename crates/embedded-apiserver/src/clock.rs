//! Wall-clock time that follows tokio's time, so that pausing one pauses the other.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The server's clock: the wall-clock time at the start, plus tokio's time since.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    started: Instant,
    started_at: Timestamp,
}

impl Clock {
    pub(crate) fn starting_at(started_at: Timestamp) -> Self {
        Self { started: Instant::now(), started_at }
    }

    /// Starts at the current wall-clock time, which is read only here.
    pub(crate) fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.started_at.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the current time as a `metav1.Time`, with a resolution of seconds.
    pub(crate) fn now_text(&self) -> String {
        seconds(self.now())
    }
}

/// Formats a timestamp as a `metav1.Time`.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
