//! An informer runs as long as anything can observe it, and no longer.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use tokio::runtime::Handle;

use super::running::{Book, Running};
use super::scene::{Maps, seconds, server, settle};

/// Asserts that an informer of which only `keeps` is left keeps running, and ends with it.
async fn lives_by<T>(keeps: impl FnOnce(&Running) -> T) {
    let tasks = Handle::current().metrics().num_alive_tasks();
    let running = Running::synced(server()).await;
    let server = running.server.clone();
    let kept = keeps(&running);
    drop(running);
    seconds(100).await;
    assert_eq!(server.watches(), 1, "it runs");
    drop(kept);
    settle().await;
    assert_eq!(server.watches(), 0, "it has ended");
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "with all of its tasks");
}

#[tokio::test(start_paused = true)]
async fn it_lives_as_long_as_a_handle_a_lister_an_index_or_a_stream() {
    lives_by(|running| running.informer.clone()).await;
    lives_by(|running| running.informer.lister()).await;
    lives_by(|running| running.informer.lister().namespace("default")).await;
    lives_by(|running| running.informer.index_by_label("value")).await;
    lives_by(|running| running.informer.index_by("value", |_| None::<String>).unwrap()).await;
    lives_by(|running| running.informer.events()).await;
    lives_by(|running| running.informer.handler()).await;
}

#[tokio::test(start_paused = true)]
async fn it_lives_as_long_as_a_handler_whose_registration_was_ignored() {
    let running = Running::synced(server()).await;
    let server = running.server.clone();
    let book = Book::keep(&running.informer);
    drop(running);
    seconds(100).await;
    server.add("a", "1");
    settle().await;
    assert_eq!(book.news(), ["synced", "add a"]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_ends_with_its_last_handler() {
    let running = Running::synced(server()).await;
    let server = running.server.clone();
    let (_, first) = Book::keep_registered(&running.informer);
    let (_, second) = Book::keep_registered(&running.informer);
    let kept = second.clone();
    drop(running);
    first.remove().await;
    settle().await;
    assert_eq!(server.watches(), 1);
    second.remove().await;
    settle().await;
    assert_eq!(server.watches(), 0);
    assert!(kept.has_synced());
}

#[tokio::test(start_paused = true)]
async fn what_a_program_holds_for_an_answer_keeps_nothing() {
    let running = Running::synced(server()).await;
    running.server.add("a", "1");
    settle().await;
    let server = running.server.clone();
    let (list, states) = (running.informer.lister().list(), running.informer.watch_state());
    drop(running);
    settle().await;
    assert_eq!(server.watches(), 0);
    assert_eq!(list.len(), 1);
    assert_eq!(states.borrow().as_str(), "stopped");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_nobody_wants_ends_while_it_waits_too() {
    let server = server();
    server.faults().on(Verb::Watch).always().inject(Fault::status(403));
    let tasks = Handle::current().metrics().num_alive_tasks();
    let running = Running::new(server.clone());
    running.informer.start();
    seconds(5).await;
    drop(running);
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_holds_its_informer_is_freed_by_a_shutdown() {
    let running = Running::synced(server()).await;
    let (informer, flag) = (running.informer.clone(), std::sync::Arc::new(()));
    let held = flag.clone();
    running.informer.handler().for_each(move |_| _ = (&informer, &held));
    settle().await;
    running.informer.shutdown().await;
    assert_eq!(std::sync::Arc::strong_count(&flag), 1);
}

#[tokio::test(start_paused = true)]
async fn live_and_stale_are_told_through_a_silent_time() {
    let running = Running::synced(server()).await;
    let informer = &running.informer;
    // Bookmarks arrive every minute.
    for _ in 0..10 {
        seconds(59).await;
        assert!(informer.is_live());
        assert!(informer.staleness().unwrap() <= Duration::from_secs(60));
    }
    running.server.faults().on(Verb::Watch).always().inject(Fault::BookmarkLost);
    running.server.faults().on(Verb::Watch).after_events(0).always().inject(Fault::HalfOpen);
    seconds(74).await;
    let before = informer.staleness().unwrap();
    seconds(10).await;
    assert!(informer.staleness().unwrap() >= before + Duration::from_secs(9), "it grows");
    assert_eq!(informer.status().staleness, informer.staleness());
    running.server.faults().clear();
    seconds(200).await;
    assert!(informer.is_live());
    assert!(informer.staleness().unwrap() <= Duration::from_secs(60));
    assert!(informer.status().live && informer.status().synced);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_bookmarks_is_watched_in_longer_silence() {
    let running = Running::synced(server()).await;
    running.server.faults().on(Verb::Watch).always().inject(Fault::BookmarkLost);
    seconds(3 * 3600).await;
    // Two silent watches are considered dead, until a list has shown that they missed nothing.
    assert_eq!(running.errors.nexts(), ["resume", "relist"]);
    assert_eq!(super::scene::count(&running.server, Verb::List), 1, "which version it is at");
    assert!(running.informer.is_live());
}
