//! A task that is in progress.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::ObjectKey;

use super::state::Taken;
use super::{Task, WorkQueue};

/// The delay of a task whose rate limiter has panicked.
const WAIT_WITHOUT_LIMITER: Duration = Duration::from_secs(1);

/// A task that a worker is processing. No other worker receives it in the meantime. Dereferences to the task.
///
/// The worker ends it with [`done`](Self::done), [`retry`](Self::retry) or [`again_after`](Self::again_after).
/// If it is dropped without any of these (by `?`, a panic or a cancelled worker), it is retried: a task is
/// never lost and never held forever.
#[must_use = "a task that is dropped without `done` is retried"]
pub struct InProgress<T: Task = ObjectKey> {
    queue: WorkQueue<T>,
    taken: Taken<T>,
    outcome: Outcome,
}

#[derive(Clone, Copy)]
enum Outcome {
    Done,
    Retry,
    After(Duration),
    /// Not attempted: the failure count stays as it is.
    PutBack(Duration),
}

impl<T: Task> InProgress<T> {
    pub(super) fn new(queue: WorkQueue<T>, taken: Taken<T>) -> Self {
        Self { queue, taken, outcome: Outcome::Retry }
    }

    /// Finishes the task, because it succeeded or is given up. Its failures are forgotten.
    pub fn done(mut self) {
        self.outcome = Outcome::Done;
    }

    /// Reports a failure. The task is queued again after the rate limiter's delay.
    pub fn retry(mut self) {
        self.outcome = Outcome::Retry;
    }

    /// Finishes the task, forgets its failures, and queues it again after the delay.
    pub fn again_after(mut self, delay: Duration) {
        self.outcome = Outcome::After(delay);
    }

    /// Returns the task unattempted, and queues it again after the delay.
    pub(crate) fn put_back(mut self, delay: Duration) {
        self.outcome = Outcome::PutBack(delay);
    }

    /// Returns the number of failures since the task last succeeded.
    pub fn failures(&self) -> u32 {
        self.queue.num_requeues(&self.taken.task)
    }

    /// Returns the priority with which the task was handed out.
    pub fn priority(&self) -> i32 {
        self.taken.priority
    }

    /// Returns the delay until the task is queued again, if any. Limiters are user code, and this may run
    /// during a panic.
    fn delay(&self) -> Option<Duration> {
        let limiter = self.queue.limiter();
        let wait = catch_unwind(AssertUnwindSafe(|| match self.outcome {
            Outcome::Retry => Some(limiter.when(&self.taken.task)),
            Outcome::Done | Outcome::After(_) => {
                limiter.forget(&self.taken.task);
                None
            }
            Outcome::PutBack(_) => None,
        }));
        let wait = wait.unwrap_or_else(|_| {
            tracing::error!(queue = ?self.queue.0.name.get(), "the rate limiter has panicked");
            matches!(self.outcome, Outcome::Retry).then_some(WAIT_WITHOUT_LIMITER)
        });
        match self.outcome {
            Outcome::After(delay) | Outcome::PutBack(delay) => Some(delay),
            Outcome::Done | Outcome::Retry => wait,
        }
    }
}

impl<T: Task> Drop for InProgress<T> {
    fn drop(&mut self) {
        let Taken { slot, priority, at, .. } = self.taken;
        self.queue.record_work(at);
        match self.delay() {
            None => self.queue.0.shared.finish(slot, || self.queue.now()),
            Some(delay) => {
                self.queue.0.shared.finish_until(slot, priority, self.queue.due(delay));
            }
        }
    }
}

impl<T: Task> Deref for InProgress<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.taken.task
    }
}

impl<T: Task + fmt::Display> fmt::Display for InProgress<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.taken.task.fmt(f)
    }
}

impl<T: Task + fmt::Debug> fmt::Debug for InProgress<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InProgress").field(&self.taken.task).finish()
    }
}
