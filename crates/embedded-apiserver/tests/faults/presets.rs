//! Scenarios with an independent client.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt, reflector, watcher};

use crate::support::{Frames, MAPS, add, broken_get, get, server};

#[tokio::test(start_paused = true)]
async fn control_plane_upgrade() {
    let server = server();
    let version = add(&server, "a");
    add(&server, "b");
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().control_plane_upgrade();
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    for _ in 0..2 {
        assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionRefused);
    }
    for _ in 0..2 {
        assert_eq!(get(&server, MAPS).await.headers["retry-after"], "1");
    }
    assert_eq!(get(&server, MAPS).await.names(), ["a", "b"]);
    let mut watch = Frames::watch(&server, &format!("resourceVersion={version}")).await;
    assert_eq!(watch.event().await, "ERROR 410");
}

#[tokio::test(start_paused = true)]
async fn etcd_restore() {
    let server = server();
    let snapshot = server.store().snapshot();
    add(&server, "a");
    server.faults().etcd_restore(&snapshot);
    for _ in 0..3 {
        assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionRefused);
    }
    assert!(get(&server, MAPS).await.names().is_empty());
    assert_eq!(server.store().revision(), snapshot.revision());
}

#[tokio::test(start_paused = true)]
async fn stale_lists() {
    let server = server();
    add(&server, "a");
    add(&server, "b");
    server.faults().stale_lists(1, 0.5);
    let mut seen = BTreeMap::new();
    for _ in 0..40 {
        *seen.entry(get(&server, MAPS).await.names().len()).or_insert(0) += 1;
    }
    assert_eq!(seen.keys().collect::<Vec<_>>(), [&1, &2]);
}

/// Starts a kube-rs reflector in the background, and returns its cache.
fn reflect(server: &ApiServer) -> reflector::Store<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let writer = Writer::default();
    let cache = writer.as_reader();
    let stream = watcher(maps, watcher::Config::default()).default_backoff().reflect(writer);
    tokio::spawn(stream.for_each(|_| futures::future::ready(())));
    cache
}

/// Returns sorted names and versions, of a cache or of the server.
fn sorted(maps: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut maps: Vec<_> = maps.into_iter().collect();
    maps.sort();
    maps
}

#[tokio::test(start_paused = true)]
async fn kube_gets_through_a_flaky_network() {
    let server = server();
    let rules = server.faults().flaky_network(0.2);
    let cache = reflect(&server);
    // kube's jitter determines the number of requests, so this continues until each fault has
    // fired.
    let struck = |name: &str| server.faults().fired().iter().any(|fired| fired.name == name);
    let all_struck = || ["latency", "reset", "lost-answer"].into_iter().all(struck);
    let mut added = 0;
    while added < 100 || !all_struck() {
        assert!(added < 5_000, "some fault never strikes: {:?}", server.faults().fired());
        add(&server, &format!("map-{added:04}"));
        added += 1;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    for rule in rules {
        assert!(server.faults().remove(rule));
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let list = get(&server, MAPS).await.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let there = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]);
    let there = there.map(|meta| (text(&meta["name"]), text(&meta["resourceVersion"])));
    let cached = cache.state().into_iter().map(|map| map.metadata.clone());
    let cached = cached.map(|meta| (meta.name.unwrap(), meta.resource_version.unwrap()));
    assert_eq!(sorted(cached), sorted(there));
}

#[tokio::test(start_paused = true)]
async fn kube_lists_anew_after_gone() {
    let server = server();
    add(&server, "a");
    let cache = reflect(&server);
    cache.wait_until_ready().await.unwrap();
    server.clear_record();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    tokio::time::sleep(Duration::from_secs(60)).await;
    add(&server, "b");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cache.len(), 2);
    assert!(server.requests().iter().any(|request| request.verb == Some(Verb::List)));
}
