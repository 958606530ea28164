//! Priorities, and the order within a priority.

use super::*;
use crate::workqueue::state::OLDEST_EVERY;

#[test]
fn wq13_pq1_tasks_come_by_priority_and_then_in_the_order_of_their_first_add() {
    let queue = queue();
    for (task, priority) in [("low", -1), ("a", 0), ("b", 0), ("high", 1), ("a", 0)] {
        queue.add_with_priority(task, priority);
    }
    assert_eq!(drained(&queue), ["high", "a", "b", "low"]);
}

#[test]
fn pq1_wq11_a_higher_priority_moves_a_task_to_its_end_and_a_lower_one_changes_nothing() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    queue.add_with_priority("high", 1);
    queue.add_with_priority("b", 1);
    queue.add_with_priority("high", -1);
    assert_eq!(drained(&queue), ["high", "b", "a"]);
}

#[test]
fn pq2_a_task_that_a_worker_has_keeps_the_highest_priority_of_its_adds() {
    let queue = queue();
    queue.add("a");
    let first = take(&queue);
    queue.add_with_priority("a", -1);
    queue.add_with_priority("a", 2);
    queue.add_with_priority("b", 1);
    assert_eq!(*take(&queue), "b");
    first.done();
    let again = take(&queue);
    assert_eq!((*again, again.priority()), ("a", 2));
    again.done();
}

#[test]
fn no_priority_starves_those_below_it() {
    let queue = WorkQueue::new();
    for low in 0..3 {
        queue.add_with_priority(-1 - low, LOW_PRIORITY);
    }
    let mut handed_out = Vec::new();
    for task in 0..10 * OLDEST_EVERY as i32 {
        queue.add(task); // one more of a higher priority each time
        let next = take(&queue);
        handed_out.push(*next);
        next.done();
    }
    let low: Vec<_> = handed_out.iter().copied().filter(|task| *task < 0).collect();
    assert_eq!(low, [-1, -2, -3]);
    let third = handed_out.iter().position(|task| *task == -3).unwrap();
    assert!(third < 3 * OLDEST_EVERY as usize, "{third}");
}

#[test]
fn an_empty_queue_that_is_asked_hands_out_nothing_and_counts_nothing() {
    let queue = queue();
    for _ in 0..OLDEST_EVERY {
        assert!(queue.try_get().is_none());
    }
    queue.add_with_priority("low", -1);
    queue.add("high");
    assert_eq!(drained(&queue), ["high", "low"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_the_priority_that_the_task_was_handed_out_with() {
    let queue = queue();
    queue.add_with_priority("a", 7);
    take(&queue).retry();
    let again = queue.get().await.unwrap();
    assert_eq!(again.priority(), 7);
    again.done();
}
