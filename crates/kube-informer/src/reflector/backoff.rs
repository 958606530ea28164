//! The delays between retries.

use std::time::Duration;

/// The first and the longest delay before a retry. Each delay is twice the previous one, and up to as much
/// again is added at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delays {
    pub(crate) first: Duration,
    pub(crate) max: Duration,
}

/// Upper limit of the configurable delays.
const DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Delays {
    /// Creates delays, clamped to a sensible range: at least a millisecond, so that a failing
    /// server is not called in a loop.
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        let max = max.clamp(Duration::from_millis(1), DELAY_MAX);
        Self { first: first.clamp(Duration::from_millis(1), max), max }
    }
}

/// client-go's numbers: they amount to about 0.2 requests per second and client in an outage.
impl Default for Delays {
    fn default() -> Self {
        Self { first: Duration::from_millis(800), max: Duration::from_secs(30) }
    }
}

/// Failures further apart than this are not consecutive. client-go has the same number.
const QUIET_RESET: Duration = Duration::from_secs(120);

/// Counts consecutive failures, and computes the delay after each. Health is time without a
/// failure: nothing that happens between two failures makes the second one the first.
///
/// Times are measured from the start of the reflector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    /// When the delay after the last failure ended.
    retried: Duration,
}

impl Backoff {
    /// Counts a failure, and returns the delay after it. `random` is in `0.0..1.0`: clients that
    /// failed together do not return together.
    pub(crate) fn fail(&mut self, now: Duration, delays: Delays, random: f64) -> Duration {
        let doublings = self.failures(now).min(31);
        let delay = delays.first.saturating_mul(1 << doublings).min(delays.max);
        self.count(now, delay.mul_f64(1.0 + random))
    }

    /// Counts a failure that is retried without a delay.
    pub(crate) fn fail_now(&mut self, now: Duration) -> Duration {
        self.count(now, Duration::ZERO)
    }

    fn count(&mut self, now: Duration, delay: Duration) -> Duration {
        self.failures = self.failures(now).saturating_add(1);
        self.retried = now.saturating_add(delay);
        delay
    }

    /// Forgets all failures, after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of consecutive failures.
    pub(crate) fn failures(self, now: Duration) -> u32 {
        if now > self.retried.saturating_add(QUIET_RESET) { 0 } else { self.failures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Duration = Duration::ZERO;

    #[test]
    fn r11_delays_double_from_800_ms_to_30_s() {
        let mut backoff = Backoff::default();
        let delays: Vec<_> =
            (0..9).map(|_| backoff.fail(ZERO, Delays::default(), 0.0).as_millis()).collect();
        assert_eq!(delays, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000]);
    }

    #[test]
    fn r11_jitter_is_up_to_the_whole_delay() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.fail(ZERO, Delays::default(), 0.5).as_millis(), 1200);
        let mut slow = Backoff { failures: 9, retried: ZERO };
        assert!(slow.fail(ZERO, Delays::default(), 0.999) < Duration::from_secs(60));
    }

    #[test]
    fn r12_success_or_two_quiet_minutes_reset_the_backoff() {
        let mut backoff = Backoff { failures: u32::MAX, retried: ZERO };
        assert_eq!(backoff.fail(ZERO, Delays::default(), 0.0), Duration::from_secs(30));
        // The delay itself does not count as time without a failure.
        let end = Duration::from_secs(30) + QUIET_RESET;
        assert_eq!(backoff.failures(end), u32::MAX);
        assert_eq!(backoff.failures(end + Duration::from_millis(1)), 0);
        backoff.reset();
        assert_eq!(backoff.fail(ZERO, Delays::default(), 0.0), Duration::from_millis(800));
    }

    #[test]
    fn delays_of_any_size_are_taken() {
        for (first, max) in [(ZERO, ZERO), (Duration::MAX, Duration::MAX), (Duration::MAX, ZERO)] {
            let mut backoff = Backoff { failures: 40, retried: ZERO };
            let delay = backoff.fail(Duration::MAX, Delays::new(first, max), 0.9);
            assert!(delay > ZERO && delay <= DELAY_MAX * 2, "{delay:?}");
        }
    }
}
