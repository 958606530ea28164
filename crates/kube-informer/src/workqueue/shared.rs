//! The thread-safe queue: the state behind one lock, and the workers that wait for it.
//!
//! This module neither reads the clock nor sleeps: it returns to a waiting worker the time until which to wait.
//! Wakers and tasks are woken and dropped after the lock is released, since both run user code.

use std::collections::VecDeque;
use std::hash::Hash;
use std::task::{Poll, Waker};

use hashbrown::DefaultHashBuilder;

use super::state::{Due, Effect, Hashed, Nanos, State, Taken};
use super::sync::Mutex;

pub(super) struct Shared<T> {
    /// Outside of the lock, so that tasks are hashed without holding it.
    hasher: DefaultHashBuilder,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    state: State<T>,
    /// Workers that wait for a task, longest-waiting first.
    waiting: VecDeque<Waiter>,
    last_waiter: u64,
    /// The waiting worker that sleeps until the next task is due. There is one whenever a worker waits and a
    /// task is due later. A worker is woken when it is appointed, and learns of it when it is polled.
    timekeeper: Option<u64>,
    /// Callers of `drain`.
    draining: Vec<Waker>,
}

struct Waiter {
    id: u64,
    waker: Waker,
}

/// A worker's place in the line of waiting workers.
#[derive(Default)]
pub(super) struct Place(Option<u64>);

/// No task is ready.
pub(super) struct Wait {
    /// The time at which to ask again, if not woken before.
    pub(super) until: Option<Nanos>,
}

/// Wakers to wake once the lock is released.
#[must_use]
struct Woken(Vec<Waker>);

impl Drop for Woken {
    fn drop(&mut self) {
        std::mem::take(&mut self.0).into_iter().for_each(Waker::wake);
    }
}

impl<T: Clone + Eq + Hash> Shared<T> {
    pub(super) fn new() -> Self {
        let inner = Inner {
            state: State::new(),
            waiting: VecDeque::new(),
            last_waiter: 0,
            timekeeper: None,
            draining: Vec::new(),
        };
        Self { hasher: DefaultHashBuilder::default(), inner: Mutex::new(inner) }
    }

    pub(super) fn add(&self, task: T, priority: i32, now: Nanos) {
        let hash = Hashed::of(&task, &self.hasher);
        let _spare = self.with(|inner| {
            // Tasks that have come due go first.
            let due = inner.state.come_due(now);
            let (more, spare) = inner.state.add(task, hash, priority, now);
            (spare, inner.wake(due + usize::from(more)))
        });
    }

    pub(super) fn add_later(&self, task: T, priority: i32, due: Due) {
        let hash = Hashed::of(&task, &self.hasher);
        let _spare = self.with(|inner| {
            let came_due = inner.state.come_due(due.now);
            let (effect, spare) = inner.state.add_later(task, hash, priority, due);
            (spare, inner.wake_for(came_due, effect))
        });
    }

    /// Takes a task if one is ready.
    pub(super) fn take(&self, now: Nanos) -> Option<Taken<T>> {
        self.with(|inner| {
            let due = inner.state.come_due(now);
            let taken = inner.state.take(now);
            let woken = inner.wake(due.saturating_sub(usize::from(taken.is_some())));
            (taken, woken)
        })
    }

    /// Takes a task for a worker, or gives the worker a place in line. Returns `None` if there will be no
    /// more tasks. While a task is still to be repeated, a worker has to stay for it: the worker that runs it
    /// may not come back.
    pub(super) fn poll_take(
        &self,
        place: &mut Place,
        waker: &Waker,
        now: Nanos,
    ) -> Result<Option<Taken<T>>, Wait> {
        let mut wait = None;
        let taken = self.with(|inner| {
            let due = inner.state.come_due(now);
            let taken = inner.state.take(now);
            if taken.is_some() || inner.state.is_over() {
                inner.leave(place);
                // This worker takes one of the tasks that came due.
                let woken = inner.wake(due.saturating_sub(usize::from(taken.is_some())));
                return (taken, woken);
            }
            wait = Some(inner.wait(place, waker));
            (None, Woken(vec![]))
        });
        wait.map_or(Ok(taken), Err)
    }

    /// Removes a worker from the line. If it has been woken for a task, another worker is woken instead.
    pub(super) fn stop_waiting(&self, place: &mut Place) {
        if place.0.is_none() {
            return;
        }
        self.with(|inner| {
            let was_woken = !inner.leave(place) && inner.state.counts().ready > 0;
            ((), inner.wake(usize::from(was_woken)))
        });
    }

    /// Marks a task as finished. The clock is read only if the task may be ready again.
    pub(super) fn finish(&self, slot: u32, now: impl FnOnce() -> Nanos) {
        let _task = self.with(|inner| {
            let again = inner.state.may_be_again(slot);
            let due = if again { inner.state.come_due(now()) } else { 0 };
            let (again, task) = inner.state.finish(slot);
            let mut woken = inner.wake(due + usize::from(again));
            inner.wake_drained(&mut woken);
            (task, woken)
        });
    }

    /// Marks a task as finished and schedules it for later.
    pub(super) fn finish_until(&self, slot: u32, priority: i32, due: Due) {
        let _task = self.with(|inner| {
            let came_due = inner.state.come_due(due.now);
            let (effect, task) = inner.state.finish_until(slot, priority, due);
            let mut woken = inner.wake_for(came_due, effect);
            inner.wake_drained(&mut woken);
            (task, woken)
        });
    }

    /// Stops accepting tasks. Tasks that are due by now are still handed out, even if no worker has noticed
    /// yet.
    pub(super) fn shut_down(&self, now: Nanos) {
        let _tasks = self.with(|inner| {
            inner.state.come_due(now);
            let tasks = inner.state.shut_down();
            inner.timekeeper = None;
            let mut woken = Woken(inner.waiting.drain(..).map(|waiter| waiter.waker).collect());
            inner.wake_drained(&mut woken);
            (tasks, woken)
        });
    }

    /// Completes when the queue has been shut down and nothing is left to do.
    pub(super) fn poll_drained(&self, waker: &Waker) -> Poll<()> {
        let mut inner = self.inner.lock();
        if inner.state.is_drained() {
            return Poll::Ready(());
        }
        if !inner.draining.iter().any(|known| known.will_wake(waker)) {
            inner.draining.push(waker.clone());
        }
        Poll::Pending
    }

    /// Reads the state after making ready every task that is due by now.
    pub(super) fn look<R>(&self, now: Nanos, look: impl FnOnce(&State<T>) -> R) -> R {
        self.with(|inner| {
            let due = inner.state.come_due(now);
            (look(&inner.state), inner.wake(due))
        })
    }

    /// Changes the state, and wakes the affected workers after releasing the lock.
    fn with<R>(&self, change: impl FnOnce(&mut Inner<T>) -> (R, Woken)) -> R {
        let (result, _woken) = change(&mut self.inner.lock());
        result
    }
}

impl<T: Clone + Eq + Hash> Inner<T> {
    /// Wakes one worker per new task, or all workers if there will be no more tasks.
    fn wake(&mut self, tasks: usize) -> Woken {
        let count = if self.state.is_over() { usize::MAX } else { tasks };
        let count = count.min(self.waiting.len());
        if count == 0 {
            return Woken(self.appoint().into_iter().collect());
        }
        let mut woken = Vec::with_capacity(count + 1);
        for waiter in self.waiting.drain(..count) {
            if self.timekeeper == Some(waiter.id) {
                self.timekeeper = None;
            }
            woken.push(waiter.waker);
        }
        woken.extend(self.appoint());
        Woken(woken)
    }

    /// Wakes workers after a change, including the timekeeper if a task is now due earlier.
    fn wake_for(&mut self, came_due: usize, effect: Effect) -> Woken {
        let mut woken = self.wake(came_due + usize::from(effect.ready));
        if effect.earlier {
            let keeper = self.waiting.iter().find(|waiter| Some(waiter.id) == self.timekeeper);
            woken.0.extend(keeper.map(|waiter| waiter.waker.clone()));
        }
        woken
    }

    /// Appoints the last worker in line as the timekeeper, if one is needed and there is none. The last worker
    /// will wait longest.
    fn appoint(&mut self) -> Option<Waker> {
        if self.timekeeper.is_some() || self.state.next_due().is_none() {
            return None;
        }
        let last = self.waiting.back()?;
        self.timekeeper = Some(last.id);
        Some(last.waker.clone())
    }

    /// Adds a worker to the line, or keeps its place.
    fn wait(&mut self, place: &mut Place, waker: &Waker) -> Wait {
        let known = self.waiting.iter_mut().find(|waiter| Some(waiter.id) == place.0);
        let id = if let Some(waiter) = known {
            waiter.waker.clone_from(waker);
            waiter.id
        } else {
            self.last_waiter += 1;
            self.waiting.push_back(Waiter { id: self.last_waiter, waker: waker.clone() });
            place.0 = Some(self.last_waiter);
            self.last_waiter
        };
        let due = self.state.next_due();
        if due.is_some() && self.timekeeper.is_none() {
            self.timekeeper = Some(id);
        }
        Wait { until: due.filter(|_| self.timekeeper == Some(id)) }
    }

    /// Removes a worker from the line. Returns false if it had been woken or was not in line.
    fn leave(&mut self, place: &mut Place) -> bool {
        let Some(id) = place.0.take() else { return false };
        if self.timekeeper == Some(id) {
            self.timekeeper = None;
        }
        let Some(at) = self.waiting.iter().position(|waiter| waiter.id == id) else { return false };
        self.waiting.remove(at);
        true
    }

    fn wake_drained(&mut self, woken: &mut Woken) {
        if self.state.is_drained() {
            woken.0.append(&mut self.draining);
        }
    }
}
