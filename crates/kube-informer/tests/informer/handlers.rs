//! I-20 to I-29: handlers that are added and removed at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Event, NotSyncedReason, SharedInformer};
use parking_lot::Mutex;

use super::running::{Book, Running};
use super::scene::{Maps, agrees, seconds, server, settle};

#[tokio::test(start_paused = true)]
async fn i20_an_early_handler_gets_the_first_list_as_initial() {
    let server = server();
    server.add("a", "1");
    server.add("b", "1");
    let running = Running::new(server);
    let (book, registration) = Book::keep_registered(&running.informer);
    assert!(!registration.has_synced());
    let running = running.sync().await;
    registration.wait_for_sync().await.unwrap();
    assert!(registration.has_synced());
    running.server.add("c", "1");
    settle().await;
    assert_eq!(book.news(), ["add a initially", "add b initially", "synced", "add c"]);
}

#[tokio::test(start_paused = true)]
async fn i21_i22_i12_a_late_handler_gets_the_cache_then_changes() {
    let running = Running::synced(server()).await;
    for name in ["a", "b"] {
        running.server.add(name, "1");
    }
    settle().await;
    let (book, registration) = Book::keep_registered(&running.informer);
    assert!(running.informer.has_synced() && !registration.has_synced(), "I-22");
    running.server.change("a", "2");
    registration.wait_for_sync().await.unwrap();
    settle().await;
    assert_eq!(book.news(), ["add a initially", "add b initially", "synced", "update a"]);
    assert!(book.is_right(&running.informer));
}

#[tokio::test(start_paused = true)]
async fn i21_handlers_added_during_churn_see_no_gap_or_duplicate() {
    let running = Running::synced(server()).await;
    let mut books = Vec::new();
    for turn in 0..300 {
        let name = format!("m{}", turn % 11);
        match turn / 11 % 3 {
            0 => running.server.add(&name, "1"),
            1 => running.server.change(&name, &turn.to_string()),
            _ => running.server.remove(&name),
        };
        if turn % 10 == 3 {
            books.push(Book::keep(&running.informer));
        }
        match turn % 4 {
            0 => tokio::task::yield_now().await,
            1 => settle().await,
            _ => {}
        }
    }
    settle().await;
    assert!(agrees(&running.server, &running.informer.lister()));
    assert!(books.iter().all(|book| book.is_right(&running.informer)));
}

#[tokio::test(start_paused = true)]
async fn i23_handlers_that_come_between_start_and_sync_lose_nothing() {
    let server = server();
    server.add("a", "1");
    server.add("b", "1");
    let slow = Fault::SlowBytes { bytes: 100, every: Duration::from_millis(10) };
    server.faults().on(Verb::Watch).inject(slow);
    let running = Running::new(server);
    running.informer.start();
    let mut books = Vec::new();
    while !running.informer.has_synced() {
        books.push(Book::keep(&running.informer));
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    settle().await;
    assert!(books.len() > 5);
    for book in &books {
        assert_eq!(book.news(), ["add a initially", "add b initially", "synced"]);
    }
}

#[tokio::test(start_paused = true)]
async fn i24_a_handler_added_after_the_stop_is_never_called() {
    let running = Running::synced(server()).await;
    running.informer.shutdown().await;
    let (book, registration) = Book::keep_registered(&running.informer);
    let error = registration.wait_for_sync().await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::Stopped);
    assert!(running.informer.events().next().await.is_none());
    assert_eq!(book.news(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn i25_the_same_handler_twice_is_two() {
    let server = server();
    server.add("a", "1");
    let running = Running::synced(server).await;
    let book = Arc::new(AtomicUsize::new(0));
    let count = |book: &Arc<AtomicUsize>| {
        let book = book.clone();
        running.informer.handler().for_each(move |_| _ = book.fetch_add(1, Ordering::Relaxed))
    };
    let first = count(&book);
    let _second = count(&book);
    settle().await;
    assert_eq!(book.load(Ordering::Relaxed), 4);
    drop(first.remove());
    running.server.add("b", "1");
    settle().await;
    assert_eq!(book.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn i26_i13_a_removed_handler_is_never_called_again() {
    let running = Running::synced(server()).await;
    let (book, registration) = Book::keep_registered(&running.informer);
    let twin = registration.clone();
    running.server.add("a", "1");
    settle().await;
    book.news();
    // I-27 is stronger here: the backlog is not delivered either.
    running.server.add("b", "1");
    registration.remove().await;
    settle().await;
    assert_eq!(book.news(), [""; 0]);
    // Twice, and after the stop, has no effect.
    running.informer.shutdown().await;
    twin.remove().await;
    assert_eq!(running.names(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn i26_a_guard_removes_its_handler_unless_detached() {
    let running = Running::synced(server()).await;
    let (book, kept) = (Book::default(), Book::default());
    {
        let _guard = running.informer.handler().for_each(book.writer()).remove_on_drop();
        let guard = running.informer.handler().for_each(kept.writer()).remove_on_drop();
        guard.detach();
        settle().await;
    }
    running.server.add("a", "1");
    settle().await;
    assert_eq!(book.news(), ["synced"]);
    assert_eq!(kept.news(), ["synced", "add a"]);
}

#[tokio::test(start_paused = true)]
async fn i28_removal_completes_if_never_started() {
    let running = Running::new(server());
    let (_, registration) = Book::keep_registered(&running.informer);
    tokio::time::timeout(Duration::from_secs(1), registration.remove()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn i29_handlers_come_and_go_from_within_callbacks() {
    let running = Running::synced(server()).await;
    let inner = Book::default();
    let slot = Arc::new(Mutex::new(None));
    let (informer, book, own) = (running.informer.clone(), inner.clone(), slot.clone());
    let registration = running.informer.handler().for_each(move |event: Event<ConfigMap>| {
        if matches!(&event, Event::Added { object, .. } if object.name() == "a") {
            informer.handler().for_each(book.writer());
            // Its own removal must not be waited for.
            let own: Option<kube_informer::Registration> = own.lock().take();
            drop(own.map(kube_informer::Registration::remove));
        }
    });
    *slot.lock() = Some(registration.clone());
    running.server.add("a", "1");
    settle().await;
    running.server.add("b", "1");
    settle().await;
    assert_eq!(inner.news(), ["add a initially", "synced", "add b"]);
    tokio::time::timeout(Duration::from_secs(1), registration.remove()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn i29_many_tasks_add_and_remove_at_once() {
    let running = Running::synced(server()).await;
    let stays = Book::keep(&running.informer);
    let churn = |informer: SharedInformer<ConfigMap>| async move {
        for _ in 0..20 {
            let (book, registration) = Book::keep_registered(&informer);
            registration.wait_for_sync().await.unwrap();
            assert!(!book.news().is_empty());
            registration.remove().await;
        }
    };
    let tasks: Vec<_> = (0..10).map(|_| tokio::spawn(churn(running.informer.clone()))).collect();
    for turn in 0..100 {
        running.server.add(&format!("m{turn}"), "1");
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    settle().await;
    assert!(stays.is_right(&running.informer));
}

#[tokio::test(start_paused = true)]
async fn c24_a_filter_turns_updates_into_adds_and_deletes() {
    let server = server();
    server.add("in", "yes");
    server.add("out", "no");
    let running = Running::synced(server).await;
    let book = Book::default();
    running
        .informer
        .handler()
        .filter(|object| object.labels().get("value") == Some("yes"))
        .for_each(book.writer());
    settle().await;
    running.server.change("out", "yes");
    running.server.change("in", "no");
    running.server.change("in", "never");
    running.server.remove("in");
    running.server.remove("out");
    settle().await;
    assert_eq!(book.news(), ["add in initially", "synced", "add out", "delete in", "delete out"]);
}

#[tokio::test(start_paused = true)]
async fn h8_i43_only_handlers_that_asked_are_resynced() {
    let server = server();
    server.add("a", "1");
    let running = Running::new(server);
    let (never, ten, odd) = (Book::default(), Book::default(), Book::default());
    running.informer.handler().for_each(never.writer());
    running.informer.handler().resync(Duration::from_secs(10)).for_each(ten.writer());
    running.informer.handler().resync(Duration::from_secs(7)).for_each(odd.writer());
    let running = running.sync().await;
    let resyncs = |book: &Book| book.news().iter().filter(|line| *line == "resync a").count();
    // R-60 does not apply here: a relist does not restart the period.
    for _ in 0..10 {
        let faults = running.server.faults();
        faults.on(Verb::Watch).after_events(0).inject(Fault::Gone);
        seconds(7).await;
    }
    settle().await;
    assert_eq!([resyncs(&never), resyncs(&ten), resyncs(&odd)], [0, 7, 10]);
    // I-42: after the start too, with any period from a second on (I-41).
    let late = Book::default();
    running.informer.handler().resync(Duration::from_millis(1)).for_each(late.writer());
    seconds(5).await;
    assert!((4..=5).contains(&resyncs(&late)));
}
