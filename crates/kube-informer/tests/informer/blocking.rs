//! I14 with threads that block: a real runtime, and channels instead of time.

use std::sync::mpsc;

use kube_informer::State;
use tokio::sync::mpsc as asynchronous;

use super::running::Running;
use super::scene::{Maps, agrees, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i14_a_blocked_handler_delays_nothing_else() {
    const EVENTS: usize = 2_000;
    let running = Running::synced(server()).await;
    let (go_on, blocked) = mpsc::channel::<()>();
    let (entered, mut enters) = asynchronous::unbounded_channel();
    let slow = running.informer.handler().name("slow").blocking().for_each(move |_| {
        let _ = entered.send(());
        let _ = blocked.recv();
    });
    let (tell, mut told) = asynchronous::unbounded_channel();
    for handler in 0..9 {
        let tell = tell.clone();
        running.informer.handler().for_each(move |event| {
            if let Some(object) = event.object() {
                let version: u64 = object.resource_version().as_str().parse().unwrap();
                tell.send((handler, version)).unwrap();
            }
        });
    }
    enters.recv().await.expect("it is blocked in its first event, Synced");

    running.server.add("a", "0");
    for turn in 1..EVENTS {
        running.server.change("a", &turn.to_string());
    }
    let last = running.server.store().revision();
    let mut reached = [0; 9];
    while reached.iter().any(|version| *version < last) {
        let (handler, version) = told.recv().await.expect("they are told");
        assert!(reached[handler] < version, "I10: in order");
        reached[handler] = version;
    }
    running.informer.wait_for_version(last).await.unwrap();
    assert!(agrees(&running.server, &running.informer.lister()));
    assert!(enters.is_empty(), "it is blocked still");
    assert!(slow.backlog() <= 1024 + 1 + 1, "{}", slow.backlog());
    assert!(slow.merged() > 0);

    // L5: a stop does not wait for it, a shutdown does.
    running.informer.stop();
    let mut states = running.informer.watch_state();
    states.wait_for(|state| matches!(state, State::Stopped)).await.unwrap();
    let informer = running.informer.clone();
    let shutdown = tokio::spawn(async move { informer.shutdown().await });
    tokio::task::yield_now().await;
    assert!(!shutdown.is_finished());
    assert!(enters.is_empty());
    drop(go_on);
    shutdown.await.unwrap();
    assert!(enters.recv().await.is_none(), "I13: it was never called again, and is gone");
}
