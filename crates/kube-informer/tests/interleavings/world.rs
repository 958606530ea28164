//! A queue with its own clock, and a ledger of its tasks.
//!
//! Every task has a number that each add increments, as each change makes an object newer. A worker that starts
//! a task reads the number. An add is not lost if some run of the task has read its number, or a later one: a
//! reconcile loop relies on this.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use shuttle::future::yield_now;

use super::shared::{Place, Shared, Wait};
use super::state::{Due, Nanos, State, Taken};

const TASKS: usize = 3;

/// A time that is never reached.
const NEVER: Nanos = 1 << 40;

/// State outside the queue uses locks that shuttle does not know: none is held where it may switch threads.
pub(super) struct World {
    queue: Shared<u32>,
    clock: Mutex<Clock>,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
struct Clock {
    now: Nanos,
    sleepers: Vec<Sleeper>,
    last_sleeper: u64,
    is_over: bool,
    /// The waker of the idle task that advances time.
    keeper: Option<Waker>,
}

struct Sleeper {
    id: u64,
    until: Nanos,
    waker: Waker,
}

#[derive(Default)]
pub(super) struct Ledger {
    written: [u64; TASKS],
    seen: [u64; TASKS],
    running: [bool; TASKS],
    failed: [bool; TASKS],
    /// The task may not be handed out before this time, because it was only added with a delay.
    not_before: [Option<Nanos>; TASKS],
    /// Number of tasks that have been started.
    pub(super) starts: usize,
    /// Number of tasks that have failed and not been started again.
    pub(super) retries_due: usize,
    waiting: Vec<Waker>,
}

/// How a worker ends a task.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    Done,
    Retry(Nanos),
}

impl World {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { queue: Shared::new(), clock: Mutex::default(), ledger: Mutex::default() })
    }

    pub(super) fn add(&self, task: u32) {
        self.change(|ledger| ledger.written[task as usize] += 1);
        self.try_add(task);
    }

    /// Adds a task while the queue may be shut down, without requiring a run.
    pub(super) fn try_add(&self, task: u32) {
        self.change(|ledger| ledger.not_before[task as usize] = Some(0));
        self.queue.add(task, 0, self.now());
    }

    pub(super) fn add_later(&self, task: u32, after: Nanos) {
        let now = self.now();
        let due = Due { now, at: now + after };
        self.change(|ledger| {
            ledger.written[task as usize] += 1;
            let earliest = &mut ledger.not_before[task as usize];
            *earliest = Some(earliest.map_or(due.at, |other| other.min(due.at)));
        });
        self.queue.add_later(task, 0, due);
    }

    /// Adds a task for a time that is never reached: a worker that sleeps for it must be woken.
    pub(super) fn add_for_never(&self, task: u32) {
        self.queue.add_later(task, 0, Due { now: self.now(), at: NEVER });
    }

    pub(super) fn starts(&self) -> usize {
        self.ledger.lock().starts
    }

    pub(super) fn ready(&self) -> usize {
        self.queue.look(self.now(), |state| state.counts().ready)
    }

    pub(super) fn shut_down(&self) {
        self.queue.shut_down(self.now());
    }

    /// Shuts down and waits until the queue is empty. These tasks were added before, and must have been seen.
    pub(super) async fn drain(self: Arc<Self>, added: &'static [usize]) {
        let written = self.ledger.lock().written;
        self.queue.shut_down(self.now());
        poll_fn(|context| self.queue.poll_drained(context.waker())).await;
        let ledger = self.ledger.lock();
        assert_eq!(ledger.running, [false; TASKS], "drained while a worker has a task");
        for &task in added {
            assert!(ledger.seen[task] >= written[task], "drained before {task} was handed out");
        }
    }

    /// Waits for a task, as `WorkQueue::get` does.
    pub(super) fn get(self: &Arc<Self>) -> Get {
        let mut clock = self.clock.lock();
        clock.last_sleeper += 1;
        Get { world: self.clone(), place: Place::default(), sleeper: clock.last_sleeper }
    }

    /// Records that a worker starts a task. Returns whether the task has not failed before.
    pub(super) fn start(&self, taken: &Taken<u32>) -> bool {
        let (task, now) = (taken.task as usize, self.now());
        self.change(|ledger| {
            assert!(!ledger.running[task], "{task} is with two workers");
            let from = ledger.not_before[task].expect("it was added");
            assert!(from <= now, "{task} is handed out at {now}, and due at {from}");
            ledger.running[task] = true;
            ledger.seen[task] = ledger.written[task];
            ledger.starts += 1;
            let again = std::mem::replace(&mut ledger.failed[task], false);
            ledger.retries_due -= usize::from(again);
            !again
        })
    }

    pub(super) fn end(&self, taken: &Taken<u32>, ending: Ending) {
        let task = taken.task as usize;
        self.change(|ledger| {
            ledger.running[task] = false;
            if matches!(ending, Ending::Retry(_)) {
                ledger.failed[task] = true;
                ledger.retries_due += 1;
            }
        });
        match ending {
            Ending::Done => self.queue.finish(taken.slot, || self.now()),
            Ending::Retry(after) => {
                let now = self.now();
                let due = Due { now, at: now + after };
                self.queue.finish_until(taken.slot, taken.priority, due);
            }
        }
    }

    /// Waits until every add has been seen by a run of its task.
    pub(super) async fn until_seen(&self) {
        self.until(|ledger| ledger.seen == ledger.written).await;
    }

    pub(super) async fn until(&self, is_so: impl Fn(&Ledger) -> bool) {
        poll_fn(|context| {
            let mut ledger = self.ledger.lock();
            if is_so(&ledger) {
                return Poll::Ready(());
            }
            ledger.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Checks that no task is in progress, and no worker waits.
    pub(super) fn check_idle(&self) {
        assert_eq!(self.ledger.lock().running, [false; TASKS]);
        assert_eq!(self.clock.lock().sleepers.len(), 0, "a worker that has left sleeps");
        let counts = self.queue.look(self.now(), State::counts);
        assert_eq!((counts.ready, counts.running), (0, 0));
    }

    fn change<R>(&self, change: impl FnOnce(&mut Ledger) -> R) -> R {
        let (result, woken) = {
            let mut ledger = self.ledger.lock();
            (change(&mut ledger), std::mem::take(&mut ledger.waiting))
        };
        woken.into_iter().for_each(Waker::wake);
        result
    }
}

/// Time.
impl World {
    fn now(&self) -> Nanos {
        self.clock.lock().now
    }

    /// Advances time without waking sleepers: their timers are late.
    pub(super) fn pass(&self, time: Nanos) {
        self.clock.lock().now += time;
    }

    /// Advances time to the first moment that a worker sleeps for, whenever there is one.
    pub(super) async fn keep_time(self: Arc<Self>) {
        while let Some(sleeper) = poll_fn(|context| self.first_sleeper(context)).await {
            {
                let mut clock = self.clock.lock();
                clock.now = clock.now.max(sleeper.until);
            }
            sleeper.waker.wake();
            yield_now().await;
        }
    }

    fn first_sleeper(&self, context: &mut Context<'_>) -> Poll<Option<Sleeper>> {
        let mut clock = self.clock.lock();
        if clock.is_over {
            return Poll::Ready(None);
        }
        let sleepers = clock.sleepers.iter().enumerate();
        let sleepers = sleepers.filter(|(_, sleeper)| sleeper.until < NEVER);
        let first = sleepers.min_by_key(|(_, sleeper)| sleeper.until).map(|(at, _)| at);
        let Some(first) = first else {
            clock.keeper = Some(context.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready(Some(clock.sleepers.swap_remove(first)))
    }

    pub(super) fn stop_time(&self) {
        let keeper = {
            let mut clock = self.clock.lock();
            clock.is_over = true;
            clock.keeper.take()
        };
        keeper.into_iter().for_each(Waker::wake);
    }

    /// Sleeps until a time. Returns false if it has passed.
    fn sleep(&self, id: u64, until: Nanos, waker: &Waker) -> bool {
        let keeper = {
            let mut clock = self.clock.lock();
            clock.sleepers.retain(|sleeper| sleeper.id != id);
            if until <= clock.now {
                return false;
            }
            clock.sleepers.push(Sleeper { id, until, waker: waker.clone() });
            clock.keeper.take()
        };
        keeper.into_iter().for_each(Waker::wake);
        true
    }

    fn stop_sleeping(&self, id: u64) {
        self.clock.lock().sleepers.retain(|sleeper| sleeper.id != id);
    }
}

/// A worker that waits for a task: the queue's `Get`, with the clock of this world.
pub(super) struct Get {
    world: Arc<World>,
    place: Place,
    sleeper: u64,
}

impl Future for Get {
    type Output = Option<Taken<u32>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { world, place, sleeper } = self.get_mut();
        loop {
            match world.queue.poll_take(place, context.waker(), world.now()) {
                Ok(taken) => return Poll::Ready(taken),
                Err(Wait { until: None }) => {
                    world.stop_sleeping(*sleeper);
                    return Poll::Pending;
                }
                Err(Wait { until: Some(due) }) => {
                    if world.sleep(*sleeper, due, context.waker()) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl Drop for Get {
    fn drop(&mut self) {
        self.world.queue.stop_waiting(&mut self.place);
        self.world.stop_sleeping(self.sleeper);
    }
}
