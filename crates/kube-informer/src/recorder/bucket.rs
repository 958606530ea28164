//! A token bucket.

use std::time::Duration;

use tokio::time::Instant;

/// How many events about one object of one type are written at once: client-go's `defaultSpamBurst`.
pub(super) const BURST: u32 = 25;

/// After how long another may be: client-go's `defaultSpamQPS`. An object that is always unhealthy has twelve
/// events an hour.
pub(super) const REFILL: Duration = Duration::from_secs(300);

/// Tokens that come back one by one.
pub(super) struct Bucket {
    tokens: f64,
    last: Instant,
}

impl Bucket {
    pub(super) fn full(now: Instant) -> Self {
        Self { tokens: f64::from(BURST), last: now }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.tokens = self.at(now);
        self.last = now;
        let is_there = self.tokens >= 1.0;
        self.tokens -= if is_there { 1.0 } else { 0.0 };
        is_there
    }

    /// Whether forgetting it changes nothing.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.at(now) >= f64::from(BURST)
    }

    /// When it was last asked.
    pub(super) fn last(&self) -> Instant {
        self.last
    }

    fn at(&self, now: Instant) -> f64 {
        let refilled = (now - self.last).as_secs_f64() / REFILL.as_secs_f64();
        (self.tokens + refilled).min(f64::from(BURST))
    }
}
