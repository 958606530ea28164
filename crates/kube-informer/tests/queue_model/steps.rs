//! Single steps, each compared with the model.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kube_informer::WorkQueue;
use kube_informer::workqueue::{AddOptions, InProgress, ItemExponential, RateLimiter};
use tokio::time::Instant;

use crate::model::{Handed, Model};
use crate::{TASKS, Trace, panic_quietly};

const STEPS: usize = 400;

pub(super) async fn play(seed: u64, trace: &'static Trace) {
    let mut run = Run::new(seed, trace);
    let stops_at = run.random.usize(STEPS / 2..STEPS * 3);
    for step in 0..STEPS {
        if step == stops_at {
            run.shut_down();
        }
        run.step().await;
        if run.random.u8(..4) > 0 {
            run.settle();
        }
    }
    run.finish();
}

/// Unique delays: no two tasks are due at the same time, so the order is deterministic.
#[derive(Clone, Default)]
struct Waits(Arc<AtomicU64>);

impl Waits {
    fn make(&self, millis: Duration) -> Duration {
        millis + Duration::from_nanos(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

struct Limiter {
    waits: Waits,
    failures: ItemExponential<u32>,
    last: Arc<AtomicU64>,
}

impl RateLimiter<u32> for Limiter {
    fn when(&self, task: &u32) -> Duration {
        let wait = self.waits.make(self.failures.when(task));
        self.last.store(wait.as_nanos() as u64, Ordering::Relaxed);
        wait
    }
    fn forget(&self, task: &u32) {
        self.failures.forget(task);
    }
    fn num_requeues(&self, task: &u32) -> u32 {
        self.failures.num_requeues(task)
    }
}

/// A future that is polled by hand, when it has been woken.
struct Waiting<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    flag: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<T> Waiting<T> {
    fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self { future: Box::pin(future), flag: Arc::new(Flag(AtomicBool::new(true))) }
    }

    /// Polls it if it has been woken.
    fn poll(&mut self) -> Option<T> {
        if !self.flag.0.swap(false, Ordering::Relaxed) {
            return None;
        }
        let waker = Waker::from(self.flag.clone());
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}

struct Run {
    random: fastrand::Rng,
    queue: WorkQueue<u32>,
    model: Model,
    start: Instant,
    waits: Waits,
    /// The last delay that the limiter returned.
    limit: Arc<AtomicU64>,
    held: Vec<InProgress<u32>>,
    gets: Vec<Waiting<Option<InProgress<u32>>>>,
    drains: Vec<Waiting<()>>,
    trace: &'static Trace,
}

impl Run {
    fn new(seed: u64, trace: &'static Trace) -> Self {
        let (waits, limit) = (Waits::default(), Arc::<AtomicU64>::default());
        let base = Duration::from_millis(1);
        let failures = ItemExponential::new(base, 50 * base);
        let limiter = Limiter { waits: waits.clone(), failures, last: limit.clone() };
        Self {
            random: fastrand::Rng::with_seed(seed),
            queue: WorkQueue::with_rate_limiter(limiter),
            model: Model::default(),
            start: Instant::now(),
            waits,
            limit,
            held: vec![],
            gets: vec![],
            drains: vec![],
            trace,
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    async fn step(&mut self) {
        match self.random.u8(..100) {
            0..35 => self.add(),
            35..45 => self.pass().await,
            45..60 => self.try_get(),
            60..70 => self.get(),
            70..73 => self.give_up(),
            73..76 => {
                // The get that this wakes may be the one that is cancelled.
                self.add();
                self.give_up();
            }
            _ => self.end(),
        }
    }

    fn add(&mut self) {
        let (task, now) = (self.random.u32(..TASKS), self.now());
        let priority = if self.random.bool() { 0 } else { self.random.i32(-2..=2) };
        match self.random.u8(..10) {
            0..5 => {
                let raised = self.model.add(task, priority, now);
                self.note(format_args!(
                    "add {task} at {priority}{}",
                    if raised { ", raised" } else { "" }
                ));
                if priority == 0 && self.random.bool() {
                    self.queue.add(task);
                } else {
                    self.queue.add_with_priority(task, priority);
                }
            }
            5..8 => {
                let after = self.wait();
                self.note(format_args!("add {task} at {priority} later, after {after:?}"));
                self.model.add_later(task, priority, now, after);
                let options = AddOptions { priority, after: Some(after), ..AddOptions::default() };
                self.queue.add_with(task, options);
            }
            8 => {
                self.note(format_args!("add {task} limited"));
                self.queue.add_rate_limited(task);
                self.model.fail(task);
                self.model.add_later(task, 0, now, self.limited());
            }
            _ => {
                let after = self.wait();
                let options = AddOptions { priority, after: Some(after), rate_limited: true };
                self.queue.add_with(task, options);
                self.model.fail(task);
                let after = after.min(self.limited());
                self.note(format_args!(
                    "add {task} at {priority} limited and later, after {after:?}"
                ));
                self.model.add_later(task, priority, now, after);
            }
        }
    }

    fn wait(&mut self) -> Duration {
        match self.random.u64(..20) {
            0 => Duration::ZERO,
            millis => self.waits.make(Duration::from_millis(millis)),
        }
    }

    /// Returns the delay that the limiter has just returned.
    fn limited(&self) -> Duration {
        Duration::from_nanos(self.limit.load(Ordering::Relaxed))
    }

    async fn pass(&mut self) {
        let time = Duration::from_millis(self.random.u64(1..10));
        self.note(format_args!("pass {time:?}"));
        tokio::time::advance(time).await;
    }

    fn try_get(&mut self) {
        let got = self.queue.try_get();
        let handed = self.model.take(self.now());
        assert_eq!(got.is_some(), handed.is_some(), "a task is ready, or none is");
        if let (Some(got), Some(handed)) = (got, handed) {
            self.take(got, &handed);
        }
    }

    fn take(&mut self, got: InProgress<u32>, handed: &Handed) {
        let oldest = if handed.is_oldest { ", the oldest" } else { "" };
        self.note(format_args!("got {} at {}{oldest}", *got, got.priority()));
        assert_eq!((*got, got.priority()), (handed.task, handed.priority), "got, and expected");
        self.held.push(got);
    }

    fn get(&mut self) {
        let queue = self.queue.clone();
        self.note(format_args!("waits, beside {} others", self.gets.len()));
        self.gets.push(Waiting::new(async move { queue.get().await }));
    }

    /// Cancels a get, which may have been woken but not polled.
    fn give_up(&mut self) {
        if !self.gets.is_empty() {
            let at = self.random.usize(..self.gets.len());
            let get = self.gets.swap_remove(at);
            let woken = get.flag.0.load(Ordering::Relaxed);
            self.note(format_args!("a get is given up, woken={woken}"));
        }
    }

    /// Ends a task in progress, in one of all possible ways.
    fn end(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.random.usize(..self.held.len());
        let held = self.held.swap_remove(at);
        let (task, priority, now) = (*held, held.priority(), self.now());
        let again = match self.random.u8(..10) {
            0..5 => {
                self.note(format_args!("done {task}"));
                held.done();
                self.model.forget(task);
                None
            }
            5 => {
                let after = self.wait();
                self.note(format_args!("again {task} after {after:?}"));
                held.again_after(after);
                self.model.forget(task);
                Some(after)
            }
            how => {
                match how {
                    6 => held.retry(),
                    7 => drop(held),
                    _ => self.panic_with(held),
                }
                self.note(format_args!(
                    "{} {task}",
                    ["retry", "drop", "panic", "panic"][how as usize - 6]
                ));
                self.model.fail(task);
                Some(self.limited())
            }
        };
        if let Some(after) = again {
            self.model.add_later(task, priority, now, after);
        }
        self.model.finish(task, now);
    }

    #[allow(clippy::unused_self, reason = "one of several ways to end a task")]
    fn panic_with(&self, held: InProgress<u32>) {
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _held = held;
            panic_quietly();
        }));
        assert!(caught.is_err());
    }

    fn shut_down(&mut self) {
        self.note("shut down");
        self.model.come_due(self.now());
        self.model.shut_down();
        if self.random.bool() {
            self.queue.shut_down();
        }
        for _ in 0..2 {
            let queue = self.queue.clone();
            let mut drain = Waiting::new(async move { queue.drain().await });
            let is_over = drain.poll().is_some();
            assert_eq!(is_over, self.model.is_drained());
            if !is_over {
                self.drains.push(drain);
            }
        }
    }

    /// Polls all woken futures until none is left, and compares the numbers.
    fn settle(&mut self) {
        // A timer may be late by less than a millisecond; a check is not.
        if !self.gets.is_empty() || self.random.bool() {
            self.check();
        }
        while let Some(at) = self.gets.iter().position(|get| get.flag.0.load(Ordering::Relaxed)) {
            let Some(got) = self.gets[at].poll() else { continue };
            self.gets.swap_remove(at);
            let handed = self.model.take(self.now());
            match (got, handed) {
                (Some(got), Some(handed)) => self.take(got, &handed),
                (None, None) if self.model.is_over() => self.note("a get has ended"),
                (got, _) => panic!("{:?} is not what the model hands out", got.as_deref()),
            }
        }
        let (ready, ..) = self.model.counts();
        let ends = ready > 0 || self.model.is_over();
        assert!(
            self.gets.is_empty() || !ends,
            "{ready} are ready, and those who wait are not woken"
        );
        let is_drained = self.model.is_drained();
        for drain in &mut self.drains {
            assert_eq!(drain.poll().is_some(), is_drained, "drained, or not");
        }
        if is_drained && !self.drains.is_empty() {
            self.drains.clear();
            self.note("drained");
        }
    }

    fn check(&mut self) {
        self.model.come_due(self.now());
        let status = self.queue.status();
        let (ready, later, running) = self.model.counts();
        assert_eq!((status.ready, status.delayed, status.running), (ready, later, running));
        assert_eq!((status.adds, status.retries), (self.model.adds, self.model.retries));
        assert_eq!(status.is_shut_down, self.model.shut_down);
        assert_eq!(status.longest_waiting.is_some(), ready > 0);
        assert_eq!(status.longest_running.is_some(), running > 0);
        for task in 0..TASKS {
            assert_eq!(self.queue.num_requeues(&task), self.model.failures(task), "{task}");
        }
    }

    /// Ends all tasks in progress and takes the rest.
    fn finish(&mut self) {
        if !self.model.shut_down {
            self.shut_down();
        }
        loop {
            self.settle();
            if self.held.is_empty() {
                self.try_get();
            }
            if self.held.is_empty() {
                break;
            }
            self.end();
        }
        assert!(self.model.is_drained() && self.drains.is_empty() && self.gets.is_empty());
        self.queue.add(0);
        self.queue.add_after(1, Duration::ZERO);
        assert_eq!((self.queue.len(), self.queue.status().delayed), (0, 0), "added after the end");
    }

    fn note(&self, line: impl std::fmt::Display) {
        self.trace.note(format!("{:>4} ms  {line}", self.now().as_millis()));
    }
}
