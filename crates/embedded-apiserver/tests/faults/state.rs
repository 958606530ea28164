//! Faults of the server itself.

use std::io::ErrorKind;

use embedded_apiserver::{Fault, Verb};

use crate::support::{Frames, MAPS, add, broken_get, fired, get, is_silent, server};

#[tokio::test(start_paused = true)]
async fn compact() {
    let server = server();
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    let page = get(&server, &format!("{MAPS}?limit=1")).await.json();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let revision = add(&server, "d");
    server.faults().on(Verb::List).inject(Fault::Compact);
    let next = get(&server, &format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!(next.code, 410);
    assert_eq!(server.store().compacted_revision(), revision);
    assert_eq!(fired(&server), ("compact", revision, 0));
}

#[tokio::test(start_paused = true)]
async fn drop_watches() {
    let server = server();
    let mut other = Frames::watch_from_now(&server).await;
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::DropWatches);
    add(&server, "a");
    assert_eq!(watch.event().await, "ADDED a");
    assert!(watch.ends().await);
    assert!(other.ends().await);
    assert_eq!(fired(&server), ("drop-watches", server.store().revision(), 1));
}

#[tokio::test(start_paused = true)]
async fn restart() {
    let server = server();
    add(&server, "a");
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().on(Verb::List).inject(Fault::Restart);
    assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionReset);
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    assert_eq!(get(&server, MAPS).await.names(), ["a"]);
    assert_eq!(fired(&server).0, "restart");
}

#[tokio::test(start_paused = true)]
async fn restart_in_the_middle_of_a_list() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::List).after_bytes(10).inject(Fault::Restart);
    let mut list = Frames::of(&server, MAPS).await;
    assert_eq!(list.next().await.unwrap().unwrap().len(), 10);
    assert_eq!(list.breaks().await, ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn rollback() {
    let server = server();
    let before = add(&server, "a");
    let snapshot = server.store().snapshot();
    let after = add(&server, "b");
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().on(Verb::List).inject(Fault::Rollback { snapshot, silent: false });
    assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionReset);
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    assert_eq!(get(&server, MAPS).await.names(), ["a"]);
    assert_eq!(server.store().revision(), before);
    assert_eq!(fired(&server), ("rollback", after, 0));
}

#[tokio::test(start_paused = true)]
async fn silent_rollback() {
    let server = server();
    add(&server, "a");
    let snapshot = server.store().snapshot();
    let mut watch = Frames::watch_from_now(&server).await;
    server
        .faults()
        .on(Verb::Watch)
        .after_events(1)
        .inject(Fault::Rollback { snapshot, silent: true });
    let version = add(&server, "b");
    assert_eq!(watch.event().await, "ADDED b");
    assert!(is_silent(watch.next()).await);
    assert_eq!(get(&server, MAPS).await.names(), ["a"]);
    assert_eq!(add(&server, "c"), version, "the version is given out again");
    assert!(is_silent(watch.next()).await);
    add(&server, "d");
    assert_eq!(watch.event().await, "ADDED d");
}
