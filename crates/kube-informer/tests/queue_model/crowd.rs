//! Many concurrent tasks of the runtime.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::WorkQueue;
use kube_informer::workqueue::{AddOptions, InProgress, ItemExponential, LOW_PRIORITY};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::{ON_PURPOSE, TASKS, Trace, panic_quietly};

const MS: Duration = Duration::from_millis(1);

/// The longest delay after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Longer than the whole run takes.
const LONG: Duration = Duration::from_secs(3600);

struct Crowd {
    queue: WorkQueue<u32>,
    start: Instant,
    ledger: Mutex<Ledger>,
    trace: &'static Trace,
}

/// Every task has a number that each add increments; a run of the task reads the number.
#[derive(Default)]
struct Ledger {
    written: [u64; TASKS as usize],
    seen: [u64; TASKS as usize],
    running: [bool; TASKS as usize],
    /// Whether the task must run again, because its last run said so.
    owed: [bool; TASKS as usize],
    /// The times from which on it may be handed out.
    causes: [Vec<Duration>; TASKS as usize],
    /// Whether failures have ended.
    is_calm: bool,
}

#[derive(Debug)]
enum Outcome {
    Done,
    Retry,
    Again(Duration),
    Drop,
    Panic,
}

pub(super) async fn play(seed: u64, trace: &'static Trace) {
    let mut random = fastrand::Rng::with_seed(seed);
    let limiter = ItemExponential::new(MS, LONGEST_WAIT);
    let queue = WorkQueue::with_rate_limiter(limiter);
    let ledger = Mutex::default();
    let crowd = Arc::new(Crowd { queue, start: Instant::now(), ledger, trace });
    let mut workers = JoinSet::new();
    for _ in 0..random.usize(1..6) {
        workers.spawn(crowd.clone().hire(random.fork()));
    }
    let mut producers = JoinSet::new();
    for _ in 0..random.usize(1..5) {
        producers.spawn(crowd.clone().produce(random.fork()));
    }
    let guest = tokio::spawn(crowd.clone().come_and_go(random.fork()));
    if random.u8(..4) == 0 {
        sleep(random.u32(1..60) * MS).await;
        trace.note("shut down early".to_owned());
        crowd.drain().await;
        producers.join_all().await;
    } else {
        producers.join_all().await;
        crowd.ledger().is_calm = true;
        crowd.become_quiet().await;
        crowd.drain().await;
    }
    guest.await.expect("a guest ends");
    timeout(LONG, workers.join_all()).await.expect("a shutdown ends all workers");
    crowd.queue.add(0);
    let status = crowd.queue.status();
    assert_eq!((status.ready, status.delayed, status.running), (0, 0, 0));
}

impl Crowd {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// Returns the delay of a task that fails now.
    fn next_wait(&self, task: u32) -> Duration {
        LONGEST_WAIT.min(MS * 2_u32.saturating_pow(self.queue.num_requeues(&task)))
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Adds tasks in every way for a while.
    async fn produce(self: Arc<Self>, mut random: fastrand::Rng) {
        for _ in 0..random.usize(5..60) {
            let task = random.u32(..TASKS);
            let after = random.u32(..30) * MS;
            let priority = [0, 0, 1, LOW_PRIORITY][random.usize(..4)];
            let way = random.u8(..4);
            {
                let mut ledger = self.ledger();
                ledger.written[task as usize] += 1;
                let wait = match way {
                    0 | 1 => Duration::ZERO,
                    2 => after,
                    _ => self.next_wait(task),
                };
                ledger.causes[task as usize].push(self.now() + wait);
            }
            match way {
                0 => self.queue.add(task),
                1 => self.queue.add_with_priority(task, priority),
                2 => self.queue.add_with(
                    task,
                    AddOptions { priority, after: Some(after), rate_limited: false },
                ),
                _ => self.queue.add_rate_limited(task),
            }
            if random.bool() {
                sleep(random.u32(..5) * MS).await;
            }
        }
    }

    /// Replaces a worker that panics, until the queue is shut down.
    async fn hire(self: Arc<Self>, mut random: fastrand::Rng) {
        while let Err(panic) = tokio::spawn(self.clone().work(random.fork())).await {
            expect_purpose(panic);
        }
    }

    async fn work(self: Arc<Self>, mut random: fastrand::Rng) {
        while let Some(task) = self.queue.get().await {
            self.begin(*task);
            self.run(task, &mut random).await;
        }
    }

    /// Waits for a task for a moment, repeatedly.
    async fn come_and_go(self: Arc<Self>, mut random: fastrand::Rng) {
        for _ in 0..20 {
            match timeout(random.u32(..3) * MS, self.queue.get()).await {
                Ok(Some(task)) => {
                    self.begin(*task);
                    let run = tokio::spawn({
                        let (crowd, mut random) = (self.clone(), random.fork());
                        async move { crowd.run(task, &mut random).await }
                    });
                    run.await.unwrap_or_else(expect_purpose);
                }
                Ok(None) => return,
                Err(_) => self.trace.note("a get is given up".to_owned()),
            }
            sleep(random.u32(..5) * MS).await;
        }
    }

    async fn run(&self, got: InProgress<u32>, random: &mut fastrand::Rng) {
        if random.bool() {
            sleep(random.u32(..10) * MS).await;
        }
        let outcome = self.end(*got, random);
        match outcome {
            Outcome::Done => got.done(),
            Outcome::Retry => got.retry(),
            Outcome::Again(after) => got.again_after(after),
            Outcome::Drop => drop(got),
            Outcome::Panic => panic_quietly(),
        }
    }

    fn begin(&self, task: u32) {
        let (at, now) = (task as usize, self.now());
        self.trace.note(format!("{now:?} {task} starts"));
        let mut ledger = self.ledger();
        assert!(!ledger.running[at], "{task} is with two workers");
        ledger.running[at] = true;
        ledger.seen[at] = ledger.written[at];
        ledger.owed[at] = false;
        let causes = ledger.causes[at].len();
        ledger.causes[at].retain(|cause| *cause > now);
        assert!(ledger.causes[at].len() < causes, "{task} is handed out without a reason");
    }

    fn end(&self, task: u32, random: &mut fastrand::Rng) -> Outcome {
        let (at, now) = (task as usize, self.now());
        let mut ledger = self.ledger();
        let how = if ledger.is_calm { 0 } else { random.u8(..10) };
        let after = random.u32(..20) * MS;
        let outcome = match how {
            0..6 => Outcome::Done,
            6 => Outcome::Retry,
            7 => Outcome::Again(after),
            8 => Outcome::Drop,
            _ => Outcome::Panic,
        };
        self.trace.note(format!("{now:?} {task} ends: {outcome:?}"));
        ledger.running[at] = false;
        match outcome {
            Outcome::Done => {}
            Outcome::Again(after) => {
                ledger.owed[at] = true;
                ledger.causes[at].push(now + after);
            }
            Outcome::Retry | Outcome::Drop | Outcome::Panic => {
                ledger.owed[at] = true;
                ledger.causes[at].push(now + self.next_wait(task));
            }
        }
        outcome
    }

    /// Waits until every add has been seen, and every required rerun has happened.
    async fn become_quiet(&self) {
        let quiet = async {
            let is_quiet = |ledger: &Ledger| {
                ledger.seen == ledger.written && ledger.owed == [false; TASKS as usize]
            };
            while !is_quiet(&self.ledger()) {
                sleep(MS).await;
            }
        };
        timeout(LONG, quiet).await.expect("no add is lost");
        self.trace.note("quiet".to_owned());
    }

    async fn drain(&self) {
        timeout(LONG, self.queue.drain()).await.expect("a drain ends");
        let ledger = self.ledger();
        assert_eq!(ledger.running, [false; TASKS as usize], "drained while a worker has a task");
        assert!(self.queue.is_empty(), "drained while a task is ready");
        self.trace.note("drained".to_owned());
    }
}

/// Asserts that the panic was intentional.
fn expect_purpose(error: JoinError) {
    let panic = error.into_panic();
    if panic.downcast_ref::<&str>() != Some(&ON_PURPOSE) {
        resume_unwind(panic);
    }
}
