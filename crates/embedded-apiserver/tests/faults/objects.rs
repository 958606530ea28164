//! Damaged objects.

use embedded_apiserver::{ApiServer, Fault, Verb};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchParams};
use serde_json::{Value, json};

use crate::support::{Frames, MAPS, add, delivered, fired, get, server};

fn maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

#[tokio::test(start_paused = true)]
async fn wrong_type_in_a_watch() {
    let server = server();
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::WrongType);
    let mut watch = Frames::watch_from_now(&server).await;
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    assert_eq!(watch.event().await, "ADDED a");
    let line = watch.next().await.unwrap().unwrap();
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "b");
    assert_eq!(event["object"]["data"], 7);
    assert!(serde_json::from_value::<ConfigMap>(event["object"].clone()).is_err());
    assert_eq!(watch.event().await, "ADDED c");
    assert_eq!(fired(&server).2, 1);
    assert_eq!(delivered(&server), ["ADDED a", "ADDED b !wrong-type", "ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn wrong_type_in_other_answers() {
    let server = server();
    add(&server, "a");
    add(&server, "b");
    server.faults().on(Verb::List).after_events(1).inject(Fault::WrongType);
    let list = get(&server, MAPS).await.json();
    assert_eq!(list["items"][0]["data"], json!({"key": "Größe"}));
    assert_eq!(list["items"][1]["data"], 7);
    assert_eq!(fired(&server).0, "wrong-type");

    server.faults().on(Verb::Get).inject(Fault::WrongType);
    assert!(maps(&server).get("a").await.is_err());
    assert!(maps(&server).get("a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn oversized() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    let bytes = 5 * 1024 * 1024;
    server.faults().on(Verb::Watch).inject(Fault::Oversized { bytes });
    add(&server, "a");
    let line = watch.next().await.unwrap().unwrap();
    assert!((bytes..bytes + 1000).contains(&line.len()));
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(event["object"]["data"]["key"], "Größe");
    assert_eq!(fired(&server).0, "oversized");
    assert_eq!(delivered(&server), ["ADDED a !oversized"]);

    server.faults().on(Verb::List).inject(Fault::Oversized { bytes });
    let list = maps(&server).list(&ListParams::default()).await.unwrap();
    let annotations = list.items[0].metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["embedded-apiserver/padding"].len(), bytes);
}

#[tokio::test(start_paused = true)]
async fn too_deep() {
    let server = server();
    let now = server.store().revision().to_string();
    let levels = 10_000;
    server.faults().on(Verb::Watch).inject(Fault::TooDeep { levels });
    let mut watch = Frames::watch_from_now(&server).await;
    let mut kube = maps(&server).watch(&WatchParams::default(), &now).await.unwrap().boxed();
    add(&server, "a");
    let line = watch.next().await.unwrap().unwrap();
    assert!(line.windows(8).filter(|window| window == br#"{"f:a":{"#).count() == levels);
    let error = serde_json::from_slice::<Value>(&line).unwrap_err();
    assert!(error.to_string().contains("recursion limit"), "{error}");
    assert_eq!(fired(&server).0, "too-deep");
    assert!(kube.try_next().await.is_ok(), "it was for one watch");

    server.faults().on(Verb::Get).inject(Fault::TooDeep { levels });
    assert!(maps(&server).get("a").await.is_err());
    server.faults().on(Verb::Get).inject(Fault::TooDeep { levels: 20 });
    assert!(maps(&server).get("a").await.is_ok(), "deep is not too deep");
}
