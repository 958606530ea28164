//! The record of requests and deliveries, as an oracle for tests of clients.

use std::time::Duration;

use embedded_apiserver::{ApiServer, EventType, Verb};
use serde_json::json;

use crate::harness::{Client, MAPS, map, version};

#[tokio::test(start_paused = true)]
async fn requests_are_recorded_in_their_order_with_their_outcome() {
    let server = ApiServer::start();
    let client = Client::through(server.service_as("jane"));
    let before = server.store().revision();
    client.post(MAPS, map("a")).await.ok();
    tokio::time::advance(Duration::from_secs(5)).await;
    client.get(&format!("{MAPS}/nope")).await.failed(404);
    client.get(&format!("{MAPS}?limit=5")).await.ok();
    client.merge("/api/v1/namespaces/default/status", json!({})).await.ok();
    client.get("/version").await.ok();
    client.request("HEAD", MAPS, &[], "").await;
    let requests = server.requests();
    let brief: Vec<_> = requests
        .iter()
        .map(|r| (r.method.as_str(), r.verb, r.resource.as_str(), r.name.as_str(), r.status))
        .collect();
    assert_eq!(
        brief,
        [
            ("POST", Some(Verb::Create), "configmaps", "", Some(201)),
            ("GET", Some(Verb::Get), "configmaps", "nope", Some(404)),
            ("GET", Some(Verb::List), "configmaps", "", Some(200)),
            ("PATCH", Some(Verb::Patch), "namespaces/status", "default", Some(200)),
            ("GET", None, "", "", Some(200)),
            ("HEAD", None, "", "", Some(405)),
        ]
    );
    assert!(requests.iter().all(|request| request.user == "jane"));
    assert!(requests.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(requests[2].uri, format!("{MAPS}?limit=5"));
    assert_eq!((requests[0].revision, requests[1].revision), (before, before + 1));
    assert_eq!(requests[1].at.as_secs() - requests[0].at.as_secs(), 5);
    server.clear_record();
    assert!(server.requests().is_empty() && server.deliveries().is_empty());
}

/// Anyone who can reach the socket can send these.
#[tokio::test(start_paused = true)]
async fn requests_without_a_token_take_little_memory() {
    let server = ApiServer::start();
    Client::of(&server).get(MAPS).await.ok();
    let stranger = Client::through(server.service());
    let uri = format!("{MAPS}/{}?labelSelector={0}", "x".repeat(30_000));
    let sent = 2 * embedded_apiserver::limits::RECORD_REFUSED_MAX;
    for _ in 0..sent {
        assert_eq!(stranger.request(&"X".repeat(5_000), &uri, &[], "").await.code, 401);
    }
    let requests = server.requests();
    assert_eq!(requests[0].status, Some(200), "requests of users are not pushed out");
    assert!(requests.len() < sent);
    let texts = |r: &embedded_apiserver::RequestRecord| {
        r.uri.len() + r.method.len() + r.name.len() + r.namespace.len() + r.resource.len()
    };
    assert!(requests.iter().all(|request| texts(request) < 2_000));
    assert!(uri.starts_with(&requests.last().unwrap().uri));
    assert_eq!(requests.last().unwrap().status, Some(401));
}

/// Objects that a test sets up are not a client's requests.
#[tokio::test(start_paused = true)]
async fn what_a_test_does_directly_is_not_recorded() {
    let server = ApiServer::start();
    server.create(map("a")).unwrap();
    server.delete("configmaps", "default", "a").unwrap();
    assert!(server.requests().is_empty());
}

/// Objects can be created with an age, and read without a request.
#[tokio::test(start_paused = true)]
async fn what_a_test_puts_in_place_can_be_old_and_is_listed_in_order() {
    let at = "2026-03-01T10:00:00Z".parse().unwrap();
    let server = ApiServer::builder().starting_at(at).build();
    server.create(map("b")).unwrap();
    let aged = server.create_aged(map("a"), Duration::from_secs(86_400)).unwrap();
    assert_eq!(aged["metadata"]["creationTimestamp"], "2026-02-28T10:00:00Z");
    let ancient = server.create_aged(map("c"), Duration::MAX).unwrap();
    assert_eq!(ancient["metadata"]["creationTimestamp"], "1970-01-01T00:00:00Z");
    let listed = |namespace| -> Vec<String> {
        let maps = server.list("configmaps", namespace);
        maps.iter().map(|map| map["metadata"]["name"].to_string()).collect()
    };
    assert_eq!(listed("default"), ["\"a\"", "\"b\"", "\"c\""]);
    assert_eq!(listed("").len(), 3);
    assert!(listed("kube-system").is_empty());
    assert!(server.list("nonsense", "").is_empty());
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(server.now().to_string(), "2026-03-01T10:00:05Z");
}

#[tokio::test(start_paused = true)]
async fn deliveries_are_what_each_watch_was_given() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut all = client.watch(&format!("{MAPS}?watch=1&allowWatchBookmarks=true")).await;
    let mut one = client.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Db")).await;
    let a = version(&client.post(MAPS, map("a")).await.ok());
    let b = version(&client.post(MAPS, map("b")).await.ok());
    client.delete(&format!("{MAPS}/a")).await.ok();
    all.events(4).await;
    one.events(1).await;
    let watches: Vec<_> =
        server.requests().into_iter().filter(|r| r.verb == Some(Verb::Watch)).collect();
    let given = |watch: u64| -> Vec<(EventType, String, u64)> {
        let deliveries = server.deliveries().into_iter().filter(|d| d.watch == watch);
        deliveries
            .map(|d| {
                let name = d.key.map(|key| key.name().to_owned()).unwrap_or_default();
                (d.event_type, name, d.version)
            })
            .collect()
    };
    assert_eq!(
        given(watches[0].id),
        [
            (EventType::Bookmark, String::new(), a - 1),
            (EventType::Added, "a".to_owned(), a),
            (EventType::Added, "b".to_owned(), b),
            (EventType::Deleted, "a".to_owned(), b + 1),
        ]
    );
    assert_eq!(given(watches[1].id), [(EventType::Added, "b".to_owned(), b)]);
}

#[tokio::test(start_paused = true)]
async fn history_has_every_state_of_an_object_its_end_included() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let changed = client.merge(&format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await.ok();
    client.delete(&format!("{MAPS}/a")).await.ok();
    let end = server.store().revision();
    let history = server.history("configmaps", "default", "a");
    assert_eq!(
        history,
        [(version(&made), Some(made)), (version(&changed), Some(changed)), (end, None),]
    );
}

/// The content of objects stays out of logs: no `Debug` output contains it.
#[tokio::test(start_paused = true)]
async fn nothing_that_can_be_printed_shows_what_is_in_objects() {
    let server = ApiServer::builder().token("hidden-token").build();
    let client = Client::of(&server);
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hidden-text"}});
    client.post("/api/v1/namespaces/default/secrets", secret).await.ok();
    let encoded = server.get("secrets", "default", "s").unwrap()["data"]["password"].clone();
    let snapshot = server.store().snapshot();
    let rollback = embedded_apiserver::Fault::Rollback { snapshot: snapshot.clone(), silent: true };
    let printed = [
        format!("{server:?} {:?} {:?} {snapshot:?}", server.store(), server.access()),
        format!("{rollback:?} {:?} {:?}", server.requests(), server.deliveries()),
    ];
    for text in printed {
        for hidden in ["hidden", encoded.as_str().unwrap()] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
}
