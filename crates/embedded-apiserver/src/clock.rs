//! Wall time as a function of tokio's time, so that a test which pauses the one pauses the other.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The server's clock: a wall time at its start, and tokio's time since.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    started: Instant,
    started_at: Timestamp,
}

impl Clock {
    pub(crate) fn starting_at(started_at: Timestamp) -> Self {
        Self { started: Instant::now(), started_at }
    }

    /// Starts at the wall clock's time, which is read here and nowhere else.
    pub(crate) fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.started_at.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// `metav1.Time`: seconds.
    pub(crate) fn now_text(&self) -> String {
        seconds(self.now())
    }
}

/// A timestamp as `metav1.Time` prints it.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
