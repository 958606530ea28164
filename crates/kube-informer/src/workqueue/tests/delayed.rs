//! Tasks that are due later.

use tokio::time::{Instant, advance};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Waits for a task, and returns it with the time that has passed.
async fn next(queue: &WorkQueue<&'static str>, start: Instant) -> (&'static str, u128) {
    let task = queue.get().await.expect("not shut down");
    let next = (*task, start.elapsed().as_millis());
    task.done();
    next
}

#[tokio::test(start_paused = true)]
async fn wq20_a_delayed_task_is_ready_when_its_time_has_come_and_at_once_without_one() {
    let (queue, start) = (queue(), Instant::now());
    queue.add_after("now", Duration::ZERO);
    assert_eq!(queue.len(), 1);
    queue.add_after("later", 50 * MS);
    assert_eq!((queue.len(), queue.status().delayed), (1, 1));
    assert_eq!(next(&queue, start).await, ("now", 0));
    assert_eq!(next(&queue, start).await, ("later", 50));
    assert_eq!(queue.status().delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn wq21_pq1_the_earliest_time_wins_in_either_order() {
    for times in [[50, 30], [30, 50]] {
        let (queue, start) = (queue(), Instant::now());
        for time in times {
            queue.add_after("a", time * MS);
        }
        assert_eq!(next(&queue, start).await, ("a", 30));
        assert_eq!((queue.len(), queue.status().delayed), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn wq22_an_add_does_not_cancel_what_is_due_later() {
    let (queue, start) = (queue(), Instant::now());
    queue.add_after("a", SECOND);
    queue.add("a");
    assert_eq!(next(&queue, start).await, ("a", 0));
    assert_eq!(next(&queue, start).await, ("a", 1000));
}

#[tokio::test(start_paused = true)]
async fn wq23_pq3_tasks_come_in_the_order_in_which_they_are_due() {
    let (queue, start) = (queue(), Instant::now());
    for (task, time) in [("c", 3), ("a", 1), ("b", 2)] {
        queue.add_after(task, time * SECOND);
    }
    advance(5 * SECOND).await;
    queue.add("last");
    assert_eq!(queue.len(), 4);
    assert_eq!(drained(&queue), ["a", "b", "c", "last"]);
    assert_eq!(start.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn wq23_a_worker_that_waits_wakes_for_a_task_that_is_due_earlier() {
    let (queue, start) = (queue(), Instant::now());
    queue.add_after("late", 10 * SECOND);
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { next(&queue, start).await }
    });
    tokio::task::yield_now().await;
    queue.add_after("early", SECOND);
    assert_eq!(worker.await.unwrap(), ("early", 1000));
}

#[tokio::test(start_paused = true)]
async fn when_the_worker_that_looks_at_the_clock_leaves_another_one_does() {
    let (queue, start) = (queue(), Instant::now());
    let spawn = || {
        let queue = queue.clone();
        tokio::spawn(async move { next(&queue, start).await })
    };
    let (first, second) = (spawn(), spawn());
    tokio::task::yield_now().await;
    queue.add_after("a", SECOND);
    queue.add_after("b", 2 * SECOND);
    tokio::task::yield_now().await;
    // Whichever of the two it is, the other one gets the task.
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(second.await.unwrap(), ("a", 1000));
    assert_eq!(next(&queue, start).await, ("b", 2000));
}

#[tokio::test(start_paused = true)]
async fn several_that_are_due_at_once_wake_as_many_workers() {
    let (queue, start) = (queue(), Instant::now());
    let worker = |queue: WorkQueue<&'static str>| async move {
        let task = queue.get().await.unwrap();
        (task, start.elapsed())
    };
    let workers: Vec<_> = (0..3).map(|_| tokio::spawn(worker(queue.clone()))).collect();
    tokio::task::yield_now().await;
    for task in ["a", "b", "c"] {
        queue.add_after(task, SECOND);
    }
    for worker in workers {
        let (task, at) = worker.await.unwrap();
        assert_eq!(at, SECOND);
        task.done();
    }
}

#[tokio::test(start_paused = true)]
async fn wq26_wq27_a_shutdown_forgets_what_is_due_later_and_ends_waiting_at_once() {
    let (queue, start) = (queue(), Instant::now());
    queue.add_after("a", SECOND);
    let mut get = pin!(queue.get());
    assert!(poll_once(get.as_mut()).is_pending());
    queue.shut_down();
    queue.add_after("b", SECOND);
    assert!(get.await.is_none());
    queue.drain().await;
    assert_eq!((start.elapsed(), queue.status().delayed), (Duration::ZERO, 0));
}

#[tokio::test(start_paused = true)]
async fn wq26_what_is_due_at_a_shutdown_is_handed_out_although_no_worker_has_noticed() {
    let queue = queue();
    queue.add_after("due", SECOND);
    queue.add_after("not due", 3 * SECOND);
    advance(2 * SECOND).await;
    queue.shut_down();
    assert_eq!(drained(&queue), ["due"]);
}

#[tokio::test(start_paused = true)]
async fn wq23_what_came_due_while_workers_were_busy_comes_before_what_is_added_after_that() {
    let queue = queue();
    queue.add("running");
    let running = take(&queue);
    queue.add_after("first", SECOND);
    advance(2 * SECOND).await;
    queue.add_after("second", Duration::ZERO);
    assert_eq!(drained(&queue), ["first", "second"]);

    queue.add_after("first", SECOND);
    advance(2 * SECOND).await;
    running.again_after(Duration::ZERO);
    assert_eq!(drained(&queue), ["first", "running"]);
}

#[tokio::test(start_paused = true)]
async fn wq24_times_further_away_than_a_timer_goes_do_no_harm() {
    let (queue, start) = (queue(), Instant::now());
    queue.add_after("never", Duration::MAX);
    queue.add_after("in a century", 36_500 * 24 * 3600 * SECOND);
    queue.add_after("soon", SECOND);
    assert_eq!(next(&queue, start).await, ("soon", 1000));
    assert_eq!(queue.status().delayed, 2);
}

#[test]
fn wq28_every_delayed_add_counts_as_a_retry() {
    let queue = queue();
    queue.add_after("a", Duration::ZERO);
    queue.add_after("b", SECOND);
    queue.add_rate_limited("b");
    queue.add("c");
    assert_eq!((queue.status().retries, queue.status().adds), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_to_be_done_again_after_a_time_is() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("a");
    take(&queue).again_after(SECOND);
    assert_eq!((queue.len(), queue.status().running), (0, 0));
    assert_eq!(next(&queue, start).await, ("a", 1000));
}

#[tokio::test(start_paused = true)]
async fn status_says_what_has_waited_and_run_for_longest() {
    let queue = queue().name("pods");
    queue.add("a");
    advance(SECOND).await;
    let running = take(&queue);
    queue.add("b");
    advance(2 * SECOND).await;
    let status = queue.status();
    assert_eq!((&*status.name, status.ready, status.running), ("pods", 1, 1));
    assert_eq!(status.longest_running, Some(("a", 2 * SECOND)));
    assert_eq!(status.longest_waiting, Some(2 * SECOND));
    running.done();
    assert_eq!(queue.status().longest_running, None);
}

#[tokio::test(start_paused = true)]
async fn a_million_delayed_tasks_come_in_their_order() {
    const TASKS: u64 = 1_000_000;
    let queue = WorkQueue::with_rate_limiter(default_item_limiter());
    // Each once, in an order that is neither sorted nor reversed.
    for step in 0..TASKS {
        let task = step * 7919 % TASKS;
        queue.add_after(task, Duration::from_micros(1000 + task));
    }
    assert_eq!((queue.len(), queue.status().delayed), (0, 1_000_000));
    advance(2 * SECOND).await;
    assert_eq!(queue.len(), 1_000_000);
    assert!(drained(&queue).into_iter().eq(0..TASKS));
}
