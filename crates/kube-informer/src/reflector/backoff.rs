//! How long to wait before trying again.

use std::time::Duration;

/// client-go's numbers: they came down to about 0.2 requests a second and client in an outage.
const FIRST: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);

/// Exponential, with a jitter of up to the whole delay on top, so that clients that failed together
/// do not come back together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next delay. `random` is in `0.0..1.0`.
    pub(crate) fn next(&mut self, random: f64) -> Duration {
        // 2^6 times the first delay is more than the largest one.
        let delay = (FIRST * 2_u32.pow(self.failures.min(6))).min(MAX);
        self.failures = self.failures.saturating_add(1);
        delay.mul_f64(1.0 + random)
    }

    /// The longest delay at once, for what will not be better in a second: a missing permission, a
    /// resource that is not there.
    pub(crate) fn slow(&mut self, random: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        MAX.mul_f64(1.0 + random)
    }

    /// Counts a failure that is not waited for.
    pub(crate) fn none(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        Duration::ZERO
    }

    /// It went well.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    pub(crate) fn failures(self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r11_delays_double_from_800_ms_to_30_s() {
        let mut backoff = Backoff::default();
        let delays: Vec<_> = (0..9).map(|_| backoff.next(0.0).as_millis()).collect();
        assert_eq!(delays, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000]);
    }

    #[test]
    fn r11_jitter_is_up_to_the_whole_delay() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(0.5).as_millis(), 1200);
        assert!(backoff.slow(0.999) < Duration::from_secs(60));
    }

    #[test]
    fn r12_success_resets_and_a_million_failures_do_not() {
        let mut backoff = Backoff { failures: u32::MAX };
        assert_eq!(backoff.next(0.0), MAX);
        backoff.reset();
        assert_eq!(backoff.next(0.0), FIRST);
    }
}
