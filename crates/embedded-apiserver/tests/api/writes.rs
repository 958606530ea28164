//! Update and patch: optimistic concurrency, dry runs, and the limits of patches.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, failure, labelled, map, version};

/// Optimistic concurrency: a write with a resourceVersion succeeds only if that is still the
/// latest.
#[tokio::test(start_paused = true)]
async fn of_two_writers_with_the_same_version_one_wins() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let (mut first, mut second) = (made.clone(), made.clone());
    first["data"] = json!({"by": "first"});
    second["data"] = json!({"by": "second"});
    let won = client.put(&path, first).await.ok();
    client.put(&path, second.clone()).await.failed(409);
    let third = json!({"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]},
                       "data": {"by": "third"}});
    client.merge(&path, third).await.failed(409);
    let tested = json!([
        {"op": "test", "path": "/metadata/resourceVersion",
         "value": made["metadata"]["resourceVersion"]},
        {"op": "add", "path": "/data", "value": {"by": "fourth"}},
    ]);
    client.json_patch(&path, tested).await.failed(422);
    assert_eq!(client.get(&path).await.ok(), won);
    second["metadata"]["resourceVersion"] = won["metadata"]["resourceVersion"].clone();
    assert_eq!(client.put(&path, second).await.ok()["data"]["by"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_version_overwrites_where_the_kind_allows_it() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, map("a")).await.ok();
    for unconditional in [json!(null), json!(""), json!("0")] {
        let mut map = labelled("a", json!({"x": "y"}));
        map["data"] = json!({"v": unconditional});
        map["metadata"]["resourceVersion"] = unconditional;
        client.put(&format!("{MAPS}/a"), map).await.ok();
    }
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    let made = client.post(leases, lease.clone()).await.ok();
    let refused = client.put(&format!("{leases}/l"), lease.clone()).await;
    let why = "Invalid value: 0: must be specified for an update";
    let details = json!({
        "name": "l", "group": "coordination.k8s.io", "kind": "leases",
        "causes": [{"reason": "FieldValueInvalid", "message": why,
                    "field": "metadata.resourceVersion"}],
    });
    let message =
        format!("leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: {why}");
    assert_eq!(refused.json(), failure(422, "Invalid", &message, details));
    let mut with = lease;
    with["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    with["spec"]["holderIdentity"] = json!("you");
    client.put(&format!("{leases}/l"), with).await.ok();
    // A patch applies to the latest version, and therefore has one.
    client.merge(&format!("{leases}/l"), json!({"spec": {"holderIdentity": "me"}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn merge_patches_merge_and_null_removes() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut sent = labelled("a", json!({"keep": "1", "drop": "2"}));
    sent["data"] = json!({"x": "1"});
    client.post(MAPS, sent).await.ok();
    let patch = json!({
        "metadata": {"labels": {"drop": null, "add": "3"}, "uid": null, "resourceVersion": null},
        "data": null,
    });
    let patched = client.merge(&format!("{MAPS}/a"), patch).await.ok();
    assert_eq!(patched["metadata"]["labels"], json!({"keep": "1", "add": "3"}));
    assert_eq!(patched.get("data"), None);
    assert!(patched["metadata"]["uid"].is_string());
}

#[tokio::test(start_paused = true)]
async fn json_patches_are_all_or_nothing() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let half = json!([
        {"op": "add", "path": "/data", "value": {"x": "1"}},
        {"op": "test", "path": "/data/x", "value": "2"},
    ]);
    client.json_patch(&path, half).await.failed(422);
    assert_eq!(client.get(&path).await.ok(), made);
    let whole = json!([
        {"op": "add", "path": "/data", "value": {"x": "1"}},
        {"op": "copy", "from": "/data/x", "path": "/data/y"},
        {"op": "move", "from": "/data/y", "path": "/data/z"},
        {"op": "replace", "path": "/data/x", "value": "2"},
    ]);
    let patched = client.json_patch(&path, whole).await.ok();
    assert_eq!(patched["data"], json!({"x": "2", "z": "1"}));
}

/// Clients use a test for `null` to add the first element without a race.
#[tokio::test(start_paused = true)]
async fn a_json_patch_that_tests_for_null_finds_what_is_not_there() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let add = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]},
    ]);
    let patched = client.json_patch(&path, add.clone()).await.ok();
    assert_eq!(patched["metadata"]["finalizers"], json!(["a.b/c"]));
    client.json_patch(&path, add).await.failed(422);
    let nowhere = json!([{"op": "test", "path": "/nope/nope", "value": null}]);
    client.json_patch(&path, nowhere).await.failed(422);
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_move_an_object() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let path = format!("{MAPS}/a");
    for (patch, code) in [
        (json!({"metadata": {"name": "b"}}), 400),
        (json!({"metadata": {"namespace": "kube-system"}}), 400),
        (json!({"metadata": null}), 400),
        (json!({"kind": "Secret"}), 422),
        (json!({"apiVersion": "v2"}), 422),
        (json!({"metadata": 5}), 422),
    ] {
        client.merge(&path, patch).await.failed(code);
    }
    assert_eq!(client.get(&path).await.ok(), made);
}

/// A dry run has the same response as the request itself, but no effect.
#[tokio::test(start_paused = true)]
async fn dry_runs_answer_and_do_nothing() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{MAPS}/a");
    let made = client.post(MAPS, map("a")).await.ok();
    let before = server.store().revision();

    let created = client.post(&format!("{MAPS}?dryRun=All"), map("b")).await;
    assert_eq!(created.code, 201);
    let created = created.json();
    assert!(created["metadata"]["uid"].is_string());
    assert_eq!(created["metadata"].get("resourceVersion"), None, "there is none yet");
    let generated = json!({"metadata": {"generateName": "g-"}});
    let generated = client.post(&format!("{MAPS}?dryRun=All"), generated).await.ok();
    assert!(generated["metadata"]["name"].as_str().unwrap().starts_with("g-"));
    client.post(&format!("{MAPS}?dryRun=All"), map("Not a name")).await.failed(422);

    let mut want = made.clone();
    want["data"] = json!({"x": "y"});
    let dry = format!("{path}?dryRun=All");
    assert_eq!(client.put(&dry, want.clone()).await.ok(), want);
    assert_eq!(client.merge(&dry, json!({"data": {"x": "y"}})).await.ok(), want);
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let headers = [("content-type", crate::harness::MERGE_PATCH), ("accept", partial)];
    let answer = client.request("PATCH", &dry, &headers, r#"{"data":{"x":"y"}}"#).await.ok();
    assert_eq!((&answer["kind"], &answer["data"]), (&json!("PartialObjectMetadata"), &Value::Null));

    let deleted = client.delete(&dry).await.ok();
    assert_eq!(deleted["status"], "Success");
    assert_eq!(client.delete(&format!("{MAPS}?dryRun=All")).await.ok()["kind"], "ConfigMapList");
    assert_eq!(client.get(&path).await.ok(), made);
    assert_eq!((server.store().revision(), server.count("configmaps", "")), (before, 1));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_the_mark_of_an_object_that_would_wait() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut held = map("a");
    held["metadata"]["finalizers"] = json!(["a.b/c"]);
    let made = client.post(MAPS, held).await.ok();
    let shown = client.delete(&format!("{MAPS}/a?dryRun=All")).await.ok();
    assert!(shown["metadata"]["deletionTimestamp"].is_string(), "{shown}");
    assert_eq!(version(&shown), version(&made));
    assert_eq!(client.get(&format!("{MAPS}/a")).await.ok(), made);
}

/// A write without a version does not wait or fail: it is retried on the latest state.
#[tokio::test(start_paused = true)]
async fn patches_without_a_version_from_many_clients_all_arrive() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, map("a")).await.ok();
    let patches = (0..50).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let patch = json!({"data": {format!("k{n}"): "v"}});
            client.merge(&format!("{MAPS}/a"), patch).await.ok();
        })
    });
    futures::future::try_join_all(patches).await.unwrap();
    let data = client.get(&format!("{MAPS}/a")).await.ok()["data"].clone();
    assert_eq!(data.as_object().unwrap().len(), 50);
}
