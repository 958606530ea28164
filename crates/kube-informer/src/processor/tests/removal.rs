//! The end of a handler: no call and no event after it.

use std::sync::mpsc;

use futures_util::FutureExt;

use super::*;

/// A handler that reports when it is called, and returns when told to.
struct Gate {
    entered: mpsc::Receiver<String>,
    leave: mpsc::Sender<()>,
    registration: Registration,
    /// Held by the handler.
    alive: std::sync::Weak<()>,
}

impl Gate {
    fn new(builder: HandlerBuilder<Untyped>) -> Self {
        let (enter, entered) = mpsc::channel();
        let (leave, left) = mpsc::channel();
        let life = Arc::new(());
        let alive = Arc::downgrade(&life);
        let registration = builder.for_each(move |event| {
            let _ = &life;
            enter.send(text(&event)).unwrap();
            left.recv().unwrap();
        });
        Self { entered, leave, registration, alive }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i13_i28_remove_waits_for_the_callback_that_runs_and_none_starts_after() {
    for blocking in [false, true] {
        let fake = Fake::synced(&["a", "b"]);
        let builder = fake.handler();
        let gate = Gate::new(if blocking { builder.blocking() } else { builder });
        assert_eq!(gate.entered.recv().unwrap(), "*a@1");
        let mut removed = Box::pin(gate.registration.clone().remove());
        assert!(removed.as_mut().now_or_never().is_none(), "the callback runs");
        assert_eq!(gate.registration.backlog(), 0, "what waited is dropped");
        fake.put("c");
        gate.leave.send(()).unwrap();
        ends(removed).await;
        assert!(gate.alive.upgrade().is_none(), "the handler is dropped by then");
        assert!(gate.entered.recv().is_err(), "and was called once");
        assert!(!gate.registration.has_synced());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i13_dropping_the_guard_does_not_wait_and_no_callback_starts_after() {
    let fake = Fake::synced(&["a", "b"]);
    let gate = Gate::new(fake.handler());
    assert_eq!(gate.entered.recv().unwrap(), "*a@1");
    drop(gate.registration.clone().remove_on_drop());
    assert!(gate.alive.upgrade().is_some(), "the callback still runs");
    gate.leave.send(()).unwrap();
    ends(gate.registration.remove()).await;
    assert!(gate.entered.recv().is_err(), "one call, and the handler is gone");
}

#[tokio::test(start_paused = true)]
async fn i13_an_idle_handler_is_dropped_at_once_when_its_guard_is() {
    let fake = Fake::synced(&["a"]);
    let (registration, seen) = fake.noting();
    let (kept, kept_seen) = fake.noting();
    settle().await;
    drop(registration.remove_on_drop());
    assert_eq!(Arc::strong_count(&seen.0), 1);
    let kept = kept.remove_on_drop().detach();
    fake.put("a");
    settle().await;
    assert_eq!(seen.take(), ["*a@1", "synced"]);
    assert_eq!(kept_seen.take(), ["*a@1", "synced", "a@1>2"]);
    assert_eq!(kept.backlog(), 0);
}

#[tokio::test(start_paused = true)]
async fn i13_no_callback_starts_if_the_handler_is_removed_while_its_filter_runs() {
    let fake = Fake::started();
    let (own, seen) = (Arc::new(OnceLock::<Registration>::new()), Seen::default());
    let mine = own.clone();
    let registration = fake
        .handler()
        .filter(move |_| {
            mine.get().into_iter().for_each(|own| drop(own.clone().remove()));
            true
        })
        .for_each(seen.note());
    own.set(registration).unwrap();
    fake.sync(&["a"]);
    settle().await;
    assert_eq!(seen.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn i26_i28_remove_never_hangs() {
    // Before the start.
    let fake = Fake::new();
    let (registration, seen) = fake.noting();
    ends(registration.clone().remove()).await;
    assert_eq!(Arc::strong_count(&seen.0), 1);
    // Twice.
    ends(registration.remove()).await;
    // After the stop.
    fake.start();
    let (registration, _) = fake.noting();
    fake.processor.stop();
    ends(registration.clone().remove()).await;
    // After the informer is gone. A registration of another informer cannot be passed to this one.
    drop(fake);
    ends(registration.remove()).await;
}

#[test]
fn i28_remove_does_not_hang_on_a_runtime_that_stands_still() {
    let still = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (fake, (registration, seen)) = still.block_on(async {
        let fake = Fake::synced(&["a"]);
        let handler = fake.noting();
        (fake, handler)
    });
    // The task exists, but no runtime drives it.
    futures::executor::block_on(registration.remove());
    assert_eq!(seen.take(), [""; 0]);
    assert_eq!(Arc::strong_count(&seen.0), 1);
    drop(fake);
}

#[test]
fn a_runtime_that_is_shut_down_takes_its_handlers_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (fake, registration, seen) = runtime.block_on(async {
        let fake = Fake::started();
        let (registration, seen) = fake.noting();
        tokio::task::yield_now().await;
        (fake, registration, seen)
    });
    drop(runtime);
    assert_eq!(Arc::strong_count(&seen.0), 1);
    // Handlers that register now end in the same way.
    let (late, late_seen) = fake.noting();
    assert_eq!(Arc::strong_count(&late_seen.0), 1);
    fake.sync(&["a"]);
    for registration in [registration, late] {
        let error = futures::executor::block_on(registration.wait_for_sync().into_future());
        assert!(error.unwrap_err().to_string().contains("stopped"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_dropped_does_no_harm() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let fake = Fake::synced(&[]);
    let bad = Bad;
    let registration = fake.handler().for_each(move |_| {
        let _ = &bad;
    });
    let (other, seen) = fake.noting();
    settle().await;
    fake.processor.stop();
    ends(registration.clone().remove()).await;
    assert_eq!(registration.panics(), 1);
    assert_eq!(Arc::strong_count(&seen.0), 1, "the next one is ended too");
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn i27_what_waits_for_a_removed_handler_is_dropped_and_nothing_is_queued_any_more() {
    let fake = Fake::new();
    let (registration, _) = fake.noting();
    fake.sync(&["a", "b"]);
    assert_eq!(registration.backlog(), 3);
    drop(registration.clone().remove());
    assert_eq!(registration.backlog(), 0);
    fake.put("a");
    assert_eq!(registration.backlog(), 0);
    assert_eq!(fake.processor.inner.lock().members.len(), 0);
}
