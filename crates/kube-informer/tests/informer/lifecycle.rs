//! I-1 to I-7, L5, B-3: an informer starts once, and stops at once, whatever it is doing.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use kube_informer::ListWatch;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::running::{Book, Running};
use super::scene::{Listed, Maps, asked, maps_of, seconds, server, settle};

#[tokio::test(start_paused = true)]
async fn i1_starting_it_twice_is_starting_it_once() {
    let running = Running::new(server());
    let book = Book::keep(&running.informer);
    for _ in 0..3 {
        running.informer.start();
        running.informer.clone().start();
        settle().await;
    }
    assert_eq!(asked(&running.server), ["stream"]);
    assert_eq!(book.news(), ["synced"]);
}

#[tokio::test(start_paused = true)]
async fn i3_i4_stopped_is_stopped_for_good() {
    let running = Running::new(server());
    assert!(!running.informer.is_stopped());
    let running = running.sync().await;
    assert!(!running.informer.is_stopped());
    running.informer.stop();
    assert!(running.informer.is_stopped());
    settle().await;
    assert_eq!(running.state(), "stopped");
    running.server.clear_record();
    running.informer.start();
    seconds(100).await;
    assert!(running.informer.is_stopped());
    assert_eq!(asked(&running.server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn i4_what_is_stopped_before_its_start_never_starts() {
    let running = Running::new(server());
    running.informer.stop();
    running.informer.start();
    settle().await;
    assert_eq!(asked(&running.server), [""; 0]);
    assert!(!running.informer.has_synced());
    assert!(running.informer.wait_for_sync().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn i5_i6_i7_synced_and_the_version_stay_after_the_stop() {
    let server = server();
    server.add("a", "1");
    let running = Running::synced(server).await;
    let version = running.informer.resource_version();
    running.informer.shutdown().await;
    assert!(running.informer.has_synced());
    assert!(!running.informer.is_live());
    assert_eq!(running.informer.resource_version(), version);
    assert_eq!(running.names(), ["a"], "what was read can be read");
    running.informer.wait_for_sync().await.expect("synced is synced");
}

#[tokio::test(start_paused = true)]
async fn i5_stopped_before_the_first_list_it_never_becomes_synced() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::StalledHeaders);
    let running = Running::new(server);
    running.informer.start();
    settle().await;
    running.informer.shutdown().await;
    assert!(!running.informer.has_synced());
}

/// Shuts an informer down in some state: no time passes, and nothing is left running.
async fn ends_promptly(
    server: &ApiServer,
    source: impl ListWatch,
    state: &'static str,
    after: Duration,
) {
    // What others left behind has gone.
    settle().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let running = Running::from_source(server.clone(), source, |builder| builder);
    let book = Book::keep(&running.informer);
    let mut stream = running.informer.events();
    running.informer.start();
    tokio::time::sleep(after).await;
    assert_eq!(running.state(), state);
    book.news();
    let began = Instant::now();
    running.informer.shutdown().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "B-3: {state}");
    assert_eq!(running.state(), "stopped");
    // Undelivered events are dropped: C-3, H-12.
    assert!(stream.next().await.is_none());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "{state}");
    assert_eq!(server.watches(), 0, "{state}");
    seconds(600).await;
    assert_eq!(book.news(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn l5_b3_a_shutdown_takes_no_time_in_any_state() {
    let second = Duration::from_secs(1);
    let with = |fault: Option<(Verb, Fault)>| {
        let server = server();
        server.add("a", "1");
        server.add("b", "1");
        if let Some((verb, fault)) = fault {
            let rule = server.faults().on(verb).always();
            let watched = verb == Verb::Watch;
            let rule = if watched { rule.after_events(1) } else { rule.after_bytes(100) };
            rule.inject(fault);
        }
        server
    };
    let server = with(Some((Verb::List, Fault::StalledHeaders)));
    ends_promptly(&server, Listed(maps_of(&server)), "listing", second).await;
    let server = with(Some((Verb::List, Fault::StalledBody)));
    ends_promptly(&server, Listed(maps_of(&server)), "listing", second).await;
    let server = with(Some((Verb::Watch, Fault::StalledHeaders)));
    ends_promptly(&server, maps_of(&server), "streaming", second).await;
    let server = with(Some((Verb::Watch, Fault::StalledBody)));
    ends_promptly(&server, maps_of(&server), "streaming", second).await;
    let server = with(None);
    ends_promptly(&server, maps_of(&server), "watching", second).await;
    let server = with(None);
    server.faults().any().always().inject(Fault::status_retry_after(429, "250"));
    ends_promptly(&server, maps_of(&server), "backing off", second).await;
    let server = with(None);
    server.refuse_connections();
    ends_promptly(&server, maps_of(&server), "backing off", 100 * second).await;
    // Requested but not started.
    let server = with(None);
    ends_promptly(&server, maps_of(&server), "idle", Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn l5_a_shutdown_of_what_never_started_ends_too() {
    let running = Running::new(server());
    let mut stream = running.informer.events();
    let limit = Duration::from_secs(1);
    tokio::time::timeout(limit, running.informer.shutdown()).await.unwrap();
    assert!(tokio::time::timeout(limit, stream.next()).await.unwrap().is_none());
    assert_eq!(running.state(), "stopped");
}

#[tokio::test(start_paused = true)]
async fn l5_streams_end_and_shutdowns_can_be_many() {
    let running = Running::synced(server()).await;
    let mut stream = running.informer.events();
    let twice = (running.informer.shutdown(), running.informer.shutdown());
    tokio::join!(twice.0, twice.1);
    assert!(stream.next().await.is_none());
    running.informer.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn l5_a_runtime_that_goes_takes_the_informer_with_it() {
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Running::synced(server()))
    });
    let running = other.join().unwrap();
    // L4: pending waits fail.
    let waits = running.informer.wait_for_version(u64::MAX);
    let waited = tokio::time::timeout(Duration::from_secs(1), waits).await;
    assert!(waited.expect("it ends").unwrap_err().is_stopped());
    assert!(running.informer.is_stopped());
    assert!(running.informer.events().next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn c3_what_is_queued_at_the_stop_is_dropped() {
    let running = Running::synced(server()).await;
    let book = Book::keep(&running.informer);
    settle().await;
    book.news();
    running.server.add("a", "1");
    running.informer.stop();
    seconds(1).await;
    assert_eq!(book.news(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn run_is_start_wait_and_shutdown() {
    let running = Running::new(server());
    let (stop, stopped) = oneshot::channel::<()>();
    let informer = running.informer.clone();
    let run = tokio::spawn(async move { informer.run(stopped).await });
    seconds(100).await;
    assert!(running.informer.is_live() && !run.is_finished());
    stop.send(()).expect("it is waited for");
    run.await.unwrap();
    assert_eq!((running.state(), running.server.watches()), ("stopped", 0));
    // A stopped informer does not run.
    running.informer.run(std::future::pending::<()>()).await;
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_the_informer_is_stopped_otherwise() {
    let running = Running::new(server());
    let informer = running.informer.clone();
    let run = tokio::spawn(async move { informer.run(std::future::pending::<()>()).await });
    seconds(100).await;
    assert!(running.informer.is_live() && !run.is_finished());
    running.informer.stop();
    run.await.unwrap();
    assert_eq!((running.state(), running.server.watches()), ("stopped", 0));
}
