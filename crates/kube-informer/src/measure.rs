//! Counters and histograms. Without the feature `metrics`, histograms are empty types and recording is a
//! no-op, so callers need no `cfg`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "metrics")]
pub(crate) use on::{Histogram, Stopwatch};

#[cfg(not(feature = "metrics"))]
pub(crate) use off::{Histogram, Stopwatch};

/// The buckets of client-go's and controller-runtime's work queues, in seconds, each ten times the previous
/// one.
///
/// Go multiplies, and rounds two of the bounds. These are the same, because series can only be added up if they agree.
pub(crate) const QUEUE_SECONDS: &[f64] = &[
    1e-8,
    1e-7,
    1e-6,
    9.999_999_999_999_999e-6,
    9.999_999_999_999_999e-5,
    1e-3,
    1e-2,
    1e-1,
    1.0,
    10.0,
    100.0,
    1000.0,
];

/// The buckets of client-go's informers, in seconds.
pub(crate) const PROCESSING_SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The buckets for callbacks, which take from less than a microsecond to seconds, if they block.
pub(crate) const CALLBACK_SECONDS: &[f64] = &[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// The buckets for lists, which take from milliseconds to minutes.
pub(crate) const LIST_SECONDS: &[f64] =
    &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// The buckets for watches. Servers end them after five to ten minutes; shorter ones were cut off.
pub(crate) const WATCH_SECONDS: &[f64] =
    &[0.1, 1.0, 10.0, 30.0, 60.0, 120.0, 300.0, 420.0, 600.0, 900.0];

/// The buckets for objects of a list, or events of a watch.
pub(crate) const ITEMS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];

/// The buckets of controller-runtime's reconciles, in seconds.
pub(crate) const RECONCILE_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The buckets of client-go's requests, in seconds.
#[cfg(feature = "metrics")]
pub(crate) const REQUEST_SECONDS: &[f64] =
    &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// The buckets for the sizes of client-go's requests and responses.
#[cfg(feature = "metrics")]
pub(crate) const REQUEST_BYTES: &[f64] = &[
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// A counter. Statuses include some, so counters exist without the feature too.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "metrics")]
mod on {
    use tokio::time::Instant;

    use super::{AtomicU64, Duration, Ordering};

    /// A histogram. Recording takes no lock and allocates nothing.
    pub(crate) struct Histogram {
        /// The upper bound of each bucket except the last, which has none.
        bounds: &'static [f64],
        counts: Box<[AtomicU64]>,
        /// The bits of an `f64`.
        sum: AtomicU64,
    }

    impl Histogram {
        pub(crate) fn new(bounds: &'static [f64]) -> Self {
            let counts = std::iter::repeat_with(AtomicU64::default).take(bounds.len() + 1);
            Self { bounds, counts: counts.collect(), sum: AtomicU64::default() }
        }

        pub(crate) fn record(&self, value: f64) {
            let bucket = self.bounds.partition_point(|&bound| bound < value);
            self.counts[bucket].fetch_add(1, Ordering::Relaxed);
            let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
            let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }

        pub(crate) fn record_duration(&self, duration: Duration) {
            self.record(duration.as_secs_f64());
        }

        /// Returns the bound of the bucket that contains this quantile (between 0 and 1), or `None` if there are no values.
        pub(crate) fn quantile(&self, quantile: f64) -> Option<f64> {
            let (_, buckets) = self.read();
            let total: u64 = buckets.iter().map(|(_, count)| count).sum();
            let rank = (total as f64 * quantile).ceil() as u64;
            let mut below = 0;
            buckets.into_iter().filter(|_| total > 0).find_map(|(bound, count)| {
                below += count;
                (below >= rank).then_some(bound)
            })
        }

        /// Returns the sum of all values, and the number of values in each bucket, with its bound.
        pub(crate) fn read(&self) -> (f64, Vec<(f64, u64)>) {
            let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
            let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
            (f64::from_bits(self.sum.load(Ordering::Relaxed)), bounds.zip(counts).collect())
        }
    }

    /// A measurement of elapsed time.
    pub(crate) struct Stopwatch(Instant);

    impl Stopwatch {
        pub(crate) fn start() -> Self {
            Self(Instant::now())
        }

        pub(crate) fn record(self, histogram: &Histogram) {
            histogram.record_duration(self.0.elapsed());
        }
    }
}

#[cfg(not(feature = "metrics"))]
#[allow(clippy::unused_self, reason = "called like those that record")]
mod off {
    use super::Duration;

    pub(crate) struct Histogram;

    impl Histogram {
        pub(crate) fn new(_bounds: &'static [f64]) -> Self {
            Self
        }
        pub(crate) fn record(&self, _value: f64) {}
        pub(crate) fn record_duration(&self, _duration: Duration) {}
        pub(crate) fn quantile(&self, _quantile: f64) -> Option<f64> {
            None
        }
    }

    pub(crate) struct Stopwatch;

    impl Stopwatch {
        pub(crate) fn start() -> Self {
            Self
        }
        pub(crate) fn record(self, _histogram: &Histogram) {}
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_the_first_bucket_that_holds_them() {
        let histogram = Histogram::new(&[1.0, 10.0]);
        for value in [0.0, 1.0, 1.5, 10.0, 11.0, 1e9] {
            histogram.record(value);
        }
        let (sum, buckets) = histogram.read();
        assert_eq!(buckets, [(1.0, 2), (10.0, 2), (f64::INFINITY, 2)]);
        assert!((sum - 1_000_000_023.5).abs() < 1e-3);
    }

    #[test]
    fn quantiles_are_bounds_of_buckets() {
        let histogram = Histogram::new(&[1.0, 10.0]);
        assert_eq!(histogram.quantile(0.99), None);
        (0..99).for_each(|_| histogram.record(0.5));
        histogram.record(5.0);
        assert_eq!([0.5, 0.99, 1.0].map(|at| histogram.quantile(at)), [1.0, 1.0, 10.0].map(Some));
        histogram.record(11.0);
        assert_eq!(histogram.quantile(1.0), Some(f64::INFINITY));
    }

    #[test]
    fn values_recorded_by_many_threads_are_all_counted() {
        let histogram = Histogram::new(ITEMS);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| histogram.record(2.0)));
            }
        });
        let (sum, buckets) = histogram.read();
        assert_eq!((sum, buckets[2]), (8000.0, (10.0, 4000)));
    }

    #[test]
    fn every_bound_is_above_the_one_before() {
        let all = [
            QUEUE_SECONDS,
            PROCESSING_SECONDS,
            CALLBACK_SECONDS,
            LIST_SECONDS,
            WATCH_SECONDS,
            ITEMS,
            RECONCILE_SECONDS,
            REQUEST_SECONDS,
            REQUEST_BYTES,
        ];
        for bounds in all {
            assert!(bounds.is_sorted_by(|one, next| one < next), "{bounds:?}");
        }
    }
}
