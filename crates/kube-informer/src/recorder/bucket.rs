//! A token bucket.

use std::time::Duration;

use tokio::time::Instant;

/// Number of events about one object and of one type that can be written in a burst: client-go's
/// `defaultSpamBurst`.
pub(super) const BURST: u32 = 25;

/// Time after which another can be written: client-go's `defaultSpamQPS`. An object that is always unhealthy
/// gets twelve events an hour.
pub(super) const REFILL: Duration = Duration::from_secs(300);

/// Tokens that are refilled one by one.
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

    /// Returns whether dropping the bucket would make no difference.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.at(now) >= f64::from(BURST)
    }

    /// Returns when a token was last requested.
    pub(super) fn last(&self) -> Instant {
        self.last
    }

    fn at(&self, now: Instant) -> f64 {
        let refilled = (now - self.last).as_secs_f64() / REFILL.as_secs_f64();
        (self.tokens + refilled).min(f64::from(BURST))
    }
}
