//! Rate limits.

use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn millis(limiter: &impl RateLimiter<&'static str>, task: &'static str, calls: usize) -> Vec<u128> {
    (0..calls).map(|_| limiter.when(&task).as_millis()).collect()
}

#[tokio::test(start_paused = true)]
async fn wq30_a_limited_add_waits_as_the_limiter_says_and_forget_is_not_done() {
    let queue = queue();
    queue.add_rate_limited("a");
    queue.add_rate_limited("b");
    queue.add_rate_limited("b");
    assert_eq!((queue.num_requeues(&"a"), queue.num_requeues(&"b")), (1, 2));
    assert_eq!(queue.len(), 0);
    advance(MS).await;
    // The first delay of `b` was the shorter one.
    assert_eq!(queue.len(), 2);
    let a = take(&queue);
    queue.forget(&"a");
    assert_eq!((a.failures(), queue.status().running), (0, 1));
    a.retry();
    assert_eq!(queue.num_requeues(&"a"), 1);
}

#[tokio::test(start_paused = true)]
async fn wq30_done_forgets_failures_and_so_does_a_later_run_that_was_asked_for() {
    let queue = queue();
    queue.add("a");
    take(&queue).retry();
    queue.get().await.unwrap().again_after(SECOND);
    assert_eq!(queue.num_requeues(&"a"), 0);
    queue.get().await.unwrap().retry();
    queue.get().await.unwrap().done();
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[test]
fn wq31_exponential_waits_double_from_the_base_up_to_the_maximum_and_restart() {
    let limiter = ItemExponential::new(MS, SECOND);
    assert_eq!(millis(&limiter, "a", 12), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
    assert_eq!(millis(&limiter, "b", 2), [1, 2]);
    assert_eq!(limiter.num_requeues(&"a"), 12);
    limiter.forget(&"a");
    assert_eq!((millis(&limiter, "a", 1), limiter.num_requeues(&"b")), (vec![1], 2));
}

#[test]
fn wq31_a_thousand_failures_stay_at_the_maximum() {
    let limiter = ItemExponential::new(MS, 1000 * SECOND);
    assert!(millis(&limiter, "a", 1000)[20..].iter().all(|wait| *wait == 1_000_000));
    let limiter = ItemExponential::new(1000 * SECOND, Duration::MAX);
    assert!((0..100).all(|_| limiter.when(&"a") >= 1000 * SECOND));
}

#[test]
fn wq32_the_first_few_failures_wait_shortly_and_all_others_long() {
    let limiter = ItemFastSlow::new(5 * MS, 10 * SECOND, 3);
    assert_eq!(millis(&limiter, "a", 5), [5, 5, 5, 10_000, 10_000]);
    limiter.forget(&"a");
    assert_eq!(millis(&limiter, "a", 1), [5]);
}

#[tokio::test(start_paused = true)]
async fn wq33_a_bucket_reserves_for_all_tasks_and_counts_none() {
    let limiter = TokenBucket::new(10.0, 2);
    assert_eq!(millis(&limiter, "a", 2), [0, 0]);
    assert_eq!(millis(&limiter, "b", 2), [100, 200]);
    RateLimiter::forget(&limiter, &"b");
    assert_eq!(RateLimiter::num_requeues(&limiter, &"b"), 0);
    // Reserved tokens are paid for when their time has come; a pause fills the bucket, but no further.
    advance(200 * MS).await;
    assert_eq!(millis(&limiter, "c", 1), [100]);
    advance(60 * SECOND).await;
    assert_eq!(millis(&limiter, "c", 3), [0, 0, 100]);
}

#[tokio::test(start_paused = true)]
async fn wq33_a_bucket_without_a_rate_lets_its_burst_through_and_does_not_panic() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
        let limiter = TokenBucket::new(rate, 1);
        let waits = millis(&limiter, "a", 3);
        assert_eq!(waits[0], 0, "{rate}");
        assert_eq!(waits[1] > 0, rate != f64::INFINITY, "{rate}");
    }
}

#[tokio::test(start_paused = true)]
async fn wq34_the_longest_wait_of_all_counts_and_all_are_asked() {
    let limiter = MaxOf::new()
        .and(ItemFastSlow::new(5 * MS, 3 * SECOND, 3))
        .and(ItemExponential::new(MS, SECOND))
        .and(TokenBucket::new(10.0, 100));
    assert_eq!(millis(&limiter, "a", 5), [5, 5, 5, 3000, 3000]);
    assert_eq!(limiter.num_requeues(&"a"), 5);
    assert_eq!(millis(&limiter, "b", 95), [vec![5; 3], vec![3000; 92]].concat());
    limiter.forget(&"a");
    limiter.forget(&"b");
    // The hundred tokens are gone even though no task has waited for one.
    assert_eq!(millis(&limiter, "c", 1), [100]);
}

#[test]
fn wq35_a_wait_is_cut_at_the_maximum() {
    let limiter = WithMaxWait::new(ItemFastSlow::new(5 * MS, 1000 * SECOND, 1), 500 * SECOND);
    assert_eq!(millis(&limiter, "a", 2), [5, 500_000]);
    assert_eq!(limiter.num_requeues(&"a"), 2);
}

#[tokio::test(start_paused = true)]
async fn wq36_the_defaults_are_those_of_client_go() {
    let limiter = default_controller_limiter();
    assert_eq!(millis(&limiter, "a", 3), [5, 10, 20]);
    (0..97).for_each(|_| {
        limiter.when(&"b");
    });
    assert_eq!(millis(&limiter, "c", 2), [100, 200]);
    (0..40).for_each(|_| {
        limiter.when(&"d");
    });
    assert_eq!(millis(&limiter, "d", 1), [1_000_000]);
    assert_eq!(millis(&default_item_limiter(), "a", 3), [1, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn pq6_of_two_waits_the_shorter_one_counts() {
    let queue = WorkQueue::with_rate_limiter(ItemExponential::new(100 * MS, SECOND));
    let add = |task, after| {
        let options = AddOptions { after: Some(after), rate_limited: true, priority: 0 };
        queue.add_with(task, options);
    };
    add("limited", SECOND);
    add("given", 50 * MS);
    advance(50 * MS).await;
    assert_eq!(drained(&queue), ["given"]);
    advance(50 * MS).await;
    assert_eq!(drained(&queue), ["limited"]);
}
