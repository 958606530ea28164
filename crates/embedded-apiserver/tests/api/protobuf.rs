//! Protobuf, which client-go and kubectl send and request by default.

use embedded_apiserver::{ApiServer, Fault, Verb};
use kube_schema::{Envelope, MEDIA_TYPE};
use serde_json::{Value, json};

use crate::harness::{Answer, Client, MAPS, MERGE_PATCH, definition, map, name, names};

const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/tests.example.com/v1/namespaces/default/widgets";

async fn send(client: &Client, method: &str, path: &str, object: &Value) -> Answer {
    let headers = [("accept", MEDIA_TYPE), ("content-type", MEDIA_TYPE)];
    client.request(method, path, &headers, kube_schema::to_vec(object).expect("it fits")).await
}

fn settings(name: &str) -> Value {
    let mut map = map(name);
    map["data"] = json!({"colour": "blue"});
    map["binaryData"] = json!({"bytes": "AP8="});
    map
}

#[tokio::test(start_paused = true)]
async fn objects_are_written_and_read() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = send(&client, "POST", MAPS, &settings("a")).await;
    assert_eq!(made.code, 201);
    let mut object = made.protobuf();
    assert_eq!(object["kind"], "ConfigMap");
    assert_eq!(object["data"], json!({"colour": "blue"}));
    let path = format!("{MAPS}/a");
    // Both codecs give the same object.
    assert_eq!(client.get(&path).await.ok(), object);
    assert_eq!(client.get_as(&path, BOTH).await.protobuf(), object);
    object["data"]["colour"] = json!("green");
    let changed = send(&client, "PUT", &path, &object).await.protobuf();
    assert_eq!(changed["data"]["colour"], "green");
    let headers = [("accept", MEDIA_TYPE), ("content-type", MERGE_PATCH)];
    let patched = client.request("PATCH", &path, &headers, r#"{"data":{"size":"s"}}"#).await;
    assert_eq!(patched.protobuf()["data"], json!({"colour": "green", "size": "s"}));
    let options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}});
    let refused = send(&client, "DELETE", &path, &options).await;
    assert_eq!(refused.protobuf()["reason"], "Conflict", "{}", refused.protobuf());
    let options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    let gone = send(&client, "DELETE", &path, &options).await.protobuf();
    assert_eq!((&gone["status"], &gone["details"]["name"]), (&json!("Success"), &json!("a")));
    assert_eq!(client.get(&path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn lists_are_whole_and_in_pages() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for at in 0..300 {
        let mut map = settings(&format!("m{at:03}"));
        map["data"]["long"] = json!("x".repeat(500));
        server.create(map).unwrap();
    }
    let json = client.get(MAPS).await.ok();
    assert_eq!(client.get_as(MAPS, BOTH).await.protobuf(), json);
    let page = client.get_as(&format!("{MAPS}?limit=7"), MEDIA_TYPE).await.protobuf();
    assert_eq!((names(&page).len(), &page["metadata"]["remainingItemCount"]), (7, &json!(293)));
    let empty = client.get_as("/api/v1/secrets", MEDIA_TYPE).await.protobuf();
    assert_eq!((&empty["kind"], empty.get("items")), (&json!("SecretList"), None));
    let gone = client.request("DELETE", MAPS, &[("accept", MEDIA_TYPE)], "").await.protobuf();
    assert_eq!(names(&gone).len(), 300);
}

#[tokio::test(start_paused = true)]
async fn watches_are_frames() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(settings("a")).unwrap();
    let path = format!(
        "{MAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let mut watch = client.watch_as(&path, MEDIA_TYPE).await;
    let first = watch.frame().await.unwrap();
    assert_eq!(
        (&*first.kind, first.object),
        ("ADDED", client.get(&format!("{MAPS}/a")).await.ok())
    );
    let end = watch.frame().await.unwrap();
    assert_eq!((&*end.kind, &end.object["kind"]), ("BOOKMARK", &json!("ConfigMap")));
    assert_eq!(end.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    client.merge(&format!("{MAPS}/a"), json!({"data": {"colour": "red"}})).await.ok();
    client.delete(&format!("{MAPS}/a")).await.ok();
    let changed = watch.frame().await.unwrap();
    assert_eq!((&*changed.kind, &changed.object["data"]["colour"]), ("MODIFIED", &json!("red")));
    assert_eq!(watch.frame().await.unwrap().kind, "DELETED");
    // Errors are frames, too.
    server.store().compact(u64::MAX);
    let path = format!("{MAPS}?watch=1&resourceVersion=1");
    let mut late = client.watch_as(&path, MEDIA_TYPE).await;
    let error = late.frame().await.unwrap();
    assert_eq!((&*error.kind, &error.object["reason"]), ("ERROR", &json!("Expired")));
    assert_eq!(late.frame().await, None);
    let fault = Fault::Status { code: http::StatusCode::TOO_MANY_REQUESTS, retry_after: None };
    server.faults().on(Verb::Watch).after_events(0).inject(fault);
    let error = watch.frame().await.unwrap();
    assert_eq!((&*error.kind, &error.object["code"]), ("ERROR", &json!(429)));
}

#[tokio::test(start_paused = true)]
async fn watchers_with_selectors_see_objects_come_and_go() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(settings("a")).unwrap();
    let path = format!(
        "{MAPS}?watch=1&labelSelector=on%3Dyes&resourceVersion={}",
        server.store().revision()
    );
    let mut watch = client.watch_as(&path, MEDIA_TYPE).await;
    let a = format!("{MAPS}/a");
    client.merge(&a, json!({"metadata": {"labels": {"on": "yes"}}})).await.ok();
    client.merge(&a, json!({"metadata": {"labels": null}})).await.ok();
    assert_eq!(watch.frame().await.unwrap().kind, "ADDED");
    assert_eq!(watch.frame().await.unwrap().kind, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn metadata_alone() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(settings("a")).unwrap();
    client.post(CRDS, definition("widgets", "Widget")).await.ok();
    let widget =
        json!({"apiVersion": "tests.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    client.post(WIDGETS, widget).await.ok();
    for (path, item) in [(MAPS, "a"), (WIDGETS, "w")] {
        let one = client.get_as(&format!("{path}/{item}"), METADATA).await.protobuf();
        assert_eq!((&one["kind"], name(&one)), (&json!("PartialObjectMetadata"), item));
        assert_eq!(one.get("data"), None);
        let list = client.get_as(path, METADATA_LIST).await.protobuf();
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["items"][0]["metadata"], one["metadata"]);
        // Its fields have other numbers.
        let old = client.get_as(path, &METADATA_LIST.replace("v=v1", "v=v1beta1")).await.protobuf();
        assert_eq!((&old["items"], &old["metadata"]), (&list["items"], &list["metadata"]));
        let mut watch = client.watch_as(&format!("{path}?watch=1"), METADATA).await;
        assert_eq!(watch.frame().await.unwrap().object["metadata"], one["metadata"]);
    }
}

#[tokio::test(start_paused = true)]
async fn custom_objects_and_tables_are_json() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(CRDS, definition("widgets", "Widget")).await.ok();
    assert_eq!(client.get_as(WIDGETS, BOTH).await.ok()["kind"], "WidgetList");
    assert_eq!(client.get_as(WIDGETS, MEDIA_TYPE).await.code, 406);
    let headers = [("content-type", MEDIA_TYPE)];
    let sent = client.request("POST", WIDGETS, &headers, "k8s\0").await;
    assert_eq!(
        (sent.code, sent.message().ends_with("include: application/json, application/yaml")),
        (415, true)
    );
    let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    assert_eq!(
        client.get_as(MAPS, &format!("{table},application/json")).await.ok()["kind"],
        "ConfigMapList"
    );
    assert_eq!(client.get_as(MAPS, table).await.code, 406);
}

/// Clauses are ordered by quality, then by specificity, and otherwise by position.
#[tokio::test(start_paused = true)]
async fn preferences_decide_between_codecs() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for (accept, chosen) in [
        (format!("application/json,{MEDIA_TYPE}"), "application/json"),
        (format!("{MEDIA_TYPE},application/json"), MEDIA_TYPE),
        (format!("application/json;q=0.9,{MEDIA_TYPE}"), MEDIA_TYPE),
        (format!("{MEDIA_TYPE};q=0.8,application/json;q=0.9"), "application/json"),
        (format!("*/*,{MEDIA_TYPE}"), MEDIA_TYPE),
        (format!("text/html,{MEDIA_TYPE};q=nonsense,*/*;q=0.1"), "application/json"),
        ("*/*".to_owned(), "application/json"),
    ] {
        for path in [MAPS, &format!("{MAPS}/none")] {
            let answer = client.get_as(path, &accept).await;
            assert_eq!(answer.header("content-type"), chosen, "{accept}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_in_the_codec_that_was_asked_for() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{MAPS}/missing");
    let json = client.get(&path).await.failed(404);
    assert_eq!(client.get_as(&path, BOTH).await.protobuf(), json);
    assert_eq!(client.get_as(&path, METADATA).await.failed(404), json);
    assert_eq!(
        client.get_as(&path, &format!("{METADATA},application/json")).await.failed(404),
        json
    );
    server.faults().any().inject(Fault::Gone);
    assert_eq!(client.get_as(MAPS, MEDIA_TYPE).await.protobuf()["reason"], "Expired");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_cannot_be_read_are_refused() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let headers = [("content-type", MEDIA_TYPE)];
    let widget =
        Envelope { api_version: "tests.example.com/v1", kind: "Widget", raw: b"" }.to_vec();
    for body in [b"".to_vec(), b"{}".to_vec(), b"k8s\0\xff".to_vec(), widget] {
        let answer = client.request("POST", MAPS, &headers, body).await;
        assert!(
            answer
                .message()
                .starts_with("the object provided is unrecognized (must be of type ConfigMap): ")
        );
        answer.failed(400);
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    assert_eq!(send(&client, "POST", MAPS, &secret).await.code, 400);
    // A body without a type has the requested one.
    let metadata = [0x0a, 3, 0x0a, 1, b'a'];
    let body = Envelope { api_version: "", kind: "", raw: &metadata }.to_vec();
    assert_eq!(name(&client.request("POST", MAPS, &headers, body).await.ok()), "a");
}

#[tokio::test(start_paused = true)]
async fn dry_runs_and_events_of_both_groups() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = send(&client, "POST", &format!("{MAPS}?dryRun=All"), &settings("a")).await;
    assert_eq!((made.code, name(&made.protobuf())), (201, "a"));
    assert_eq!(server.count("configmaps", ""), 0);
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "hello",
        "eventTime": "2024-01-02T03:04:05.000006Z", "reportingController": "c", "reportingInstance": "i",
        "action": "a", "reason": "r", "type": "Normal", "regarding": {"kind": "Pod", "namespace": "default"},
    });
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(send(&client, "POST", events, &event).await.protobuf()["note"], "hello");
    let core = client.get_as("/api/v1/namespaces/default/events/e", MEDIA_TYPE).await.protobuf();
    assert_eq!((&core["message"], &core["eventTime"]), (&json!("hello"), &event["eventTime"]));
    let list = client.get_as(events, MEDIA_TYPE).await.protobuf();
    assert_eq!(list["items"][0]["note"], "hello");
}

/// The server stores JSON whose type differs from the field's, which a real server would reject. It
/// cannot be encoded as protobuf.
#[tokio::test(start_paused = true)]
async fn objects_that_do_not_fit_are_an_error_that_names_the_field() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "priority": "high"},
    });
    client.post(pods, pod).await.ok();
    for path in [pods, &format!("{pods}/odd")] {
        let answer = client.get_as(path, MEDIA_TYPE).await;
        assert_eq!(answer.code, 500);
        let message = answer.protobuf()["message"].take();
        let why = "Internal error occurred: Pod default/odd cannot be written as protobuf: the field \
                   \"priority\" is not a whole number of 32 bits";
        assert_eq!(message, why);
    }
    let mut watch = client.watch_as(&format!("{pods}?watch=1"), MEDIA_TYPE).await;
    assert_eq!(watch.frame().await.unwrap().kind, "ERROR");
    assert_eq!(watch.frame().await, None);
}

/// Faults change the content of objects only in JSON. A client that accepts both receives JSON.
#[tokio::test(start_paused = true)]
async fn faults_of_objects_are_in_json() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(settings("a")).unwrap();
    server.faults().any().inject(Fault::WrongType);
    assert_eq!(client.get_as(&format!("{MAPS}/a"), BOTH).await.ok()["data"], 7);
    let mut watch = client.watch_as(&format!("{MAPS}?watch=1"), MEDIA_TYPE).await;
    server.faults().any().inject(Fault::WrongType);
    assert_eq!(watch.frame().await.unwrap().object["data"], json!({"colour": "blue"}));
}
