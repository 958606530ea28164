//! Durations of the stages of a pod's life.

use std::time::Duration;

use super::identity;

/// The upper limit of the jitter.
const JITTER_MAX: f64 = 100.0;

/// The durations of the stages of a pod's life, for
/// [`Builder::pods_run`](crate::Builder::pods_run). With a very long delay, such as
/// [`Duration::MAX`], pods never leave the stage.
#[derive(Debug, Clone, PartialEq)]
pub struct PodDelays {
    /// From creation to the assignment to a node.
    pub schedule: Duration,
    /// From the assignment to `ContainerCreating`, and to the start of each init container.
    pub create: Duration,
    /// From `ContainerCreating` to `Running`, and from the start of each init container to its end.
    pub start: Duration,
    /// From deletion to the end of the containers. If the grace period is shorter, they are killed
    /// when it expires.
    pub stop: Duration,
    /// The maximum extension of each delay, as a fraction of it: 0.5 is up to half as long again.
    /// The extension is derived from the pod's uid, and is therefore reproducible with
    /// [`Builder::seed`].
    ///
    /// [`Builder::seed`]: crate::Builder::seed
    pub jitter: f64,
}

impl Default for PodDelays {
    /// Pods run within 1.4 seconds and terminate within one: slow enough to observe, fast enough to
    /// wait for.
    fn default() -> Self {
        Self {
            schedule: Duration::from_millis(20),
            create: Duration::from_millis(50),
            start: Duration::from_millis(800),
            stop: Duration::from_millis(600),
            jitter: 0.5,
        }
    }
}

impl PodDelays {
    /// Returns a delay with the jitter of a pod.
    pub(super) fn stretched(&self, delay: Duration, uid: &str, stage: &str) -> Duration {
        if self.jitter.is_nan() || self.jitter <= 0.0 {
            return delay;
        }
        let chance = identity::rng(&[uid, stage]).f64();
        let seconds = delay.as_secs_f64() * (1.0 + self.jitter.min(JITTER_MAX) * chance);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_stretched_within_its_bounds_and_alike_each_time() {
        let delays = PodDelays::default();
        let base = Duration::from_secs(10);
        for uid in 0..100 {
            let stretched = delays.stretched(base, &uid.to_string(), "start");
            assert!((base..=base * 3 / 2).contains(&stretched), "{stretched:?}");
            assert_eq!(stretched, delays.stretched(base, &uid.to_string(), "start"));
        }
    }

    #[test]
    fn no_jitter_and_no_delay_is_too_large_or_too_strange() {
        let base = Duration::from_secs(1);
        for jitter in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            let delays = PodDelays { jitter, ..PodDelays::default() };
            assert_eq!(delays.stretched(base, "a", "start"), base);
        }
        let delays = PodDelays { jitter: f64::INFINITY, ..PodDelays::default() };
        assert!(delays.stretched(base, "a", "start") <= base * 101);
        assert_eq!(PodDelays::default().stretched(Duration::MAX, "a", "s"), Duration::MAX);
    }
}
