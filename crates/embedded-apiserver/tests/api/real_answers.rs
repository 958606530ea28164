//! Behaviour of a real server that comparing its responses revealed: see `docs/differences.md`.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, definition, names};

#[tokio::test(start_paused = true)]
async fn metadata_hold_what_kubernetes_knows_and_nothing_empty() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    let sent = json!({"metadata": {
        "name": "a", "colour": "blue", "finalizers": [], "labels": {}, "generation": 7,
        "ownerReferences": [owner, owner],
    }, "data": {}, "immutable": null});
    let made = client.post(MAPS, sent).await.ok();
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(made["metadata"]["generation"], 7);
    for absent in ["colour", "finalizers", "labels"] {
        assert!(made["metadata"].get(absent).is_none(), "{absent}");
    }
    assert!(made.get("data").is_none() && made.get("immutable").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_data_of_a_config_map_are_checked() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let map = |data: Value| json!({"metadata": {"name": "a"}, "data": data});
    client.post(MAPS, map(json!({"a": 1}))).await.failed(400);
    client.post(MAPS, map(json!([]))).await.failed(400);
    client.post(MAPS, map(json!({"a b": "c"}))).await.failed(422);
    let large = client.post(MAPS, map(json!({"a": "x".repeat(1024 * 1024 + 1)}))).await;
    large.failed(422);
    let mut fixed = map(json!({"a": "b"}));
    fixed["immutable"] = json!(true);
    client.post(MAPS, fixed).await.ok();
    let path = format!("{MAPS}/a");
    let refused = client.put(&path, map(json!({"a": "c"}))).await.failed(422);
    let fields: Vec<_> =
        refused["details"]["causes"].as_array().unwrap().iter().map(|c| &c["field"]).collect();
    assert_eq!(fields, ["immutable", "data"]);
    client.merge(&path, json!({"metadata": {"labels": {"x": "y"}}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_not_there_can_be_replaced() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.ok();
    let path = format!("{MAPS}/a");
    let replace = |path: &str| json!([{"op": "replace", "path": path, "value": "x"}]);
    let patched = client.json_patch(&path, replace("/data/new")).await.ok();
    assert_eq!(patched["data"], json!({"k": "v", "new": "x"}));
    client.json_patch(&path, replace("/none/new")).await.failed(422);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_keeps_the_label_with_its_name() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for label in [json!(null), json!("x")] {
        let patch = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": label}}});
        let patched = client.merge("/api/v1/namespaces/default", patch).await.ok();
        assert_eq!(patched["metadata"]["labels"]["kubernetes.io/metadata.name"], "default");
    }
}

#[tokio::test(start_paused = true)]
async fn options_of_writes_are_checked() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let map = json!({"metadata": {"name": "a"}});
    let manager = "m".repeat(129);
    for query in [format!("fieldManager={manager}"), "fieldValidation=Loose".to_owned()] {
        client.post(&format!("{MAPS}?{query}"), map.clone()).await.failed(422);
    }
    client.post(MAPS, map).await.ok();
    let path = format!("{MAPS}/a");
    client.merge(&format!("{path}?force=true"), json!({})).await.failed(422);
    // Only server-side apply can be forced.
    let apply = [("content-type", "application/apply-patch+yaml")];
    let forced = format!("{path}?fieldManager=m&force=true");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    client.request("PATCH", &forced, &apply, config.to_string()).await.ok();
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    client.delete_with(&path, both).await.failed(422);
    let text = [("content-type", "text/plain")];
    client.request("DELETE", &path, &text, "{}").await.failed(415);
    client.delete(&format!("{MAPS}?resourceVersion=x")).await.failed(400);
    assert_eq!(names(&client.get(MAPS).await.ok()), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn versions_that_a_group_has_not_are_a_status_and_unknown_groups_are_not() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for path in ["/api/v2", "/apis/apps/v9"] {
        client.get(path).await.failed(404);
    }
    let unknown = client.get("/apis/none.example.com/v1").await;
    assert_eq!((unknown.code, &*unknown.body), (404, &b"404 page not found\n"[..]));
}

#[tokio::test(start_paused = true)]
async fn lists_and_subresources_of_custom_objects_have_their_own_ways() {
    let server = ApiServer::start();
    server.create(definition("widgets", "Widget")).unwrap();
    let client = Client::of(&server);
    let path = "/apis/tests.example.com/v1/namespaces/default/widgets";
    assert_eq!(client.get(path).await.ok()["metadata"]["continue"], "");
    let missing = client.get(&format!("{path}/a/scale")).await.failed(404);
    assert_eq!(missing["message"], r#"widgets.tests.example.com "a" not found"#);
    let xml = client.get_as(path, "application/xml").await.failed(406);
    assert!(xml.get("details").is_none(), "{xml}");
}

#[tokio::test(start_paused = true)]
async fn new_objects_have_the_status_that_is_never_left_out() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    let made = client.post(path, json!({"metadata": {"name": "a"}, "status": {"x": 1}})).await.ok();
    assert_eq!(made["status"], json!({"replicas": 0}));
}

#[tokio::test(start_paused = true)]
async fn events_have_the_fields_that_are_never_left_out_in_either_group() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {}, "message": "m"});
    let made = client.post("/api/v1/namespaces/default/events", event).await.ok();
    for (field, value) in [
        ("eventTime", json!(null)),
        ("firstTimestamp", json!(null)),
        ("reportingComponent", json!("")),
        ("source", json!({})),
    ] {
        assert_eq!(made.get(field), Some(&value), "{field}");
    }
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let other = client.get(&format!("{path}/e")).await.ok();
    assert_eq!(other.get("deprecatedFirstTimestamp"), Some(&json!(null)));
    assert!(other.get("reportingController").is_none(), "{other}");
    let list = client.get(path).await.ok();
    assert_eq!(list["items"][0]["note"], "m");
    assert!(list["items"][0].get("kind").is_none(), "{list}");
}

/// A client may request the list's type by mistake, instead of `PartialObjectMetadata`.
#[tokio::test(start_paused = true)]
async fn a_watch_that_asks_for_a_list_ends_at_its_first_event() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let version = server.store().revision();
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut watch = client.watch_as(&path, list).await;
    watch.is_quiet().await;
    client.post(MAPS, json!({"metadata": {"name": "a"}})).await.ok();
    assert_eq!(watch.next().await, None);
}
