//! A task that a worker has.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::ObjectKey;

use super::state::Taken;
use super::{Task, WorkQueue};

/// How long a task waits whose rate limiter has panicked.
const WAIT_WITHOUT_LIMITER: Duration = Duration::from_secs(1);

/// A task that a worker has: no other gets it meanwhile. It reads like the task itself.
///
/// It ends with [`done`](Self::done), [`retry`](Self::retry) or [`again_after`](Self::again_after).
/// Dropped without one of them (by `?`, a panic, or a worker that is cancelled) it is retried: a task is
/// neither lost nor held for ever.
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
    /// Not tried: its failures are neither counted nor forgotten.
    PutBack(Duration),
}

impl<T: Task> InProgress<T> {
    pub(super) fn new(queue: WorkQueue<T>, taken: Taken<T>) -> Self {
        Self { queue, taken, outcome: Outcome::Retry }
    }

    /// It went well, or is given up: its failures are forgotten.
    pub fn done(mut self) {
        self.outcome = Outcome::Done;
    }

    /// It failed: it is queued again when the rate limiter allows that.
    pub fn retry(mut self) {
        self.outcome = Outcome::Retry;
    }

    /// It went well for now: its failures are forgotten, and it is queued again after this time.
    pub fn again_after(mut self, delay: Duration) {
        self.outcome = Outcome::After(delay);
    }

    /// It was not tried, and is queued again after this time.
    pub(crate) fn put_back(mut self, delay: Duration) {
        self.outcome = Outcome::PutBack(delay);
    }

    /// How often it has failed since it last went well.
    pub fn failures(&self) -> u32 {
        self.queue.num_requeues(&self.taken.task)
    }

    /// The priority that it was handed out with.
    pub fn priority(&self) -> i32 {
        self.taken.priority
    }

    /// When it is to be queued again. Limiters are code of others, and this may be part of a panic.
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
