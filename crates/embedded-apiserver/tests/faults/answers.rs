//! Wrong responses.

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::support::{Frames, MAPS, add, delivered, fired, get, record, server};

#[tokio::test(start_paused = true)]
async fn status() {
    let server = server();
    let revision = add(&server, "a");
    server.faults().on(Verb::List).inject(Fault::status(503));
    let answer = get(&server, MAPS).await;
    assert_eq!(answer.code, 503);
    assert_eq!(answer.json()["reason"], "ServiceUnavailable");
    assert!(!answer.headers.contains_key("retry-after"));
    assert_eq!(fired(&server), ("status", revision, 0));
    assert_eq!(record(&server, 1).status, Some(503));
}

#[tokio::test(start_paused = true)]
async fn status_with_retry_after() {
    let server = server();
    for text in ["5", "0", "-1", "Fri, 31 Dec 1999 23:59:59 GMT"] {
        server.faults().any().inject(Fault::status_retry_after(429, text));
        let answer = get(&server, MAPS).await;
        assert_eq!(answer.code, 429);
        assert_eq!(answer.headers["retry-after"], text);
        let seconds = answer.json()["details"]["retryAfterSeconds"].as_u64();
        assert_eq!(seconds, (text == "5").then_some(5));
    }
}

#[tokio::test(start_paused = true)]
async fn kube_sees_the_status() {
    let server = server();
    server.faults().on(Verb::List).inject(Fault::status(500));
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let error = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 500));
    assert!(maps.list(&ListParams::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn status_in_the_stream() {
    let server = server();
    add(&server, "a");
    add(&server, "b");
    server.faults().on(Verb::Watch).after_events(1).always().inject(Fault::status(500));
    let mut watch = Frames::watch(&server, "").await;
    assert_eq!(watch.event().await, "ADDED a");
    assert_eq!(watch.event().await, "ERROR 500");
    assert!(watch.ends().await);
    assert_eq!(fired(&server).2, 1);
    assert_eq!(delivered(&server), ["ADDED a", "ERROR 0"]);
}

#[tokio::test(start_paused = true)]
async fn gone_as_status() {
    let server = server();
    let revision = add(&server, "a");
    server.faults().on(Verb::Watch).inject(Fault::Gone);
    let answer = get(&server, &format!("{MAPS}?watch=true&resourceVersion=3")).await;
    assert_eq!(answer.code, 410);
    assert_eq!(answer.json()["reason"], "Expired");
    let message = format!("too old resource version: 3 ({revision})");
    assert_eq!(answer.json()["message"], message);
    assert_eq!(fired(&server), ("gone", revision, 0));
}

#[tokio::test(start_paused = true)]
async fn gone_in_the_stream() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    let revision = add(&server, "a");
    assert_eq!(watch.event().await, "ADDED a");
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    let error: Value = serde_json::from_slice(&watch.next().await.unwrap().unwrap()).unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    let message = format!("too old resource version: {revision} ({revision})");
    assert_eq!(error["object"]["message"], message);
    assert!(watch.ends().await);
    assert_eq!(fired(&server), ("gone", revision, 1));
    assert_eq!(delivered(&server), ["ADDED a", "ERROR 0"]);
}

#[tokio::test(start_paused = true)]
async fn html() {
    let server = server();
    for code in [502, 200] {
        server.faults().on(Verb::List).inject(Fault::html(code));
        let answer = get(&server, MAPS).await;
        assert_eq!(answer.code, code);
        assert_eq!(answer.headers["content-type"], "text/html");
        assert!(answer.bytes.starts_with(b"<html>"));
    }
    assert_eq!(server.faults().fired()[0].name, "html");
}

#[tokio::test(start_paused = true)]
async fn content_type() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::List).inject(Fault::content_type("application/cbor"));
    let answer = get(&server, MAPS).await;
    assert_eq!(answer.headers["content-type"], "application/cbor");
    assert_eq!(answer.names(), ["a"]);
    assert_eq!(fired(&server).0, "content-type");
    assert_eq!(get(&server, MAPS).await.headers["content-type"], "application/json");
}

#[tokio::test(start_paused = true)]
async fn stale_list() {
    let server = server();
    let first = add(&server, "a");
    add(&server, "b");
    server.faults().on(Verb::List).inject(Fault::StaleList { versions: 1 });
    let answer = get(&server, MAPS).await;
    assert_eq!(answer.names(), ["a"]);
    assert_eq!(answer.json()["metadata"]["resourceVersion"], first.to_string());
    assert_eq!(fired(&server).0, "stale-list");
    assert_eq!(get(&server, MAPS).await.names(), ["a", "b"]);

    // A compacted state cannot be shown.
    server.store().compact(u64::MAX);
    server.faults().on(Verb::List).inject(Fault::StaleList { versions: 1 });
    assert_eq!(get(&server, MAPS).await.names(), ["a", "b"]);
}
