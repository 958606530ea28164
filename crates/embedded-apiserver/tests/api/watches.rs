//! The events of a watch.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{Client, Event, MAPS, labelled, map, version};

#[tokio::test(start_paused = true)]
async fn entering_a_selection_is_added_and_leaving_it_is_deleted() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let from = server.store().revision();
    let selected = format!("{MAPS}?watch=1&resourceVersion={from}&labelSelector=on%3Dyes");
    let mut watch = client.watch(&selected).await;
    client.post(MAPS, map("a")).await.ok();
    let label = |value: &str| json!({"metadata": {"labels": {"on": value}}, "data": {"v": value}});
    let path = format!("{MAPS}/a");
    let entered = client.merge(&path, label("yes")).await.ok();
    let changed = client.merge(&path, json!({"data": {"v": "2"}})).await.ok();
    let left = client.merge(&path, label("no")).await.ok();
    client.merge(&path, json!({"data": {"v": "unseen"}})).await.ok();
    let back = client.merge(&path, label("yes")).await.ok();
    client.delete(&path).await.ok();
    let end = server.store().revision();

    let events = watch.events(5).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]);
    assert_eq!(events[0].object, entered);
    assert_eq!(events[1].object, changed);
    // The last state that matched the selector, with the version of the change.
    let mut last = changed;
    last["metadata"]["resourceVersion"] = left["metadata"]["resourceVersion"].clone();
    assert_eq!(events[2].object, last);
    let mut gone = back.clone();
    gone["metadata"]["resourceVersion"] = json!(end.to_string());
    assert_eq!((&events[3].object, &events[4].object), (&back, &gone));
    watch.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn field_selections_are_entered_and_left_alike() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let pods = "/api/v1/namespaces/default/pods";
    let running = "/api/v1/pods?watch=1&fieldSelector=status.phase%3DRunning,spec.nodeName%3Dn1";
    let mut watch = client.watch(running).await;
    client.post(pods, json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}})).await.ok();
    for phase in ["Running", "Running", "Succeeded"] {
        let status = json!({"status": {"phase": phase, "message": phase}});
        client.merge(&format!("{pods}/p/status"), status).await.ok();
        client
            .merge(&format!("{pods}/p"), json!({"metadata": {"labels": {"x": phase}}}))
            .await
            .ok();
    }
    let events = watch.events(3).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED"]);
    assert_eq!(events[2].object["status"]["phase"], "Running");
    watch.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_never_selected_is_not_deleted_either() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut watch = client.watch(&format!("{MAPS}?watch=1&labelSelector=on")).await;
    client.post(MAPS, map("a")).await.ok();
    client.delete(&format!("{MAPS}/a")).await.ok();
    watch.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_namespace_is_told_of_no_other() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let system = "/api/v1/namespaces/kube-system/configmaps";
    let mut one = client.watch(&format!("{MAPS}?watch=1")).await;
    let mut other = client.watch(&format!("{system}?watch=1")).await;
    let mut all = client.watch("/api/v1/configmaps?watch=1").await;
    client.post(system, map("a")).await.ok();
    client.post(MAPS, map("b")).await.ok();
    client.delete(&format!("{system}/a")).await.ok();
    let brief = |events: Vec<Event>| -> Vec<String> {
        events.iter().map(|e| format!("{} {}", e.kind, e.brief().1)).collect()
    };
    assert_eq!(brief(one.events(1).await), ["ADDED b"]);
    assert_eq!(brief(other.events(2).await), ["ADDED a", "DELETED a"]);
    assert_eq!(brief(all.events(3).await), ["ADDED a", "ADDED b", "DELETED a"]);
    for watch in [&mut one, &mut other, &mut all] {
        watch.is_quiet().await;
    }
}

/// Bookmarks are sent at the interval, with the latest version even if that is of another resource,
/// so that a client that resumes from one misses and repeats nothing.
#[tokio::test(start_paused = true)]
async fn bookmarks_come_at_the_interval_with_the_newest_version() {
    let interval = Duration::from_secs(10);
    let server = ApiServer::builder().bookmark_interval(interval).build();
    let client = Client::of(&server);
    let from = server.store().revision();
    let path = format!("{MAPS}?watch=1&resourceVersion={from}");
    let mut watch = client.watch(&format!("{path}&allowWatchBookmarks=true")).await;
    let mut plain = client.watch(&path).await;
    let started = Instant::now();
    for round in 1..=3 {
        let name = format!("s{round}");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        server.create(secret).unwrap();
        let bookmark = watch.event().await;
        let want = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": server.store().revision().to_string()},
        });
        assert_eq!((bookmark.kind.as_str(), bookmark.object), ("BOOKMARK", want));
        assert_eq!(started.elapsed().as_secs(), round * interval.as_secs());
    }
    server.create(map("a")).unwrap();
    assert_eq!(watch.event().await.brief().1, "a");
    assert_eq!(watch.event().await.kind, "BOOKMARK");
    assert_eq!(plain.event().await.brief().1, "a", "bookmarks are for those who ask");
}

#[tokio::test(start_paused = true)]
async fn the_last_bookmark_comes_just_before_a_watch_times_out() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let from = server.store().revision();
    let path =
        format!("{MAPS}?watch=1&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=30");
    let mut watch = client.watch(&path).await;
    let started = Instant::now();
    assert_eq!(watch.event().await.kind, "BOOKMARK");
    assert_eq!(started.elapsed().as_secs(), 28);
    assert_eq!(watch.next().await, None);
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn many_changes_come_in_the_order_of_their_versions() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let from = server.store().revision();
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={from}")).await;
    for at in 0..1000 {
        server.create(labelled(&format!("m{at}"), json!({"n": at.to_string()}))).unwrap();
    }
    let events = watch.events(1000).await;
    for (at, event) in events.iter().enumerate() {
        let number = u64::try_from(at).unwrap();
        assert_eq!(event.brief(), ("ADDED", &*format!("m{at}"), from + 1 + number));
    }
}

/// An object in a watch is equal to that of a get.
#[tokio::test(start_paused = true)]
async fn events_carry_whole_objects() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut watch = client.watch(&format!("{MAPS}?watch=1")).await;
    let mut odd = labelled("a", json!({"x": "y"}));
    odd["data"] = json!({"quote": "\"\\\n\u{7f}é世", "resourceVersion": "17"});
    odd["metadata"]["annotations"] = json!({"resourceVersion": "\"resourceVersion\":\"1\""});
    let made = client.post(MAPS, odd).await.ok();
    assert_eq!(watch.event().await.object, made);
    assert_eq!(client.get(&format!("{MAPS}/a")).await.ok(), made);
    assert_eq!(version(&made), server.store().revision());
    assert_eq!(made["data"]["quote"], "\"\\\n\u{7f}é世");
}
