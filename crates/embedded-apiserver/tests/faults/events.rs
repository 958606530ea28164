//! Watches with altered events.

use embedded_apiserver::{Fault, Verb};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};

use crate::support::{Frames, MAPS, add, delivered, fired, get, is_silent, server};

/// A watch with `sendInitialEvents`.
const STREAMING: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                         &allowWatchBookmarks=true";

#[tokio::test(start_paused = true)]
async fn drop_event() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::DropEvent);
    for name in ["a", "b"] {
        add(&server, name);
    }
    let revision = add(&server, "c");
    assert_eq!(watch.event().await, "ADDED a");
    assert_eq!(watch.event().await, "ADDED c");
    assert_eq!(fired(&server), ("drop-event", revision, 1));
    assert_eq!(delivered(&server), ["ADDED a", "ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn duplicate_event() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::DuplicateEvent);
    add(&server, "a");
    add(&server, "b");
    let mut watch = Frames::watch(&server, "").await;
    for expected in ["ADDED a", "ADDED a", "ADDED b"] {
        assert_eq!(watch.event().await, expected);
    }
    assert_eq!(fired(&server).0, "duplicate-event");
    assert_eq!(delivered(&server), ["ADDED a", "ADDED a", "ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn every_event_twice() {
    let server = server();
    server.faults().on(Verb::Watch).always().inject(Fault::DuplicateEvent);
    let mut watch = Frames::watch_from_now(&server).await;
    for name in ["a", "b"] {
        add(&server, name);
        assert_eq!(watch.event().await, format!("ADDED {name}"));
        assert_eq!(watch.event().await, format!("ADDED {name}"));
        assert!(is_silent(watch.next()).await);
    }
}

#[tokio::test(start_paused = true)]
async fn reorder_events() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().on(Verb::Watch).inject(Fault::ReorderEvents);
    add(&server, "a");
    assert!(is_silent(watch.next()).await);
    add(&server, "b");
    add(&server, "c");
    for expected in ["ADDED b", "ADDED a", "ADDED c"] {
        assert_eq!(watch.event().await, expected);
    }
    assert_eq!(fired(&server).0, "reorder-events");
    assert_eq!(delivered(&server), ["ADDED b", "ADDED a", "ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn every_other_event_overtakes_one() {
    let server = server();
    server.faults().on(Verb::Watch).always().inject(Fault::ReorderEvents);
    let mut watch = Frames::watch_from_now(&server).await;
    for name in ["a", "b", "c", "d"] {
        add(&server, name);
    }
    for expected in ["ADDED b", "ADDED a", "ADDED d", "ADDED c"] {
        assert_eq!(watch.event().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_are_no_events_to_lose() {
    let server = server();
    let version = add(&server, "a");
    add(&server, "b");
    server.store().compact(u64::MAX);
    for fault in [Fault::DropEvent, Fault::ReorderEvents, Fault::DuplicateEvent] {
        server.faults().on(Verb::Watch).always().inject(fault);
    }
    let mut watch = Frames::watch(&server, &format!("resourceVersion={version}")).await;
    assert_eq!(watch.event().await, "ERROR 410");
    assert!(watch.ends().await);
    assert_eq!(server.faults().fired(), []);
}

#[tokio::test(start_paused = true)]
async fn an_event_behind_its_bookmark() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::ReorderEvents);
    add(&server, "a");
    let mut watch = Frames::watch(&server, STREAMING).await;
    assert_eq!(watch.event().await, "BOOKMARK end");
    assert_eq!(watch.event().await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn bookmark_lost() {
    let server = server();
    let revision = server.store().revision();
    server.faults().on(Verb::Watch).times(2).inject(Fault::BookmarkLost);
    let start = tokio::time::Instant::now();
    let mut watch = Frames::watch(&server, &format!("{STREAMING}&resourceVersion=0")).await;
    assert_eq!(watch.event().await, "BOOKMARK end");
    assert_eq!(watch.event().await, format!("BOOKMARK {revision}"));
    assert_eq!(start.elapsed().as_secs(), 30, "two of them are missing");
    assert_eq!(server.faults().fired().len(), 2);
    assert_eq!(delivered(&server).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn end_bookmark_missing() {
    let server = server();
    let revision = add(&server, "a");
    server.faults().on(Verb::Watch).inject(Fault::EndBookmarkMissing);
    let mut watch = Frames::watch(&server, STREAMING).await;
    assert_eq!(watch.event().await, "ADDED a");
    assert_eq!(watch.event().await, format!("BOOKMARK {revision}"), "a later one, not the end");
    assert_eq!(fired(&server), ("end-bookmark-missing", revision, 1));
}

#[tokio::test(start_paused = true)]
async fn kube_sees_a_gap() {
    let server = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let now = server.store().revision().to_string();
    server.faults().on(Verb::Watch).resource("configmaps").inject(Fault::DropEvent);
    let mut watch = maps.watch(&WatchParams::default(), &now).await.unwrap().boxed();
    add(&server, "a");
    add(&server, "b");
    let event = watch.try_next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("b")));
}

#[tokio::test(start_paused = true)]
async fn items_of_a_list() {
    let server = server();
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    let cases = [
        (Fault::DropEvent, &["a", "c"][..]),
        (Fault::DuplicateEvent, &["a", "b", "b", "c"]),
        (Fault::ReorderEvents, &["a", "c", "b"]),
    ];
    for (fault, expected) in cases {
        let name = fault.name();
        server.faults().on(Verb::List).after_events(1).inject(fault);
        assert_eq!(get(&server, MAPS).await.names(), expected, "{name}");
        assert_eq!(server.faults().fired().last().unwrap().name, name);
    }
    // There is no such item.
    server.faults().on(Verb::List).after_events(3).inject(Fault::DropEvent);
    assert_eq!(get(&server, MAPS).await.names(), ["a", "b", "c"]);
    assert_eq!(server.faults().pending(), 1);
}
