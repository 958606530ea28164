//! I14: a slow handler delays no other, and its backlog is bounded.

use std::sync::mpsc;

use super::logs::Logs;
use super::*;

/// Returns the largest possible backlog for `keys` objects.
fn bound(keys: usize) -> usize {
    BACKLOG_EVENTS_MAX + 2 * keys
}

fn churn(fake: &Fake, keys: usize, events: usize) {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..events {
        let name = random.usize(..keys).to_string();
        if random.u8(..4) == 0 { fake.delete(&name) } else { fake.put(&name) }
    }
}

#[tokio::test(start_paused = true)]
async fn i14_a_stream_that_nobody_polls_delays_nobody_and_stays_bounded() {
    let fake = Fake::synced(&["0"]);
    let mut lazy = fake.handler().stream();
    let folds: Vec<_> = (0..9)
        .map(|_| {
            let fold = Arc::new(Mutex::new(Fold::default()));
            let write = fold.clone();
            (fake.handler().for_each(move |event| write.lock().tell(&event)), fold)
        })
        .collect();
    settle().await;
    for _ in 0..100 {
        churn(&fake, 50, 100);
        fake.relist();
        settle().await;
        assert!(folds.iter().all(|(registration, _)| registration.backlog() == 0));
        assert!(lazy.registration().backlog() <= bound(50) + 52, "two lists of 50 at most");
    }
    for (registration, fold) in &folds {
        fold.lock().assert_is(&fake.cache());
        assert_eq!(registration.merged(), 0);
    }
    assert!(lazy.registration().merged() > 1000 && lazy.registration().skipped() > 0);
    let mut fold = Fold::default();
    while lazy.registration().backlog() > 0 {
        fold.tell(&lazy.next().await.unwrap());
    }
    fold.assert_is(&fake.cache());
}

/// Runs on one thread, so that a callback that blocks it would block every task.
#[tokio::test(start_paused = true)]
async fn i14_a_blocking_handler_holds_up_nobody() {
    let fake = Fake::synced(&["0"]);
    let (enter, mut entered) = tokio::sync::mpsc::unbounded_channel();
    let (leave, left) = mpsc::channel::<()>();
    let fold = Arc::new(Mutex::new(Fold::default()));
    let write = fold.clone();
    let slow = fake.handler().blocking().for_each(move |event| {
        write.lock().tell(&event);
        let _ = enter.send(());
        // Blocks until the sender is dropped.
        let _ = left.recv();
    });
    let (other, seen) = fake.noting();
    entered.recv().await.unwrap();
    let mut told = 0;
    for _ in 0..50 {
        churn(&fake, 20, 100);
        while other.backlog() > 0 {
            tokio::task::yield_now().await;
        }
        told += seen.take().len();
    }
    assert!(told > 3000 && other.merged() == 0, "the other one has it all");
    assert!((1024..=bound(20) + 2).contains(&slow.backlog()), "{slow:?}");
    assert!(!slow.has_synced());
    drop(leave);
    slow.wait_for_sync().await.unwrap();
    fake.put("end");
    let end = ObjectKey::namespaced("ns", "end");
    while !fold.lock().known.contains_key(&end) {
        entered.recv().await.unwrap();
    }
    fold.lock().assert_is(&fake.cache());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h3_h4_distributing_never_waits_for_a_handler() {
    // Neither for a handler that has not been started...
    let fake = Fake::new();
    let (unstarted, _) = fake.noting();
    fake.sync(&["0"]);
    churn(&fake, 10, 3000);
    assert!(unstarted.backlog() <= bound(10) + 2);
    // ...nor for one that is stuck, nor for a stop in the meantime.
    let (leave, left) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    let stuck = fake.handler().for_each(move |_| {
        enter.send(()).unwrap();
        let _ = left.recv();
    });
    fake.start();
    entered.recv().unwrap();
    churn(&fake, 10, 3000);
    assert!(stuck.backlog() <= bound(10) + 2);
    fake.processor.stop();
    churn(&fake, 10, 10);
    drop(leave);
    stuck.remove().await;
    fake.tracker.close();
    fake.tracker.wait().await;
}

#[tokio::test(start_paused = true)]
async fn every_state_is_delivered_to_a_handler_that_asks_for_it_and_the_informer_waits() {
    let fake = Fake::synced(&[]);
    let (seen, stop) = (Seen::default(), Arc::new(Notify::new()));
    let registration = fake.handler().every_state().for_each(seen.note());
    let (lazy, _) = fake.noting();
    settle().await;
    seen.take();
    // No task runs in between.
    let states = 3 * BACKLOG_EVENTS_MAX;
    for _ in 0..states {
        fake.put("a");
    }
    assert_eq!((registration.backlog(), registration.merged()), (states, 0));
    assert!(lazy.merged() > 0 && lazy.backlog() <= BACKLOG_EVENTS_MAX + 1);
    let waits = tokio::spawn({
        let (processor, stop) = (fake.processor.clone(), stop.clone());
        async move {
            processor.ready().await;
            stop.notify_one();
        }
    });
    tokio::task::yield_now().await;
    ends(stop.notified()).await;
    assert!(registration.backlog() < BACKLOG_EVENTS_MAX);
    ends(waits).await.unwrap();
    settle().await;
    assert_eq!(seen.take().len(), states);
}

#[tokio::test(start_paused = true)]
async fn the_informer_does_not_wait_for_a_handler_that_is_removed_or_reads_no_stream_any_more() {
    let fake = Fake::synced(&[]);
    let stream = fake.handler().every_state().stream();
    for _ in 0..2 * BACKLOG_EVENTS_MAX {
        fake.put("a");
    }
    let mut ready = Box::pin(fake.processor.ready());
    assert!(futures::poll!(&mut ready).is_pending());
    drop(stream);
    ends(ready).await;
}

#[tokio::test(start_paused = true)]
async fn h19_a_slow_callback_is_logged_once_and_counted() {
    let (logs, _guard) = Logs::capture();
    let fake = Fake::synced(&["a", "b"]);
    // Every callback takes longer than zero.
    let slow = fake.handler().name("lazy").slow_after(Duration::ZERO).for_each(drop);
    let quick = fake.handler().slow_after(Duration::MAX).for_each(drop);
    settle().await;
    assert_eq!((slow.slow(), quick.slow()), (3, 0));
    let logs = logs.lines();
    assert_eq!(logs.len(), 1, "{logs:?}");
    for part in ["WARN", "handler=\"lazy\"", "key=\"ns/a\"", "register it as `blocking`"] {
        assert!(logs[0].contains(part), "{logs:?}");
    }
}
