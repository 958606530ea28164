//! Rate limiters: delays before failed tasks are retried.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Task;

/// Effectively never, yet small enough for arithmetic on times.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A policy for how long a failed task waits before it is retried. The counterpart of client-go's
/// `TypedRateLimiter`.
///
/// Called without any lock held, from any worker.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::workqueue::{ItemExponential, RateLimiter};
///
/// let limiter = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000));
/// let waits: Vec<_> = (0..4).map(|_| limiter.when(&"web-0").as_millis()).collect();
/// assert_eq!(waits, [5, 10, 20, 40]);
/// assert_eq!(limiter.num_requeues(&"web-0"), 4);
/// limiter.forget(&"web-0");
/// assert_eq!(limiter.when(&"web-0").as_millis(), 5);
/// ```
pub trait RateLimiter<T>: Send + Sync + 'static {
    /// Counts one more failure of this task, and returns how long the task must wait.
    fn when(&self, task: &T) -> Duration;

    /// Resets the failures of a task, because it succeeded or is given up.
    fn forget(&self, task: &T);

    /// Returns how many times the task has failed since it was last forgotten.
    fn num_requeues(&self, task: &T) -> u32;
}

impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Box<L> {
    fn when(&self, task: &T) -> Duration {
        (**self).when(task)
    }
    fn forget(&self, task: &T) {
        (**self).forget(task);
    }
    fn num_requeues(&self, task: &T) -> u32 {
        (**self).num_requeues(task)
    }
}

/// Returns client-go's default limiter for controllers: each task waits 5 ms, doubled after each failure up to
/// 1,000 s, and all tasks together are retried at most ten times per second, after a burst of a hundred.
pub fn default_controller_limiter<T: Task>() -> impl RateLimiter<T> {
    let item = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOf::new().and(item).and(TokenBucket::new(10.0, 100))
}

/// Returns client-go's default limiter without an overall limit: each task waits 1 ms, doubled after each
/// failure up to 1,000 s.
pub fn default_item_limiter<T: Task>() -> impl RateLimiter<T> {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000))
}

/// The failure count of each task.
struct Failures<T>(Mutex<HashMap<T, u32>>);

impl<T: Task> Failures<T> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Counts one more failure, and returns how many there were before.
    fn add(&self, task: &T) -> u32 {
        let mut failures = self.0.lock();
        let before = failures.entry(task.clone()).or_default();
        let count = *before;
        *before = count.saturating_add(1);
        count
    }

    fn forget(&self, task: &T) {
        let mut failures = self.0.lock();
        // Usually no task has failed, and then nothing needs to be hashed.
        let forgotten = if failures.is_empty() { None } else { failures.remove_entry(task) };
        drop(failures);
        // A task is dropped without the lock held.
        drop(forgotten);
    }

    fn count(&self, task: &T) -> u32 {
        self.0.lock().get(task).copied().unwrap_or_default()
    }
}

/// A limiter that doubles a task's delay after each failure. The counterpart of client-go's
/// `TypedItemExponentialFailureRateLimiter`.
pub struct ItemExponential<T> {
    base: Duration,
    max: Duration,
    failures: Failures<T>,
}

impl<T: Task> ItemExponential<T> {
    /// Creates a limiter that waits `base` after the first failure, and never longer than `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new() }
    }
}

impl<T: Task> RateLimiter<T> for ItemExponential<T> {
    fn when(&self, task: &T) -> Duration {
        let factor = 1_u32.checked_shl(self.failures.add(task)).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }
    fn forget(&self, task: &T) {
        self.failures.forget(task);
    }
    fn num_requeues(&self, task: &T) -> u32 {
        self.failures.count(task)
    }
}

/// A limiter that retries each task quickly a few times, and slowly from then on. The counterpart of
/// client-go's `TypedItemFastSlowRateLimiter`.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::workqueue::{ItemFastSlow, RateLimiter};
///
/// let limiter = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
/// let waits: Vec<_> = (0..5).map(|_| limiter.when(&"web-0").as_millis()).collect();
/// assert_eq!(waits, [5, 5, 5, 10_000, 10_000]);
/// ```
pub struct ItemFastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: Failures<T>,
}

impl<T: Task> ItemFastSlow<T> {
    /// Creates a limiter that waits `fast` after each of the first `fast_attempts` failures, and `slow` after
    /// that.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, failures: Failures::new() }
    }
}

impl<T: Task> RateLimiter<T> for ItemFastSlow<T> {
    fn when(&self, task: &T) -> Duration {
        if self.failures.add(task) < self.fast_attempts { self.fast } else { self.slow }
    }
    fn forget(&self, task: &T) {
        self.failures.forget(task);
    }
    fn num_requeues(&self, task: &T) -> u32 {
        self.failures.count(task)
    }
}

/// A limiter of the overall retry rate of all tasks. The counterpart of client-go's `TypedBucketRateLimiter`.
/// It does not distinguish tasks, so it neither counts nor forgets failures.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::workqueue::{RateLimiter, TokenBucket};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let limiter = TokenBucket::new(10.0, 2);
/// let waits: Vec<_> = (0..4).map(|_| limiter.when(&"web-0").as_millis()).collect();
/// assert_eq!(waits, [0, 0, 100, 200]);
/// # }
/// ```
#[derive(Debug)]
pub struct TokenBucket {
    /// The time until the next token.
    interval: Duration,
    burst: u32,
    /// When the bucket will be full again.
    full: Mutex<Option<Instant>>,
}

impl TokenBucket {
    /// Creates a limiter that allows `per_second` retries, and up to `burst` at once after a pause.
    ///
    /// If the rate is zero, negative or not a number, only the first `burst` retries are allowed.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let interval = Duration::try_from_secs_f64(per_second.recip());
        let interval = interval.ok().filter(|_| per_second > 0.0).unwrap_or(CENTURY);
        let interval = interval.min(CENTURY);
        Self { interval, burst, full: Mutex::new(None) }
    }
}

impl<T> RateLimiter<T> for TokenBucket {
    fn when(&self, _: &T) -> Duration {
        let now = Instant::now();
        let mut full = self.full.lock();
        let before = full.map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        let after = before.saturating_add(self.interval);
        // A time that cannot be represented leaves the bucket as it is.
        *full = now.checked_add(after).or(*full);
        after.saturating_sub(self.interval.saturating_mul(self.burst))
    }
    fn forget(&self, _: &T) {}
    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}

/// A limiter that returns the longest delay of several limiters. The counterpart of client-go's
/// `TypedMaxOfRateLimiter`.
///
/// Every limiter is asked each time: a bucket loses a token even if another limiter's delay is longer.
pub struct MaxOf<T>(Vec<Box<dyn RateLimiter<T>>>);

impl<T: Task> MaxOf<T> {
    /// Creates a limiter without any parts, which delays nothing.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a limiter.
    pub fn and(mut self, limiter: impl RateLimiter<T>) -> Self {
        self.0.push(Box::new(limiter));
        self
    }
}

impl<T: Task> Default for MaxOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Task> RateLimiter<T> for MaxOf<T> {
    fn when(&self, task: &T) -> Duration {
        self.0.iter().map(|limiter| limiter.when(task)).max().unwrap_or_default()
    }
    fn forget(&self, task: &T) {
        self.0.iter().for_each(|limiter| limiter.forget(task));
    }
    fn num_requeues(&self, task: &T) -> u32 {
        self.0.iter().map(|limiter| limiter.num_requeues(task)).max().unwrap_or_default()
    }
}

/// A limiter that caps another limiter's delays. The counterpart of client-go's `TypedWithMaxWaitRateLimiter`.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::workqueue::{ItemExponential, RateLimiter, WithMaxWait};
///
/// let slow = ItemExponential::new(Duration::from_secs(60), Duration::from_secs(1000));
/// let limiter = WithMaxWait::new(slow, Duration::from_secs(90));
/// assert_eq!([limiter.when(&"a"), limiter.when(&"a")].map(|wait| wait.as_secs()), [60, 90]);
/// ```
#[derive(Debug)]
pub struct WithMaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> WithMaxWait<L> {
    /// Caps the delays of `limiter` at `max`.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn when(&self, task: &T) -> Duration {
        self.limiter.when(task).min(self.max)
    }
    fn forget(&self, task: &T) {
        self.limiter.forget(task);
    }
    fn num_requeues(&self, task: &T) -> u32 {
        self.limiter.num_requeues(task)
    }
}

/// Omits the tasks, which may carry private names.
impl<T> fmt::Debug for ItemExponential<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemExponential")
            .field("base", &self.base)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}
impl<T> fmt::Debug for ItemFastSlow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemFastSlow")
            .field("fast", &self.fast)
            .field("slow", &self.slow)
            .field("fast_attempts", &self.fast_attempts)
            .finish_non_exhaustive()
    }
}
impl<T> fmt::Debug for MaxOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.0.len()).finish()
    }
}
