//! The number of changes in the last minute.

use std::time::Duration;

/// The length of a slot. A change is forgotten between 55 and 60 seconds later.
const SLOT: Duration = Duration::from_secs(5);

/// The number of slots, which make a minute.
const SLOTS: usize = 12;

/// A count of changes that forgets those that are older than a minute. Times are those since the
/// start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Minute {
    slots: [u32; SLOTS],
    /// The number of the last slot that was written.
    last: u64,
}

impl Minute {
    pub(super) fn count(&mut self, at: Duration) {
        let now = number(at);
        for old in self.last.max(now.saturating_sub(SLOTS as u64))..now {
            self.slots[place(old + 1)] = 0;
        }
        self.last = self.last.max(now);
        let slot = &mut self.slots[place(now)];
        *slot = slot.saturating_add(1);
    }

    /// Returns the changes per second in the last minute, or since the start if that is later.
    pub(super) fn rate(&self, now: Duration) -> f64 {
        let current = number(now);
        let oldest = (current + 1).saturating_sub(SLOTS as u64);
        let known = oldest.max((self.last + 1).saturating_sub(SLOTS as u64));
        let changes: u64 = (known..=self.last).map(|slot| u64::from(self.slots[place(slot)])).sum();
        let seconds = (now.as_secs_f64() - oldest as f64 * SLOT.as_secs_f64()).max(0.0);
        if seconds > 0.0 { changes as f64 / seconds } else { 0.0 }
    }
}

/// Returns the number of the slot for a time.
fn number(at: Duration) -> u64 {
    at.as_secs() / SLOT.as_secs()
}

fn place(number: u64) -> usize {
    (number % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn assert_rate(minute: &Minute, now: Duration, expected: f64) {
        let rate = minute.rate(now);
        assert!((rate - expected).abs() < 1e-9, "{rate} instead of {expected} after {now:?}");
    }

    #[test]
    fn a_rate_is_that_of_the_last_minute() {
        let mut minute = Minute::default();
        assert_rate(&minute, Duration::ZERO, 0.0);
        (0..10).for_each(|second| minute.count(after(second)));
        assert_rate(&minute, after(10), 1.0);
        assert_rate(&minute, after(20), 0.5);
        // Of the first ten, the last five are counted, in 55 seconds.
        assert_rate(&minute, after(60), 5.0 / 55.0);
        assert_rate(&minute, after(70), 0.0);
        minute.count(after(1000));
        assert_rate(&minute, after(1004), 1.0 / 59.0);
        assert_rate(&minute, after(5000), 0.0);
    }

    proptest! {
        #[test]
        fn what_is_recent_is_counted_and_no_more(mut times in prop::collection::vec(0_u64..300, 0..60), later in 0_u64..100) {
            times.sort_unstable();
            let mut minute = Minute::default();
            for second in &times {
                minute.count(after(*second));
            }
            let now = times.last().copied().unwrap_or_default() + later;
            let begin = (now / 5 * 5).saturating_sub(55);
            let recent = times.iter().filter(|second| **second >= begin).count();
            let seconds = now - begin;
            let expected = if seconds > 0 { recent as f64 / seconds as f64 } else { 0.0 };
            assert_rate(&minute, after(now), expected);
        }
    }
}
