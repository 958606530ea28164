//! Delete: immediate, or after finalizers.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, labelled, map, names, version};

fn held(name: &str, finalizers: Value) -> Value {
    let mut map = map(name);
    map["metadata"]["finalizers"] = finalizers;
    map
}

#[tokio::test(start_paused = true)]
async fn a_delete_answers_with_a_status_or_for_some_kinds_with_the_object() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let deleted = client.delete(&format!("{MAPS}/a")).await;
    let uid = &made["metadata"]["uid"];
    let want = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": uid},
    });
    assert_eq!((deleted.code, deleted.json()), (200, want));

    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"metadata": {"name": "d"}, "spec": {}});
    client.post(deployments, deployment).await.ok();
    let deleted = client.delete(&format!("{deployments}/d")).await.ok();
    assert_eq!(deleted["details"]["group"], "apps");

    let services = "/api/v1/namespaces/default/services";
    let made = client.post(services, json!({"metadata": {"name": "s"}, "spec": {}})).await.ok();
    let deleted = client.delete(&format!("{services}/s")).await.ok();
    assert_eq!(
        (&deleted["kind"], &deleted["metadata"]["uid"]),
        (&json!("Service"), &made["metadata"]["uid"])
    );
}

#[tokio::test(start_paused = true)]
async fn the_options_of_a_delete_come_in_the_body_or_in_the_query() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for body in [
        json!({}),
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}),
        json!({"propagationPolicy": "Background", "unknown": 1}),
    ] {
        client.post(MAPS, map("a")).await.ok();
        assert_eq!(client.delete_with(&format!("{MAPS}/a"), body).await.ok()["status"], "Success");
    }
    client.post(MAPS, map("a")).await.ok();
    for body in ["[]", "{", "7", r#"{"kind":"Pod"}"#, r#"{"gracePeriodSeconds":"x"}"#] {
        client.request("DELETE", &format!("{MAPS}/a"), &[], body).await.failed(400);
    }
    client.delete(&format!("{MAPS}/a?gracePeriodSeconds=x")).await.failed(400);
    client.delete_with(&format!("{MAPS}/a"), json!({"dryRun": ["All"]})).await.ok();
    client.get(&format!("{MAPS}/a")).await.ok();
    client.delete(&format!("{MAPS}/a?gracePeriodSeconds=-5&propagationPolicy=Orphan")).await.ok();
    client.get(&format!("{MAPS}/a")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_that_hold_let_the_delete_through() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let changed = client.merge(&format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await.ok();
    let uid = &made["metadata"]["uid"];
    let old = json!({"uid": uid, "resourceVersion": made["metadata"]["resourceVersion"]});
    let path = format!("{MAPS}/a");
    client.delete_with(&path, json!({"preconditions": old})).await.failed(409);
    let new = json!({"uid": uid, "resourceVersion": changed["metadata"]["resourceVersion"]});
    client.delete_with(&path, json!({"preconditions": new})).await.ok();
}

/// An object with finalizers is marked and stays visible. It can still be changed, but cannot gain
/// finalizers. It is removed with the last of them.
#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_goes_when_the_last_is_removed() {
    let at = "2026-01-01T00:00:00Z";
    let server = ApiServer::builder().starting_at(at.parse().unwrap()).build();
    let client = Client::of(&server);
    let path = format!("{MAPS}/a");
    let made = client.post(MAPS, held("a", json!(["a.b/c", "a.b/d"]))).await.ok();
    let mut watch =
        client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&made))).await;

    let marked = client.delete(&path).await.ok();
    assert_eq!(marked["metadata"]["deletionTimestamp"], at);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(version(&marked), version(&made) + 1);
    assert_eq!(client.get(&path).await.ok(), marked);
    assert_eq!(client.delete(&path).await.ok(), marked, "a second delete changes nothing");

    let more = json!({"metadata": {"finalizers": ["a.b/c", "a.b/e"]}});
    let refused = client.merge(&path, more).await;
    assert_eq!(
        refused.message(),
        "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be \
         added if the object is being deleted, found new finalizers []string{\"a.b/e\"}"
    );
    let one = client.merge(&path, json!({"metadata": {"finalizers": ["a.b/d"]}})).await.ok();
    assert_eq!(one["metadata"]["deletionTimestamp"], at);
    // The last change is never stored: its response has the previous version, and its event the
    // previous state.
    let freed = client.merge(&path, json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!((version(&freed), freed["metadata"].get("finalizers")), (version(&one), None));
    client.get(&path).await.failed(404);

    let events = watch.events(3).await;
    let version = version(&marked);
    let briefs: Vec<_> = events.iter().map(crate::harness::Event::brief).collect();
    assert_eq!(
        briefs,
        [("MODIFIED", "a", version), ("MODIFIED", "a", version + 1), ("DELETED", "a", version + 2),]
    );
    assert_eq!(events[0].object, marked);
    let last = &events[2].object["metadata"];
    assert_eq!((&last["deletionTimestamp"], &last["finalizers"]), (&json!(at), &json!(["a.b/d"])));
}

#[tokio::test(start_paused = true)]
async fn a_mark_counts_as_a_change_of_what_is_desired() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"metadata": {"name": "d", "finalizers": ["a.b/c"]}, "spec": {}});
    assert_eq!(client.post(path, deployment).await.ok()["metadata"]["generation"], 1);
    let marked = client.delete(&format!("{path}/d")).await.ok();
    assert_eq!(marked["metadata"]["generation"], 2);
    let again = client.delete(&format!("{path}/d")).await.ok();
    assert_eq!(again["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_at_once_is_last_seen_as_it_was_with_the_version_of_its_end() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut sent = labelled("a", json!({"x": "y"}));
    sent["data"] = json!({"k": "v"});
    let made = client.post(MAPS, sent).await.ok();
    let mut watch =
        client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&made))).await;
    client.delete(&format!("{MAPS}/a")).await.ok();
    let deleted = watch.event().await;
    let mut want = made.clone();
    want["metadata"]["resourceVersion"] = json!(server.store().revision().to_string());
    assert_eq!((deleted.kind.as_str(), deleted.object), ("DELETED", want));
    assert_eq!(server.store().revision(), version(&made) + 1);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_as_far_as_it_is_selected() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        client.post(MAPS, labelled(name, json!({"color": color}))).await.ok();
    }
    let mut kept = held("d", json!(["a.b/c"]));
    kept["metadata"]["labels"] = json!({"color": "red"});
    client.post(MAPS, kept).await.ok();
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    client.post(elsewhere, labelled("a", json!({"color": "red"}))).await.ok();

    let deleted = client.delete(&format!("{MAPS}?labelSelector=color%3Dred")).await.ok();
    assert_eq!((&deleted["kind"], names(&deleted)), (&json!("ConfigMapList"), vec!["a", "c", "d"]));
    let left = client.get(MAPS).await.ok();
    assert_eq!(names(&left), ["b", "d"]);
    assert!(left["items"][1]["metadata"]["deletionTimestamp"].is_string());
    client.delete(&format!("{MAPS}?fieldSelector=metadata.name%3Db")).await.ok();
    assert_eq!(names(&client.get(MAPS).await.ok()), ["d"]);
    assert_eq!(names(&client.get(elsewhere).await.ok()), ["a"]);
}

/// A pod that is removed immediately is marked first: watchers see its deletionTimestamp.
#[tokio::test(start_paused = true)]
async fn a_pod_is_marked_before_it_goes() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let pods = "/api/v1/namespaces/default/pods";
    client.post(pods, json!({"metadata": {"name": "p"}, "spec": {}})).await.ok();
    let version = server.store().revision();
    client.delete(&format!("{pods}/p")).await.ok();
    let mut watch = client.watch(&format!("{pods}?watch=1&resourceVersion={version}")).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let event = watch.event().await;
        let grace = event.object["metadata"]["deletionGracePeriodSeconds"].clone();
        seen.push((event.kind, grace));
    }
    assert_eq!(seen, [("MODIFIED".to_owned(), json!(0)), ("DELETED".to_owned(), json!(0))]);
}

/// Names without a domain are reserved for Kubernetes' own finalizers.
#[tokio::test(start_paused = true)]
async fn a_finalizer_of_a_built_in_kind_has_a_domain() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let refused = client.post(MAPS, held("a", json!(["mine"]))).await.failed(422);
    assert_eq!(
        refused["message"],
        "ConfigMap \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"mine\": name is \
         neither a standard finalizer name nor is it fully qualified"
    );
    client.post(MAPS, held("a", json!(["foregroundDeletion"]))).await.ok();
}
