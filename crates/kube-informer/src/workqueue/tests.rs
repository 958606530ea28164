//! The rules of client-go's work queue (WQ) and of controller-runtime's priority queue (PQ).

mod delayed;
mod limits;
mod order;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::*;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::with_rate_limiter(ItemExponential::new(MS, Duration::from_secs(1)))
}

const MS: Duration = Duration::from_millis(1);

/// Takes a task that must be ready.
fn take<T: Task>(queue: &WorkQueue<T>) -> InProgress<T> {
    queue.try_get().expect("a task is ready")
}

/// Takes and finishes everything that is ready.
fn drained<T: Task>(queue: &WorkQueue<T>) -> Vec<T> {
    let next = || queue.try_get().map(|task| (task.clone(), task.done()).0);
    std::iter::from_fn(next).collect()
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn wq1_wq2_wq6_a_task_is_queued_once_however_often_it_is_added() {
    let queue = queue();
    for task in ["a", "b", "a", "a"] {
        queue.add(task);
    }
    assert_eq!((queue.len(), queue.status().adds), (2, 2));
    assert_eq!(drained(&queue), ["a", "b"]);
    assert!(queue.is_empty());
}

#[test]
fn wq3_a_task_is_with_one_worker_at_a_time() {
    let queue = queue();
    queue.add("a");
    let first = take(&queue);
    queue.add("a");
    assert!(queue.try_get().is_none());
    assert_eq!((queue.len(), queue.status().running), (0, 1));
    first.done();
    take(&queue).done();
}

#[test]
fn wq4_adds_while_a_worker_has_a_task_are_one_more_run() {
    let queue = queue();
    queue.add("a");
    let first = take(&queue);
    (0..3).for_each(|_| queue.add("a"));
    first.done();
    assert_eq!(drained(&queue), ["a"]);
    assert_eq!(queue.status().adds, 2);
}

/// A task that queries its queue when it is dropped.
#[derive(Clone)]
struct Asks(u8, Arc<OnceLock<WorkQueue<Asks>>>);

impl Drop for Asks {
    fn drop(&mut self) {
        let _ = self.1.get().map(WorkQueue::len);
    }
}

impl PartialEq for Asks {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Asks {}

impl Hash for Asks {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// A regression: a task that the queue does not keep was dropped with its lock held.
#[test]
fn a_task_may_use_the_queue_when_it_is_dropped() {
    let queue = WorkQueue::with_rate_limiter(ItemExponential::new(MS, MS));
    let task = Asks(1, Arc::default());
    task.1.set(queue.clone()).expect("it is set once");
    queue.add(task.clone());
    queue.add(task.clone());
    queue.add_after(task.clone(), MS);
    queue.add_after(task.clone(), MS);
    take(&queue).done();
    queue.shut_down();
    queue.add(task.clone());
    queue.add_after(task.clone(), MS);
    assert_eq!(queue.status().adds, 1);
}

#[tokio::test]
async fn wq7_wq10_after_a_shutdown_nothing_is_added_and_what_is_queued_is_handed_out() {
    let queue = queue();
    queue.add("queued");
    queue.add("running");
    let queued = take(&queue);
    let running = take(&queue);
    queue.add("running");
    queue.shut_down();
    queue.add("late");
    queue.add("queued"); // a worker has it: lost all the same
    queued.done();
    running.done();
    let again = queue.get().await.expect("it was added again before the shutdown");
    assert_eq!(*again, "running");
    again.retry(); // not any more
    assert!(queue.get().await.is_none());
    assert!(queue.status().is_shut_down);
}

#[tokio::test]
async fn wq10_workers_stay_for_a_task_that_was_added_again_although_its_worker_does_not_come_back()
{
    let queue = queue();
    queue.add("a");
    let running = take(&queue);
    queue.add("a");
    let (mut first, mut second) = (pin!(queue.get()), pin!(queue.get()));
    assert!(poll_once(first.as_mut()).is_pending());
    let mut drain = pin!(queue.drain());
    assert!(poll_once(drain.as_mut()).is_pending());
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    drop(running);
    first.await.expect("it was added again before the shutdown").done();
    assert!(second.await.is_none());
    drain.await;
}

#[tokio::test]
async fn wq7_a_shutdown_wakes_every_worker() {
    let queue = queue();
    let worker = |queue: WorkQueue<&'static str>| async move { queue.get().await.is_none() };
    let workers: Vec<_> = (0..3).map(|_| tokio::spawn(worker(queue.clone()))).collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
}

#[tokio::test]
async fn wq8_a_drain_waits_for_what_runs_and_for_what_is_queued() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let first = take(&queue);
    queue.add("a");
    let mut drain = pin!(queue.drain());
    assert!(poll_once(drain.as_mut()).is_pending());
    first.done();
    for _ in 0..2 {
        assert!(poll_once(drain.as_mut()).is_pending());
        take(&queue).done();
    }
    drain.await;
}

#[tokio::test]
async fn wq8_a_drain_of_an_idle_queue_ends_at_once() {
    queue().drain().await;
}

#[tokio::test]
async fn wq9_a_drain_that_is_given_up_leaves_the_queue_shut_down() {
    let queue = queue();
    queue.add("a");
    let task = take(&queue);
    {
        let mut drain = pin!(queue.drain());
        assert!(poll_once(drain.as_mut()).is_pending());
    }
    task.done();
    assert!(queue.get().await.is_none());
}

#[test]
fn wq12_what_is_done_is_let_go() {
    let (queue, task) = (WorkQueue::new(), Arc::new("a"));
    queue.add(task.clone());
    take(&queue).done();
    assert_eq!(Arc::strong_count(&task), 1);
    queue.add_after(task.clone(), MS);
    queue.shut_down();
    assert_eq!(Arc::strong_count(&task), 1);
}

#[test]
fn a_task_whose_worker_panics_is_retried() {
    let queue = queue();
    queue.add("a");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _task = take(&queue);
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    let status = queue.status();
    assert_eq!((status.running, status.delayed, queue.num_requeues(&"a")), (0, 1, 1));
}

#[test]
fn a_rate_limiter_that_panics_neither_loses_nor_holds_a_task() {
    struct Panics;
    impl RateLimiter<&'static str> for Panics {
        fn when(&self, _: &&'static str) -> Duration {
            panic!("on purpose");
        }
        fn forget(&self, _: &&'static str) {
            panic!("on purpose");
        }
        fn num_requeues(&self, _: &&'static str) -> u32 {
            0
        }
    }
    let queue = WorkQueue::with_rate_limiter(Panics);
    queue.add("a");
    take(&queue).done();
    assert_eq!(queue.status().running, 0);
    queue.add("a");
    drop(take(&queue));
    assert_eq!((queue.status().running, queue.status().delayed), (0, 1));
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);
impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}
impl Woken {
    fn count(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[tokio::test]
async fn wq13_each_task_wakes_one_worker() {
    let queue = queue();
    let woken: [Arc<Woken>; 3] = Default::default();
    let mut gets: Vec<_> = woken.iter().map(|_| Box::pin(queue.get())).collect();
    for (get, woken) in gets.iter_mut().zip(&woken) {
        let waker = Waker::from(woken.clone());
        assert!(get.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    queue.add("a");
    assert_eq!(woken.each_ref().map(|woken| woken.count()), [1, 0, 0]);
    queue.add("b");
    assert_eq!(woken.each_ref().map(|woken| woken.count()), [1, 1, 0]);
}

#[tokio::test]
async fn a_worker_that_is_cancelled_after_it_was_woken_passes_the_task_on() {
    let queue = queue();
    let mut first = Box::pin(queue.get());
    assert!(poll_once(first.as_mut()).is_pending());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut second = Box::pin(queue.get());
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    queue.add("a");
    assert_eq!(woken.count(), 0);
    drop(first);
    assert_eq!(woken.count(), 1);
    assert_eq!(*second.await.unwrap(), "a");
}

#[test]
fn an_empty_queue_gives_the_memory_of_a_burst_back() {
    let queue = WorkQueue::new();
    (0..100_000).for_each(|task| queue.add(task));
    assert_eq!(drained(&queue).len(), 100_000);
    assert!(queue.0.shared.look(0, state::State::capacity) <= 1024);
    queue.add(1);
    assert_eq!(drained(&queue), [1]);
}
