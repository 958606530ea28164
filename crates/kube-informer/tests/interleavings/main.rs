//! The work queue under a scheduler that chooses the next thread at every lock.
//!
//! `src/workqueue/state.rs` and `shared.rs` are compiled once more, with shuttle's lock in place of
//! `parking_lot`'s. Workers, producers and the clock are tasks of shuttle, which switches between
//! them at random, and by probabilistic concurrency testing: a few changes of priority at random
//! points, which finds what needs a rare order of few steps.
//!
//! Time passes only as far as a worker sleeps. A wake-up that is lost, or a task that is due while all
//! workers wait and none of them looks at the clock, leaves all tasks waiting for each other, and
//! shuttle says so.
//!
//! A failure prints its schedule, which `shuttle::replay` repeats. `QUEUE_INTERLEAVINGS=20000` tries
//! that many of each kind for every scene, and `QUEUE_INTERLEAVINGS_SEED=7` others.

#[path = "../../src/workqueue/shared.rs"]
#[allow(dead_code, reason = "`try_get` and the like are for the queue around it")]
mod shared;
#[path = "../../src/workqueue/state.rs"]
#[allow(dead_code, reason = "the numbers of a status are for the queue around it")]
mod state;
mod world;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

use world::{Ending, World};

/// The lock of the queue: shuttle's, called like `parking_lot`'s.
mod sync {
    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("nothing panics with the lock")
        }
    }
}

/// Schedules of each kind for each scene.
const ITERATIONS: usize = 300;

/// Number of changes of priority in a schedule. The known ways to lose a wake-up need two.
const DEPTH: usize = 3;

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// Runs a scene under many schedules.
fn explore(scene: fn(&Arc<World>)) {
    let iterations = setting("QUEUE_INTERLEAVINGS").map_or(ITERATIONS, |count| count as usize);
    let seed = setting("QUEUE_INTERLEAVINGS_SEED").unwrap_or(0);
    let play = move || {
        let world = World::new();
        let clock = spawn(world.clone().keep_time());
        scene(&world);
        world.stop_time();
        block_on(clock).expect("the clock ends");
        world.check_idle();
    };
    let random = RandomScheduler::new_from_seed(seed, iterations);
    Runner::new(random, Config::new()).run(play);
    let few_changes = PctScheduler::new_from_seed(seed, DEPTH, iterations);
    Runner::new(few_changes, Config::new()).run(play);
}

/// Takes one task and keeps it until this many have been taken: a worker that has one takes no other, so each
/// of them needs its own wake-up.
async fn take_one(world: Arc<World>, all: usize) {
    let taken = world.get().await.expect("not shut down");
    world.start(&taken);
    world.until(move |ledger| ledger.starts >= all).await;
    world.end(&taken, Ending::Done);
}

/// Works until the queue is shut down. The scheduler may switch while a worker has a task.
async fn work(world: Arc<World>) {
    while let Some(taken) = world.get().await {
        world.start(&taken);
        yield_now().await;
        world.end(&taken, Ending::Done);
    }
}

/// Fails at the first attempt of each task, which is due again one tick later.
async fn work_with_failures(world: Arc<World>) {
    while let Some(taken) = world.get().await {
        let first = world.start(&taken);
        yield_now().await;
        world.end(&taken, if first { Ending::Retry(1) } else { Ending::Done });
    }
}

/// Asks for a task and cancels if there is none, repeatedly.
async fn come_and_go(world: Arc<World>, times: usize) {
    for _ in 0..times {
        let mut get = world.get();
        let taken = poll_fn(|context| Poll::Ready(Pin::new(&mut get).poll(context))).await;
        yield_now().await;
        drop(get);
        if let Poll::Ready(Some(taken)) = taken {
            world.start(&taken);
            world.end(&taken, Ending::Done);
        }
    }
}

/// Waits until tasks have ended.
fn join(tasks: Vec<shuttle::future::JoinHandle<()>>) {
    for task in tasks {
        block_on(task).expect("no task of a scene panics");
    }
}

/// Waits until threads have ended.
fn end<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().expect("no thread of a scene panics");
    }
}

#[test]
fn each_add_wakes_a_worker_that_waits() {
    explore(|world| {
        let workers = (0..3).map(|_| spawn(take_one(world.clone(), 3))).collect();
        let producer = |tasks: &'static [u32]| {
            let world = world.clone();
            thread::spawn(move || tasks.iter().for_each(|task| world.add(*task)))
        };
        end([producer(&[0, 1]), producer(&[2])]);
        join(workers);
    });
}

#[test]
fn a_worker_that_goes_away_passes_on_what_it_was_woken_for() {
    explore(|world| {
        let worker = spawn(work(world.clone()));
        let guests = (0..2).map(|_| spawn(come_and_go(world.clone(), 2))).collect();
        let producer = {
            let world = world.clone();
            thread::spawn(move || (0..3).for_each(|task| world.add(task)))
        };
        end([producer]);
        block_on(world.until_seen());
        join(guests);
        world.shut_down();
        join(vec![worker]);
    });
}

#[test]
fn tasks_that_come_due_together_wake_as_many_workers() {
    explore(|world| {
        let workers = (0..3).map(|_| spawn(take_one(world.clone(), 3))).collect();
        let producer = |task, after| {
            let world = world.clone();
            thread::spawn(move || world.add_later(task, after))
        };
        end([producer(0, 5), producer(1, 5), producer(2, 4)]);
        join(workers);
    });
}

#[test]
fn some_worker_that_waits_always_looks_at_the_clock() {
    explore(|world| {
        let worker = spawn(work(world.clone()));
        let guests = (0..2).map(|_| spawn(come_and_go(world.clone(), 2))).collect();
        world.add_for_never(2);
        // Each may be due earlier than the current sleep; the third is the first task again,
        // earlier.
        let producers = [(0, 9), (1, 3), (0, 6)].map(|(task, after)| {
            let world = world.clone();
            thread::spawn(move || world.add_later(task, after))
        });
        end(producers);
        block_on(world.until_seen());
        join(guests);
        world.shut_down();
        join(vec![worker]);
    });
}

#[test]
fn a_look_or_an_add_that_finds_tasks_due_wakes_for_them() {
    explore(|world| {
        let workers = (0..2).map(|_| spawn(take_one(world.clone(), 2))).collect();
        world.add_later(0, 5);
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                world.pass(5); // no sleeper is woken
                if thread_rng().gen_bool(0.5) {
                    let _ = world.ready();
                }
                world.add(1);
            })
        };
        end([other]);
        join(workers);
    });
}

#[test]
fn wq3_wq4_a_task_has_one_worker_and_loses_no_add() {
    explore(|world| {
        let workers = (0..3).map(|_| spawn(work_with_failures(world.clone()))).collect();
        let producer = || {
            let world = world.clone();
            thread::spawn(move || [0, 1, 0].into_iter().for_each(|task| world.add(task)))
        };
        end([producer(), producer()]);
        block_on(world.until_seen());
        // Nothing is due any more once every task has run again after its failure.
        block_on(world.until(|ledger| ledger.retries_due == 0));
        world.shut_down();
        join(workers);
    });
}

#[test]
fn finishing_a_task_wakes_a_worker_for_a_ready_one() {
    explore(|world| {
        // Each of these works once, so none of them finds the task that it has finished itself.
        let worker = |world: Arc<World>| async move {
            let taken = world.get().await.expect("not shut down");
            world.start(&taken);
            let run = world.starts();
            yield_now().await;
            world.end(&taken, if run == 2 { Ending::Retry(0) } else { Ending::Done });
        };
        let workers = (0..3).map(|_| spawn(worker(world.clone()))).collect();
        world.add(0);
        block_on(world.until(|ledger| ledger.starts == 1));
        world.add(0);
        join(workers);
    });
}

#[test]
fn wq8_a_drain_ends_when_nothing_is_left_and_not_before() {
    explore(|world| {
        world.add(0);
        world.add(1);
        world.add_later(2, 4); // may be forgotten
        let workers = (0..2).map(|_| spawn(work_with_failures(world.clone()))).collect();
        let late = {
            let world = world.clone();
            thread::spawn(move || world.try_add(0))
        };
        let drains = (0..2).map(|_| spawn(world.clone().drain(&[0, 1]))).collect();
        join(drains);
        join(workers);
        end([late]);
    });
}

#[test]
fn wq10_a_drain_ends_if_the_worker_of_a_readded_task_is_gone() {
    explore(|world| {
        world.add(0);
        let leaves = spawn({
            let world = world.clone();
            async move {
                let taken = world.get().await.expect("it was added");
                world.start(&taken);
                yield_now().await;
                world.end(&taken, Ending::Retry(1));
            }
        });
        block_on(world.until(|ledger| ledger.starts == 1));
        let workers = (0..2).map(|_| spawn(work(world.clone()))).collect();
        world.add(0);
        block_on(world.clone().drain(&[0]));
        join(workers);
        join(vec![leaves]);
    });
}

#[test]
fn wq7_a_shutdown_ends_all_waiting() {
    explore(|world| {
        let workers = (0..3).map(|_| spawn(work(world.clone()))).collect();
        let guest = spawn(come_and_go(world.clone(), 2));
        world.add_later(0, 4);
        let stop = {
            let world = world.clone();
            thread::spawn(move || world.shut_down())
        };
        world.try_add(1);
        end([stop]);
        join(workers);
        join(vec![guest]);
    });
}

#[test]
fn whatever_producers_and_workers_do_every_add_is_seen() {
    explore(|world| {
        let workers = (0..2).map(|_| spawn(work_with_failures(world.clone()))).collect();
        let guest = spawn(come_and_go(world.clone(), 3));
        let producer = || {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..3 {
                    let task = thread_rng().gen_range(0..3);
                    match thread_rng().gen_range(0..4) {
                        0 | 1 => world.add(task),
                        2 => world.add_later(task, thread_rng().gen_range(0..5)),
                        _ => world.pass(thread_rng().gen_range(0..3)),
                    }
                }
            })
        };
        end([producer(), producer()]);
        block_on(world.until_seen());
        join(vec![guest]);
        block_on(world.clone().drain(&[0, 1, 2]));
        join(workers);
    });
}
