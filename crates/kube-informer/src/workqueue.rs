//! A work queue that holds each task at most once and hands it to at most one worker at a time.
//!
//! Handlers add keys and workers take them. A key that is added several times while it is queued is handed out
//! once. A key that is added while a worker is processing it is handed out again when that worker finishes.
//! This turns events into a reconcile loop: a worker learns *that* an object changed, and reads the cache to
//! see its current state.
//!
//! ```
//! use kube_informer::{ObjectKey, WorkQueue};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let queue = WorkQueue::new();
//! let web: ObjectKey = "shop/web-0".parse()?;
//! queue.add(web.clone());
//! queue.add(web.clone());
//! assert_eq!(queue.len(), 1);
//!
//! let key = queue.get().await.expect("the queue has not been shut down");
//! queue.add(web.clone()); // while a worker has it
//! assert_eq!(queue.len(), 0);
//! key.done();
//!
//! let key = queue.get().await.expect("it was added again");
//! assert_eq!(*key, web);
//! key.retry(); // after 5 ms, and twice as long after each further failure
//! let key = queue.get().await.expect("it is retried");
//! assert_eq!(key.failures(), 1);
//! key.done();
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Tasks are handed out by priority, and in the order in which they were first added within a priority.
//! [`add`](WorkQueue::add) uses priority 0. [`enqueue`](crate::HandlerBuilder::enqueue) queues initial lists
//! and resyncs below it, at [`LOW_PRIORITY`], so that a change does not wait behind a hundred thousand
//! unchanged objects. No priority starves: every sixteenth task is the one that has waited longest.
//!
//! # Time
//!
//! A task that is [added for later](WorkQueue::add_after) needs no Tokio task and no timer of its own: one of
//! the idle workers sleeps until the next task is due. While all workers are busy, no wakeup is needed.

mod in_progress;
mod limiter;
mod shared;
mod state;

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::ObjectKey;
use crate::measure::{Histogram, QUEUE_SECONDS};

pub use in_progress::InProgress;
pub use limiter::{
    ItemExponential, ItemFastSlow, MaxOf, RateLimiter, TokenBucket, WithMaxWait,
    default_controller_limiter, default_item_limiter,
};

use shared::{Place, Shared, Wait};
use state::{Due, Nanos, Taken};

/// The queue's lock. The tests that explore every interleaving substitute their own.
mod sync {
    pub(super) use parking_lot::Mutex;
}

/// The priority of tasks that are added because of an initial list or a resync. It is lower than that of any
/// change, and the same number as in controller-runtime.
pub const LOW_PRIORITY: i32 = -100;

/// A value that can be queued. Implemented for every type that meets the bounds.
pub trait Task: Clone + Eq + Hash + Send + Sync + 'static {}
impl<T: Clone + Eq + Hash + Send + Sync + 'static> Task for T {}

/// A deduplicating work queue with priorities, delays and rate limiting. Cheap to clone; see the
/// [module documentation](self).
pub struct WorkQueue<T: Task = ObjectKey>(Arc<Inner<T>>);

struct Inner<T: Task> {
    name: OnceLock<Arc<str>>,
    /// Set when it is first used, at the latest.
    limiter: OnceLock<Box<dyn RateLimiter<T>>>,
    /// The creation time of the queue: all other times are relative to it.
    made: Instant,
    shared: Shared<T>,
    measured: Measured,
}

/// Histograms of durations, for metrics.
pub(crate) struct Measured {
    /// From when a task became ready until a worker took it.
    pub(crate) waited: Histogram,
    /// From when a worker took a task until it finished.
    pub(crate) worked: Histogram,
}

/// Options for [`WorkQueue::add_with`]. The default adds a task immediately, with priority 0.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::WorkQueue;
/// use kube_informer::workqueue::{AddOptions, LOW_PRIORITY};
///
/// let queue = WorkQueue::new();
/// let after = Some(Duration::from_secs(60));
/// queue.add_with("web-0", AddOptions { priority: LOW_PRIORITY, after, ..AddOptions::default() });
/// assert_eq!(queue.status().delayed, 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AddOptions {
    /// The priority. Tasks with a higher one are handed out first.
    pub priority: i32,
    /// A delay before the task becomes ready.
    pub after: Option<Duration>,
    /// Whether to count a failure and delay the task as the rate limiter demands. If `after` is set too, the
    /// shorter of the two delays applies.
    pub rate_limited: bool,
}

/// A snapshot of a queue's state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueStatus<T = ObjectKey> {
    /// The name of the queue; empty if it has none.
    pub name: Arc<str>,
    /// The number of tasks that a worker could take now.
    pub ready: usize,
    /// The number of tasks that are due later.
    pub delayed: usize,
    /// The number of tasks that workers are processing.
    pub running: usize,
    /// How long the longest-waiting ready task has been ready.
    pub longest_waiting: Option<Duration>,
    /// The task that has been in progress longest, and for how long.
    pub longest_running: Option<(T, Duration)>,
    /// The total time that the tasks now in progress have been in progress. If it grows by one second per
    /// second for each worker, no worker is finishing anything.
    pub unfinished_work: Duration,
    /// The number of adds so far, not counting those of tasks that were already ready.
    pub adds: u64,
    /// The number of times that tasks were added for later or retried.
    pub retries: u64,
    /// Whether the queue has been shut down and accepts no more tasks.
    pub is_shut_down: bool,
}

impl<T: Task> WorkQueue<T> {
    /// Creates a queue with client-go's default limits for failed tasks: 5 ms to 1,000 s for each task, and
    /// at most ten retries per second overall (see [`default_controller_limiter`]).
    pub fn new() -> Self {
        Self::with_rate_limiter(default_controller_limiter())
    }

    /// Creates a queue with the given rate limiter.
    pub fn with_rate_limiter(limiter: impl RateLimiter<T>) -> Self {
        let queue = Self::undecided();
        queue.decide(limiter);
        queue
    }

    /// Creates a queue whose rate limiter can still be chosen. If none is, each task waits 5 ms to 1,000 s.
    pub(crate) fn undecided() -> Self {
        Self(Arc::new(Inner {
            name: OnceLock::new(),
            limiter: OnceLock::new(),
            made: Instant::now(),
            shared: Shared::new(),
            measured: Measured {
                waited: Histogram::new(QUEUE_SECONDS),
                worked: Histogram::new(QUEUE_SECONDS),
            },
        }))
    }

    /// Sets the rate limiter, unless the queue already has one.
    pub(crate) fn decide(&self, limiter: impl RateLimiter<T>) {
        let _ = self.0.limiter.set(Box::new(limiter));
    }

    fn limiter(&self) -> &dyn RateLimiter<T> {
        let (base, max) = (Duration::from_millis(5), Duration::from_secs(1000));
        &**self.0.limiter.get_or_init(|| Box::new(ItemExponential::new(base, max)))
    }

    /// Sets the queue's name, which appears in its status and metrics. Only the first name is used.
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        let _ = self.0.name.set(name.into());
        self
    }

    /// Adds a task. A task that is already queued keeps its place. A task that a worker is processing is queued
    /// again when that worker finishes.
    ///
    /// Does nothing after [`shut_down`](Self::shut_down).
    pub fn add(&self, task: T) {
        self.add_with_priority(task, 0);
    }

    /// Adds a task ahead of all tasks with a lower priority. A task that is already queued with a lower
    /// priority moves to the end of the higher one; it never moves down.
    pub fn add_with_priority(&self, task: T, priority: i32) {
        self.0.shared.add(task, priority, self.now());
    }

    /// Adds a task after a delay. If the task is already scheduled, the earlier time applies.
    ///
    /// An [`add`](Self::add) in the meantime does not cancel it: a scheduled task is always handed out at its
    /// time or later.
    pub fn add_after(&self, task: T, delay: Duration) {
        self.add_with(task, AddOptions { after: Some(delay), ..AddOptions::default() });
    }

    /// Counts a failure of a task, and adds the task after the rate limiter's delay.
    pub fn add_rate_limited(&self, task: T) {
        self.add_with(task, AddOptions { rate_limited: true, ..AddOptions::default() });
    }

    /// Adds a task with the given options.
    pub fn add_with(&self, task: T, options: AddOptions) {
        let limited = options.rate_limited.then(|| self.limiter().when(&task));
        let delay = limited.into_iter().chain(options.after).min();
        match delay {
            None => self.add_with_priority(task, options.priority),
            Some(delay) => self.0.shared.add_later(task, options.priority, self.due(delay)),
        }
    }

    /// Forgets the failures of a task. [`InProgress::done`] does this too.
    pub fn forget(&self, task: &T) {
        self.limiter().forget(task);
    }

    /// Returns how many times a task has failed since it was last forgotten.
    pub fn num_requeues(&self, task: &T) -> u32 {
        self.limiter().num_requeues(task)
    }

    /// Waits for the next task. Returns `None` once the queue has been shut down and has nothing left to hand
    /// out.
    ///
    /// Cancel safe: a task is either returned to the caller or still in the queue.
    ///
    /// # Panics
    ///
    /// Panics if a task is due later and this is polled outside of a Tokio runtime with timers enabled.
    pub async fn get(&self) -> Option<InProgress<T>> {
        let taken = Get { queue: self, place: Place::default(), sleep: None }.await;
        taken.map(|taken| self.hand_out(taken))
    }

    /// Takes the next task, if one is ready.
    pub fn try_get(&self) -> Option<InProgress<T>> {
        let taken = self.0.shared.take(self.now());
        taken.map(|taken| self.hand_out(taken))
    }

    fn hand_out(&self, taken: Taken<T>) -> InProgress<T> {
        self.0.measured.waited.record_duration(Duration::from_nanos(taken.waited));
        InProgress::new(self.clone(), taken)
    }

    /// Records the duration of a task that a worker took at this time and has finished.
    fn record_work(&self, taken_at: Nanos) {
        // The clock is read only if metrics are enabled.
        if cfg!(feature = "metrics") {
            let worked = Duration::from_nanos(self.now().saturating_sub(taken_at));
            self.0.measured.worked.record_duration(worked);
        }
    }

    /// Returns the number of ready tasks. Tasks that are in progress or due later are not counted.
    pub fn len(&self) -> usize {
        self.0.shared.look(self.now(), |state| state.counts().ready)
    }

    /// Returns whether no task is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a snapshot of the queue's state.
    pub fn status(&self) -> QueueStatus<T> {
        let now = self.now();
        let since = |then: Nanos| Duration::from_nanos(now.saturating_sub(then));
        self.0.shared.look(now, |state| {
            let counts = state.counts();
            QueueStatus {
                name: self.0.name.get().cloned().unwrap_or_default(),
                ready: counts.ready,
                delayed: state.later(),
                running: counts.running,
                longest_waiting: state.oldest_ready().map(since),
                longest_running: state.longest_running().map(|(task, then)| (task, since(then))),
                unfinished_work: Duration::from_nanos(state.unfinished(now)),
                adds: counts.adds,
                retries: counts.retries,
                is_shut_down: state.is_shut_down(),
            }
        })
    }

    /// Stops accepting tasks, and drops those that are due later. [`get`](Self::get) still hands out tasks that
    /// are ready and tasks that were added again while in progress, and then returns `None`.
    pub fn shut_down(&self) {
        self.0.shared.shut_down(self.now());
    }

    /// [Shuts down](Self::shut_down) the queue, and waits until every task in it has been finished.
    ///
    /// Workers must keep taking tasks in the meantime. A task that fails is not retried. To limit the wait,
    /// drop the future, for example with `tokio::time::timeout`.
    pub async fn drain(&self) {
        self.shut_down();
        poll_fn(|context| self.0.shared.poll_drained(context.waker())).await;
    }

    /// Creates a closure that reads the queue for metrics for as long as the queue exists.
    #[cfg(feature = "metrics")]
    pub(crate) fn reader<R>(
        &self,
        read: impl Fn(QueueStatus<T>, &Measured) -> R + Send + Sync + 'static,
    ) -> impl Fn() -> Option<R> + Send + Sync + 'static {
        let queue = Arc::downgrade(&self.0);
        move || {
            let queue = Self(queue.upgrade()?);
            Some(read(queue.status(), &queue.0.measured))
        }
    }

    fn now(&self) -> Nanos {
        nanos(self.0.made.elapsed())
    }

    fn due(&self, delay: Duration) -> Due {
        let now = self.now();
        Due { now, at: now.saturating_add(nanos(delay)) }
    }
}

/// Converts a duration, saturating after five centuries.
fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

/// The future of a worker that waits for a task.
struct Get<'a, T: Task> {
    queue: &'a WorkQueue<T>,
    place: Place,
    /// The timer, if this worker is the timekeeper.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<T: Task> Future for Get<'_, T> {
    type Output = Option<Taken<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { queue, place, sleep } = self.get_mut();
        loop {
            match queue.0.shared.poll_take(place, context.waker(), queue.now()) {
                Ok(taken) => return Poll::Ready(taken),
                Err(Wait { until: None }) => {
                    *sleep = None;
                    return Poll::Pending;
                }
                Err(Wait { until: Some(due) }) => {
                    let until = queue.0.made + Duration::from_nanos(due);
                    let sleep =
                        sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
                    if sleep.deadline() != until {
                        sleep.as_mut().reset(until);
                    }
                    if sleep.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<T: Task> Drop for Get<'_, T> {
    fn drop(&mut self) {
        self.queue.0.shared.stop_waiting(&mut self.place);
    }
}

impl<T: Task> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Task> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Task> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("name", &self.0.name.get())
            .field("ready", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
