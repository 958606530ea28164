//! Watches over time: bookmarks and timeouts.

#[path = "shared/wire.rs"]
mod wire;

use std::time::Duration;

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::Instant;
use wire::{Given, Wire, version_of};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_counts_the_writes_to_other_resources() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    let from = server.store().revision();
    let uri = format!("{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={from}");
    let mut watch = wire.watch(&uri).await;
    assert_eq!(watch.next_now(), Given::Nothing);
    for name in ["a", "b", "c"] {
        server.create(object("Node", name)).unwrap();
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    let Given::Event(bookmark) = watch.next_now() else { panic!("a minute has passed") };
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(version_of(&bookmark["object"]), server.store().revision());
    assert_eq!(watch.next_now(), Given::Nothing);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_outlives_the_compaction_of_other_resources() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    let from = server.store().revision();
    let mut watch = wire.watch(&format!("{MAPS}?watch=1&resourceVersion={from}")).await;
    assert_eq!(watch.next_now(), Given::Nothing);
    server.create(object("Node", "a")).unwrap();
    server.create(object("Node", "b")).unwrap();
    server.store().compact(u64::MAX);
    let made = server.create(object("ConfigMap", "m")).unwrap();
    assert_eq!(watch.next_now(), Given::Event(json!({"type": "ADDED", "object": made})));
}

#[tokio::test(start_paused = true)]
async fn a_short_watch_has_a_last_bookmark_before_its_end() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    let started = Instant::now();
    let uri = format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=30");
    let mut watch = wire.watch(&uri).await;
    let mut last = None;
    while let Some(event) = watch.next().await {
        if event["type"] == "BOOKMARK" {
            last = Some(started.elapsed());
        }
    }
    assert_eq!(started.elapsed().as_secs(), 30);
    assert_eq!(last.map(|at| at.as_secs()), Some(28));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_though_there_is_always_more_to_send() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    let mut watch = wire.watch(&format!("{MAPS}?watch=1&timeoutSeconds=10")).await;
    for second in 0..20 {
        server.create(object("ConfigMap", &format!("m{second}"))).unwrap();
        match watch.next_now() {
            Given::Event(_) => assert!(second < 10, "the end was at ten"),
            other => return assert_eq!((other, second), (Given::End, 10)),
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    panic!("it never ended");
}

#[tokio::test(start_paused = true)]
async fn any_timeout_is_taken() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    for seconds in [1, u32::MAX.into(), i64::MAX] {
        let mut watch = wire.watch(&format!("{MAPS}?watch=1&timeoutSeconds={seconds}")).await;
        assert_eq!(watch.next_now(), Given::Nothing, "{seconds}");
    }
    let endless = ApiServer::builder().bookmark_interval(Duration::MAX).build();
    let wire = Wire::new(&endless, "u");
    let mut watch = wire.watch(&format!("{MAPS}?watch=1&allowWatchBookmarks=1")).await;
    while watch.next_now() != Given::Nothing {}
}
