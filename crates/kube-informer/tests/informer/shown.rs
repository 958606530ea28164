//! The main guarantees: nothing is lost, and nothing is relisted if a watch suffices.

use std::collections::BTreeSet;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use futures::StreamExt;
use kube_informer::Event;
use tokio::time::Instant;

use super::running::{Book, Running};
use super::scene::{Maps, agrees, asked, count, seconds, server, settle, within};

#[tokio::test(start_paused = true)]
async fn l1_a_dead_watch_is_resumed_within_75_s() {
    for fault in [Fault::HalfOpen, Fault::StalledBody] {
        let running = Running::synced(server()).await;
        let book = Book::keep(&running.informer);
        running.server.add("a", "1");
        seconds(100).await;
        running.server.clear_record();
        running.server.faults().on(Verb::Watch).after_events(0).inject(fault);
        let died = Instant::now();
        let version = running.informer.resource_version();
        running.server.change("a", "2");
        running.server.add("b", "1");
        running.server.remove("b");
        let noticed = within(Duration::from_secs(75), "noticed", || running.errors.len() > 0).await;
        assert!(running.errors.last().error.is_silence());
        assert_eq!(running.errors.nexts(), ["resume"]);
        settle().await;
        // The usual case: the watch is resumed where it was, and nothing is listed.
        assert_eq!(asked(&running.server), [format!("watch rv={version}")]);
        assert!(agrees(&running.server, &running.informer.lister()));
        assert!(died.elapsed() < noticed + Duration::from_millis(50), "at once");
        let events = ["add a", "update a", "add b", "delete b"];
        assert_eq!(book.news().split_off(1)[..], events);
        assert!(book.is_right(&running.informer));
    }
}

#[tokio::test(start_paused = true)]
async fn l1_i16_a_dead_watch_with_expired_version_is_relisted() {
    let server = ApiServer::builder().history_window(Duration::from_secs(20)).seed(7).build();
    for name in ["a", "b", "c", "d"] {
        server.add(name, "1");
    }
    let running = Running::synced(server).await;
    let book = Book::keep(&running.informer);
    settle().await;
    book.news();
    running.server.faults().on(Verb::Watch).after_events(0).inject(Fault::HalfOpen);
    running.server.remove("a");
    seconds(3).await;
    running.server.remove("b");
    running.server.change("c", "2");
    running.server.add("e", "1");
    // Recreated: the same name, another object.
    running.server.remove("d");
    running.server.add("d", "1");
    // Writes push old versions out of the server's history.
    seconds(40).await;
    running.server.add("f", "1");
    let limit = Duration::from_secs(40);
    within(limit, "converged", || agrees(&running.server, &running.informer.lister())).await;
    assert_eq!(running.errors.nexts(), ["resume", "relist"]);
    settle().await;
    let mut news = book.news();
    news.sort();
    assert_eq!(news, ["add e", "add f", "miss a", "miss b", "update c", "update d"]);
    assert!(book.is_right(&running.informer));
}

#[tokio::test(start_paused = true)]
async fn i21_a_restored_server_is_detected_by_silence() {
    let server = server();
    let backup = server.store().snapshot();
    let running = Running::synced(server).await;
    let book = Book::keep(&running.informer);
    for name in ["a", "b", "c"] {
        running.server.add(name, "1");
    }
    seconds(100).await;
    // Nothing breaks: the watch is from a future version, and receives nothing.
    running.server.restore_silently(&backup);
    running.server.add("d", "1");
    // Silence, then a request for the server's version.
    let limit = Duration::from_secs(75 + 4 + 2);
    within(limit, "converged", || agrees(&running.server, &running.informer.lister())).await;
    assert_eq!(running.errors.nexts(), ["resume", "relist"]);
    settle().await;
    assert_eq!(book.news()[4..], ["miss a", "miss b", "miss c", "add d"]);
    assert!(book.is_right(&running.informer));
}

/// Like Events on a real server, which have no watch cache and therefore no bookmarks.
#[tokio::test(start_paused = true)]
async fn i21_a_restored_server_is_detected_without_bookmarks() {
    let server = server();
    server.faults().on(Verb::Watch).always().inject(Fault::BookmarkLost);
    let backup = server.store().snapshot();
    let running = Running::synced(server).await;
    let book = Book::keep(&running.informer);
    for name in ["a", "b", "c"] {
        running.server.add(name, "1");
    }
    // Long enough to learn that silence is normal here.
    seconds(400).await;
    running.server.refuse_connections();
    seconds(5).await;
    running.server.restore_silently(&backup);
    running.server.accept_connections();
    running.server.add("d", "1");
    // Connections were refused for five seconds: the last pause, the request for the version, and
    // the list.
    let limit = Duration::from_secs(7 + 4 + 2);
    within(limit, "converged", || agrees(&running.server, &running.informer.lister())).await;
    settle().await;
    assert_eq!(book.news()[4..], ["miss a", "miss b", "miss c", "add d"]);
    assert!(book.is_right(&running.informer));
}

#[tokio::test(start_paused = true)]
async fn l3_without_bookmarks_a_lost_connection_costs_one_list() {
    let server = server();
    server.faults().on(Verb::Watch).always().inject(Fault::BookmarkLost);
    let running = Running::synced(server).await;
    seconds(400).await;
    running.server.clear_record();
    running.server.refuse_connections();
    seconds(5).await;
    running.server.accept_connections();
    seconds(3600).await;
    let asked = asked(&running.server);
    let lists = asked.iter().filter(|asked| !asked.starts_with("watch")).count();
    assert_eq!(lists, 1, "{asked:?}");
    assert!(running.informer.is_live());
}

#[tokio::test(start_paused = true)]
async fn i16_deletes_missed_before_a_410_are_delivered_once() {
    let running = Running::synced(server()).await;
    for name in ["a", "b", "c"] {
        running.server.add(name, "1");
    }
    let books: Vec<_> = (0..3).map(|_| Book::keep(&running.informer)).collect();
    settle().await;
    for book in &books {
        book.news();
    }
    running.server.refuse_connections();
    running.server.remove("a");
    running.server.remove("c");
    running.server.store().compact(running.server.store().revision());
    running.server.accept_connections();
    seconds(120).await;
    for book in &books {
        assert_eq!(book.news(), ["miss a", "miss c", "repeat b"]);
        assert!(book.is_right(&running.informer));
    }
    assert_eq!(running.names(), ["b"]);
    // And not again with the next list.
    running.server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(60).await;
    assert_eq!(books[0].news(), ["repeat b"]);
}

#[tokio::test(start_paused = true)]
async fn i8_l3_10_000_events_on_short_watches_need_no_list() {
    const EVENTS: u64 = 10_000;
    let day = Duration::from_secs(24 * 60 * 60);
    let server = ApiServer::builder().history_window(day).seed(7).build();
    let running = Running::synced(server).await;
    let mut stream = running.informer.events();
    running.server.clear_record();
    let faults = running.server.faults();
    faults.on(Verb::Watch).after_events(7).always().inject(Fault::Reset);
    faults
        .on(Verb::Watch)
        .nth(1)
        .after_events(5)
        .probability(0.5)
        .always()
        .inject(Fault::DropWatches);
    let first = running.server.store().revision() + 1;
    for turn in 0..EVENTS {
        let name = format!("m{}", turn % 100);
        match turn / 100 % 3 {
            0 => running.server.add(&name, "1"),
            1 => running.server.change(&name, &turn.to_string()),
            _ => running.server.remove(&name),
        };
    }
    let mut versions = BTreeSet::new();
    while versions.len() < EVENTS as usize {
        let event = stream.next().await.expect("it goes on");
        let version = event.object().map(|object| object.resource_version().to_string());
        if !matches!(event, Event::Synced) {
            let version: u64 = version.unwrap().parse().unwrap();
            assert!(versions.insert(version), "{version} came twice");
        }
    }
    let last = *versions.last().unwrap();
    assert_eq!((versions.first().copied(), last), (Some(first), first + EVENTS - 1));
    assert!(agrees(&running.server, &running.informer.lister()));
    assert_eq!(stream.registration().merged(), 0);
    assert_eq!(count(&running.server, Verb::List), 0);
    let asked = asked(&running.server);
    assert!(asked.len() > 1_000, "{} cuts", asked.len());
    assert!(
        asked.iter().all(|asked| asked.starts_with("watch rv=")),
        "never listed, never streamed"
    );
}

#[tokio::test(start_paused = true)]
async fn i19_a_hundred_handlers_cost_one_list_and_one_watch() {
    let server = server();
    server.add("a", "1");
    let running = Running::new(server);
    let books: Vec<_> = (0..100).map(|_| Book::keep(&running.informer)).collect();
    let running = running.sync().await;
    let late: Vec<_> = (0..100).map(|_| Book::keep(&running.informer)).collect();
    running.server.change("a", "2");
    seconds(10).await;
    assert_eq!(asked(&running.server), ["stream"]);
    assert_eq!(running.server.watches(), 1);
    for book in books.iter().chain(&late) {
        assert_eq!(book.news(), ["add a initially", "synced", "update a"]);
        assert!(book.is_right(&running.informer));
    }
}

#[tokio::test(start_paused = true)]
async fn i14_an_unpolled_stream_is_bounded_and_delays_no_handler() {
    const KEYS: usize = 50;
    const EVENTS: usize = 4_000;
    let running = Running::synced(server()).await;
    let slow = running.informer.handler().name("slow").stream();
    let books: Vec<_> = (0..9).map(|_| Book::keep(&running.informer)).collect();
    for key in 0..KEYS {
        running.server.add(&format!("m{key}"), "0");
    }
    let mut most = 0;
    for turn in 0..EVENTS {
        running.server.change(&format!("m{}", turn % KEYS), &(turn + 1).to_string());
        if turn % 500 == 499 {
            settle().await;
            assert!(
                agrees(&running.server, &running.informer.lister()),
                "the cache waits for nobody"
            );
            assert!(books.iter().all(|book| book.is_right(&running.informer)), "nor do others");
            most = most.max(slow.registration().backlog());
        }
    }
    // Individual events, and one merged event per key.
    assert!(most <= 1024 + KEYS + 1, "{most}");
    assert!(slow.registration().merged() > 0);
    let news = books[0].news();
    assert_eq!(news.iter().filter(|line| line.starts_with("update")).count(), EVENTS);

    // However late, the events add up.
    let book = Book::default();
    let waiting = slow.registration().backlog();
    slow.take(waiting).for_each(async |event| book.take(&event)).await;
    assert!(book.is_right(&running.informer));
}
