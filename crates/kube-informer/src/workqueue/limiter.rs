//! How long a task that has failed waits before it is tried again.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Task;

/// As good as never, and still a time that can be reckoned with.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How long a task that has failed waits before it is tried again. client-go's `TypedRateLimiter`.
///
/// It is called without any lock, from any worker.
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
    /// Counts one more failure of this task, and says how long it has to wait.
    fn when(&self, task: &T) -> Duration;

    /// The task is done, or is given up: its failures no longer count.
    fn forget(&self, task: &T);

    /// How often the task has failed since it was last forgotten.
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

/// client-go's default for controllers: each task waits from 5 ms, twice as long after each failure, up
/// to 1,000 s; and all of them together are retried ten times a second, after a burst of a hundred.
pub fn default_controller_limiter<T: Task>() -> impl RateLimiter<T> {
    let item = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOf::new().and(item).and(TokenBucket::new(10.0, 100))
}

/// client-go's default without a limit for all of them together: each task waits from 1 ms, twice as
/// long after each failure, up to 1,000 s.
pub fn default_item_limiter<T: Task>() -> impl RateLimiter<T> {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000))
}

/// How often each task has failed.
struct Failures<T>(Mutex<HashMap<T, u32>>);

impl<T: Task> Failures<T> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Counts one more, and says how many there were before.
    fn add(&self, task: &T) -> u32 {
        let mut failures = self.0.lock();
        let before = failures.entry(task.clone()).or_default();
        let count = *before;
        *before = count.saturating_add(1);
        count
    }

    fn forget(&self, task: &T) {
        let mut failures = self.0.lock();
        // Mostly nothing has failed, and then nothing has to be hashed.
        let forgotten = if failures.is_empty() { None } else { failures.remove_entry(task) };
        drop(failures);
        // Tasks are dropped without the lock.
        drop(forgotten);
    }

    fn count(&self, task: &T) -> u32 {
        self.0.lock().get(task).copied().unwrap_or_default()
    }
}

/// Each task waits twice as long after each failure. client-go's
/// `TypedItemExponentialFailureRateLimiter`.
pub struct ItemExponential<T> {
    base: Duration,
    max: Duration,
    failures: Failures<T>,
}

impl<T: Task> ItemExponential<T> {
    /// `base` after the first failure, never longer than `max`.
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

/// Each task is retried soon for a few times, and then slowly. client-go's
/// `TypedItemFastSlowRateLimiter`.
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
    /// `fast` after each of the first `fast_attempts` failures, `slow` after all others.
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

/// All tasks together are retried so many times a second. client-go's `TypedBucketRateLimiter`. Tasks
/// are not told apart: it counts no failures, and forgets none.
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
    /// How long it takes until there is one token more.
    interval: Duration,
    burst: u32,
    /// When the bucket will be full again.
    full: Mutex<Option<Instant>>,
}

impl TokenBucket {
    /// `per_second` retries, and as many as `burst` at once after a pause.
    ///
    /// A rate of zero or less, or one that is no number, lets only the first `burst` through.
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
        // Further away than time goes: it stays as far as it is.
        *full = now.checked_add(after).or(*full);
        after.saturating_sub(self.interval.saturating_mul(self.burst))
    }
    fn forget(&self, _: &T) {}
    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}

/// The longest wait of several limiters. client-go's `TypedMaxOfRateLimiter`.
///
/// All of them are asked each time: a token of a bucket is used up also if another limiter has the task
/// wait for longer.
pub struct MaxOf<T>(Vec<Box<dyn RateLimiter<T>>>);

impl<T: Task> MaxOf<T> {
    /// None yet: nothing has to wait.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// The same, with one limiter more.
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

/// Another limiter, whose waits are never longer than this. client-go's `TypedWithMaxWaitRateLimiter`.
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
    /// `limiter`, but never longer than `max`.
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

/// Never the tasks: their names are other people's.
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
