//! The queue between tasks and threads: one lock, and who waits for what.
//!
//! Nothing here knows what time it is or how to sleep: a worker that has to wait is told until when.
//! Wakers and tasks are given back to be woken and dropped when the lock is free, since both run code
//! of others.

use std::collections::VecDeque;
use std::hash::Hash;
use std::task::{Poll, Waker};

use hashbrown::DefaultHashBuilder;

use super::state::{Due, Effect, Hashed, Nanos, State, Taken};
use super::sync::Mutex;

pub(super) struct Shared<T> {
    /// Outside of the lock, so that tasks are hashed without it.
    hasher: DefaultHashBuilder,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    state: State<T>,
    /// Workers that wait for a task, those that have waited longest first.
    waiting: VecDeque<Waiter>,
    last_waiter: u64,
    /// The one of them that sleeps until the next task is due. There is one whenever a worker waits
    /// and something is due later; it is woken when it is appointed, and finds out when it is polled.
    timekeeper: Option<u64>,
    /// Those who wait until nothing is left to do.
    draining: Vec<Waker>,
}

struct Waiter {
    id: u64,
    waker: Waker,
}

/// A place in the line of waiting workers.
#[derive(Default)]
pub(super) struct Place(Option<u64>);

/// Nothing to do yet.
pub(super) struct Wait {
    /// Ask again at this time, if not woken before.
    pub(super) until: Option<Nanos>,
}

/// To be done when the lock is free.
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
            // What is due has come before it.
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

    /// Takes a task if there is one now.
    pub(super) fn take(&self, now: Nanos) -> Option<Taken<T>> {
        self.with(|inner| {
            let due = inner.state.come_due(now);
            let taken = inner.state.take(now);
            let woken = inner.wake(due.saturating_sub(usize::from(taken.is_some())));
            (taken, woken)
        })
    }

    /// Takes a task for a worker, or gives the worker a place in the line. `None` if there will be no
    /// more: as long as a task is to be done again, a worker has to stay for it, and its own may
    /// not come back.
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
                // One of those that came due is this worker's.
                let woken = inner.wake(due.saturating_sub(usize::from(taken.is_some())));
                return (taken, woken);
            }
            wait = Some(inner.wait(place, waker));
            (None, Woken(vec![]))
        });
        wait.map_or(Ok(taken), Err)
    }

    /// A worker that waited does so no longer. A task that it was woken for is for another one.
    pub(super) fn stop_waiting(&self, place: &mut Place) {
        if place.0.is_none() {
            return;
        }
        self.with(|inner| {
            let was_woken = !inner.leave(place) && inner.state.counts().ready > 0;
            ((), inner.wake(usize::from(was_woken)))
        });
    }

    /// A worker has finished. The clock is read only if the task may be ready again.
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

    /// The same, and the task is due later.
    pub(super) fn finish_until(&self, slot: u32, priority: i32, due: Due) {
        let _task = self.with(|inner| {
            let came_due = inner.state.come_due(due.now);
            let (effect, task) = inner.state.finish_until(slot, priority, due);
            let mut woken = inner.wake_for(came_due, effect);
            inner.wake_drained(&mut woken);
            (task, woken)
        });
    }

    /// Takes nothing more. What is due by now is handed out, whether or not a worker has noticed.
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

    /// Ready when it has been shut down and nothing is left to do.
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

    /// Looks at the state, in which everything is ready that is due by now.
    pub(super) fn look<R>(&self, now: Nanos, look: impl FnOnce(&State<T>) -> R) -> R {
        self.with(|inner| {
            let due = inner.state.come_due(now);
            (look(&inner.state), inner.wake(due))
        })
    }

    /// Changes the state. Those whom that wakes are woken when the lock is free.
    fn with<R>(&self, change: impl FnOnce(&mut Inner<T>) -> (R, Woken)) -> R {
        let (result, _woken) = change(&mut self.inner.lock());
        result
    }
}

impl<T: Clone + Eq + Hash> Inner<T> {
    /// Wakes as many workers as there are more tasks, and all of them if there will be no more.
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

    /// The same after a change. The timekeeper sleeps for too long if something is due earlier.
    fn wake_for(&mut self, came_due: usize, effect: Effect) -> Woken {
        let mut woken = self.wake(came_due + usize::from(effect.ready));
        if effect.earlier {
            let keeper = self.waiting.iter().find(|waiter| Some(waiter.id) == self.timekeeper);
            woken.0.extend(keeper.map(|waiter| waiter.waker.clone()));
        }
        woken
    }

    /// Makes the last in the line the timekeeper, if there has to be one and is none: the last is the
    /// one that will wait longest.
    fn appoint(&mut self) -> Option<Waker> {
        if self.timekeeper.is_some() || self.state.next_due().is_none() {
            return None;
        }
        let last = self.waiting.back()?;
        self.timekeeper = Some(last.id);
        Some(last.waker.clone())
    }

    /// Puts a worker into the line, or keeps it there.
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

    /// Takes a worker out of the line. False if it had been woken, or was not in it.
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
