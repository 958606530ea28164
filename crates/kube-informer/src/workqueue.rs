//! A work queue: each task is in it at most once, and with at most one worker.
//!
//! Handlers put keys in, workers take them out. However often a key is added while it waits, it is
//! handed out once; if it is added while a worker has it, it is handed out again when that worker has
//! finished. This is what makes a reconcile loop out of events: it is told *that* something changed, and
//! reads the cache to see what.
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
//! Tasks are handed out by priority, and in the order in which they were first added within one.
//! [`add`](WorkQueue::add) gives priority 0, and
//! [`enqueue`](crate::HandlerBuilder::enqueue) puts initial lists and resyncs below it ([`LOW_PRIORITY`]),
//! so that a change is not kept waiting by a hundred thousand objects that are as they were. No priority
//! is starved: every sixteenth task is the one that has waited longest.
//!
//! # Time
//!
//! Tasks that are [added for later](WorkQueue::add_after) cost no task and no timer each: one of the
//! workers that wait sleeps until the next is due. While all workers are busy nothing has to be woken.

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

/// Which lock the queue has: tests that try every interleaving have another.
mod sync {
    pub(super) use parking_lot::Mutex;
}

/// The priority of tasks that are added because of an initial list or a resync: below every change.
/// controller-runtime has the same number.
pub const LOW_PRIORITY: i32 = -100;

/// Anything that can be queued.
pub trait Task: Clone + Eq + Hash + Send + Sync + 'static {}
impl<T: Clone + Eq + Hash + Send + Sync + 'static> Task for T {}

/// A work queue. Cheap to clone; see the [module](self).
pub struct WorkQueue<T: Task = ObjectKey>(Arc<Inner<T>>);

struct Inner<T: Task> {
    name: OnceLock<Arc<str>>,
    /// Decided at the latest when it is first asked.
    limiter: OnceLock<Box<dyn RateLimiter<T>>>,
    /// Times are counted from here.
    made: Instant,
    shared: Shared<T>,
    measured: Measured,
}

/// Durations, for metrics.
pub(crate) struct Measured {
    /// From the moment at which a task was ready until a worker took it.
    pub(crate) waited: Histogram,
    /// From then until the worker had finished.
    pub(crate) worked: Histogram,
}

/// How a task is added, beside at once and with priority 0.
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
    /// Those of a higher priority are handed out first.
    pub priority: i32,
    /// Not before this time has passed.
    pub after: Option<Duration>,
    /// Not before the rate limiter allows it. If `after` is given too, the shorter of the two counts.
    pub rate_limited: bool,
}

/// A queue at a glance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueStatus<T = ObjectKey> {
    /// Its name; empty if it was given none.
    pub name: Arc<str>,
    /// Tasks that a worker could take now.
    pub ready: usize,
    /// Tasks that are due later.
    pub delayed: usize,
    /// Tasks that workers have.
    pub running: usize,
    /// How long the task that is ready and has waited longest has done so.
    pub longest_waiting: Option<Duration>,
    /// The task that a worker has had for longest, and for how long.
    pub longest_running: Option<(T, Duration)>,
    /// How long all tasks that workers have had been with them, added up. If it grows by more than a
    /// second per second for each worker, nothing gets finished.
    pub unfinished_work: Duration,
    /// How often tasks were added; those that were ready already are not counted.
    pub adds: u64,
    /// How often tasks were added for later or retried.
    pub retries: u64,
    /// It takes no more tasks.
    pub is_shut_down: bool,
}

impl<T: Task> WorkQueue<T> {
    /// A queue with client-go's limits for tasks that fail: 5 ms to 1,000 s for each of them, ten a
    /// second for all of them ([`default_controller_limiter`]).
    pub fn new() -> Self {
        Self::with_rate_limiter(default_controller_limiter())
    }

    /// A queue with another limiter.
    pub fn with_rate_limiter(limiter: impl RateLimiter<T>) -> Self {
        let queue = Self::undecided();
        queue.decide(limiter);
        queue
    }

    /// A queue whose limiter can still be chosen. If none is, tasks wait from 5 ms to 1,000 s each.
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

    /// Chooses the limiter, unless there is one already.
    pub(crate) fn decide(&self, limiter: impl RateLimiter<T>) {
        let _ = self.0.limiter.set(Box::new(limiter));
    }

    fn limiter(&self) -> &dyn RateLimiter<T> {
        let (base, max) = (Duration::from_millis(5), Duration::from_secs(1000));
        &**self.0.limiter.get_or_init(|| Box::new(ItemExponential::new(base, max)))
    }

    /// Names it, for status and metrics. The first name stays.
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        let _ = self.0.name.set(name.into());
        self
    }

    /// Queues a task. One that is queued already stays where it is; one that a worker has is queued
    /// when that has finished.
    ///
    /// After [`shut_down`](Self::shut_down) this does nothing.
    pub fn add(&self, task: T) {
        self.add_with_priority(task, 0);
    }

    /// Queues a task, before all of a lower priority. One that is queued already moves up to the end of
    /// a higher priority, and never down.
    pub fn add_with_priority(&self, task: T, priority: i32) {
        self.0.shared.add(task, priority, self.now());
    }

    /// Queues a task once this time has passed. If it is to be queued later already, the earlier time
    /// counts.
    ///
    /// An [`add`](Self::add) before then does not cancel it: a task that is due at a time is handed out
    /// at that time or after it.
    pub fn add_after(&self, task: T, delay: Duration) {
        self.add_with(task, AddOptions { after: Some(delay), ..AddOptions::default() });
    }

    /// Counts a failure of a task, and queues it when the rate limiter allows that.
    pub fn add_rate_limited(&self, task: T) {
        self.add_with(task, AddOptions { rate_limited: true, ..AddOptions::default() });
    }

    /// Queues a task as the options say.
    pub fn add_with(&self, task: T, options: AddOptions) {
        let limited = options.rate_limited.then(|| self.limiter().when(&task));
        let delay = limited.into_iter().chain(options.after).min();
        match delay {
            None => self.add_with_priority(task, options.priority),
            Some(delay) => self.0.shared.add_later(task, options.priority, self.due(delay)),
        }
    }

    /// Forgets the failures of a task. [`InProgress::done`] does so too.
    pub fn forget(&self, task: &T) {
        self.limiter().forget(task);
    }

    /// How often a task has failed since it was last forgotten.
    pub fn num_requeues(&self, task: &T) -> u32 {
        self.limiter().num_requeues(task)
    }

    /// Waits for the next task. `None` once the queue has been shut down and nothing is left to hand out.
    ///
    /// Cancel safe: a task is either given to the caller or still in the queue.
    ///
    /// # Panics
    ///
    /// If something is due later and this is polled outside of a Tokio runtime with timers.
    pub async fn get(&self) -> Option<InProgress<T>> {
        let taken = Get { queue: self, place: Place::default(), sleep: None }.await;
        taken.map(|taken| self.hand_out(taken))
    }

    /// The next task, if there is one now.
    pub fn try_get(&self) -> Option<InProgress<T>> {
        let taken = self.0.shared.take(self.now());
        taken.map(|taken| self.hand_out(taken))
    }

    fn hand_out(&self, taken: Taken<T>) -> InProgress<T> {
        self.0.measured.waited.record_duration(Duration::from_nanos(taken.waited));
        InProgress::new(self.clone(), taken)
    }

    /// A worker has finished a task that it took at this time.
    fn record_work(&self, taken_at: Nanos) {
        // Without metrics the clock need not be read.
        if cfg!(feature = "metrics") {
            let worked = Duration::from_nanos(self.now().saturating_sub(taken_at));
            self.0.measured.worked.record_duration(worked);
        }
    }

    /// How many tasks are ready: neither those that workers have, nor those that are due later.
    pub fn len(&self) -> usize {
        self.0.shared.look(self.now(), |state| state.counts().ready)
    }

    /// Whether no task is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The queue at a glance.
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

    /// Takes no more tasks, and forgets those that are due later. [`get`](Self::get) still hands out
    /// those that are ready, and those that were added again while a worker has them, and then `None`.
    pub fn shut_down(&self) {
        self.0.shared.shut_down(self.now());
    }

    /// [Shuts it down](Self::shut_down), and waits until every task that is in it has been finished.
    ///
    /// Workers have to go on taking tasks for that. A task that fails meanwhile is not retried. To wait
    /// no longer than some time, drop the future: `tokio::time::timeout` does.
    pub async fn drain(&self) {
        self.shut_down();
        poll_fn(|context| self.0.shared.poll_drained(context.waker())).await;
    }

    /// Reads the queue for metrics for as long as it exists.
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

/// Five centuries are as good as never.
fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

/// A worker that waits for a task.
struct Get<'a, T: Task> {
    queue: &'a WorkQueue<T>,
    place: Place,
    /// Of the one worker that looks at the clock.
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
