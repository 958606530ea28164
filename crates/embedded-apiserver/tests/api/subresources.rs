//! Subresources of pods, namespaces and signing requests.

use embedded_apiserver::{ApiServer, Builder};
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::harness::Client;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}},
           "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn binding(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name, "annotations": {"by": "test"}}, "target": {"name": node}})
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_binding_assigns_a_pod_to_a_node() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for name in ["a", "b", "c"] {
        client.post(PODS, pod(name)).await.ok();
    }
    let path = format!("{PODS}/a/binding");
    let bound = client.post(&path, binding("a", "n1")).await;
    assert_eq!((bound.code, &bound.ok()["status"]), (201, &json!("Success")));
    let found = client.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(found["spec"]["nodeName"], "n1");
    assert_eq!(found["metadata"]["annotations"], json!({"by": "test"}));
    assert_eq!(found["metadata"]["generation"], 1);
    let condition = &found["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("PodScheduled"), &json!("True"))
    );
    let again = client.post(&path, binding("a", "n2")).await.failed(409);
    let why = r#"Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1""#;
    assert_eq!(again["message"], why);
    client.post(&path, binding("b", "n2")).await.failed(400);
    client.post(&format!("{PODS}/none/binding"), binding("none", "n")).await.failed(404);
    client.post(&format!("{PODS}/b/binding"), binding("b", "")).await.failed(400);
    let mut other = binding("b", "n");
    other["metadata"]["uid"] = json!("other");
    client.post(&format!("{PODS}/b/binding"), other).await.failed(409);
    let dry = format!("{PODS}/b/binding?dryRun=All");
    client.post(&dry, binding("b", "n")).await.ok();
    assert_eq!(client.get(&format!("{PODS}/b")).await.ok()["spec"].get("nodeName"), None);
    let legacy = "/api/v1/namespaces/default/bindings";
    client.post(legacy, binding("c", "n3")).await.ok();
    assert_eq!(client.get(&format!("{PODS}/c")).await.ok()["spec"]["nodeName"], "n3");
    client.get(legacy).await.failed(405);
}

/// Creates a pod that runs and is ready, and a budget for it with this status.
async fn guarded(client: &Client, status: Value) {
    client.post(PODS, pod("a")).await.ok();
    let running = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True"},
    ]}});
    client.merge(&format!("{PODS}/a/status"), running).await.ok();
    let budget = json!({"metadata": {"name": "b"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "a"}},
    }});
    client.post(BUDGETS, budget).await.ok();
    client.merge(&format!("{BUDGETS}/b/status"), json!({"status": status})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn an_eviction_uses_up_a_disruption_budget() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{PODS}/a/eviction");
    guarded(&client, json!({"observedGeneration": 1, "disruptionsAllowed": 1})).await;
    client.post(&format!("{path}?dryRun=All"), eviction("a")).await.ok();
    let budget = client.get(&format!("{BUDGETS}/b")).await.ok();
    assert_eq!(budget["status"]["disruptionsAllowed"], 1);
    let start = client.get(PODS).await.ok()["metadata"]["resourceVersion"].clone();
    let evicted = client.post(&path, eviction("a")).await;
    assert_eq!((evicted.code, &evicted.ok()["status"]), (201, &json!("Success")));
    client.get(&format!("{PODS}/a")).await.failed(404);
    let status = &client.get(&format!("{BUDGETS}/b")).await.ok()["status"];
    assert_eq!(status["disruptionsAllowed"], 0);
    assert!(status["disruptedPods"]["a"].is_string(), "{status}");
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
    // Watchers see why the pod goes.
    let start = start.as_str().unwrap();
    let mut watch = client.watch(&format!("{PODS}?watch=1&resourceVersion={start}")).await;
    let conditions = watch.event().await.object["status"]["conditions"].clone();
    assert_eq!(conditions[1]["type"], "DisruptionTarget", "{conditions}");
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_refuses_evictions() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{PODS}/a/eviction");
    guarded(&client, json!({"disruptionsAllowed": 1})).await;
    let unprocessed = client.post(&path, eviction("a")).await;
    assert_eq!(unprocessed.header("retry-after"), "10");
    let cause = &unprocessed.failed(429)["details"]["causes"][0];
    assert_eq!(cause["message"], "The disruption budget b is still being processed by the server.");
    let full = json!({"status": {
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
    }});
    client.merge(&format!("{BUDGETS}/b/status"), full).await.ok();
    let refused = client.post(&path, eviction("a")).await.failed(429);
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(refused["message"], message);
    let cause = json!([{
        "reason": "DisruptionBudget",
        "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
    }]);
    assert_eq!(refused["details"]["causes"], cause);
    // A pod that is not ready does not count.
    let unready = json!({"status": {"conditions": []}});
    client.merge(&format!("{PODS}/a/status"), unready).await.ok();
    client.post(&path, eviction("a")).await.ok();
    client.get(&format!("{PODS}/a")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn evictions_are_deletions_with_options() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(PODS, pod("a")).await.ok();
    let path = format!("{PODS}/a/eviction");
    let with = |options: Value| {
        let mut eviction = eviction("a");
        eviction["deleteOptions"] = options;
        eviction
    };
    client.post(&path, with(json!({"preconditions": {"uid": "other"}}))).await.failed(409);
    client.post(&path, with(json!({"dryRun": ["All"]}))).await.ok();
    client.post(&path, with(json!({"dryRun": ["Some"]}))).await.failed(422);
    client.post(&path, with(json!(7))).await.failed(400);
    client.post(&path, eviction("b")).await.failed(400);
    client.post(&format!("{PODS}/none/eviction"), eviction("none")).await.failed(404);
    let version =
        client.get(&format!("{PODS}/a")).await.ok()["metadata"]["resourceVersion"].clone();
    let exact = with(json!({"preconditions": {"resourceVersion": version}}));
    client.post(&path, exact).await.ok();
    client.get(&format!("{PODS}/a")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn a_simulated_container_logs_a_line_per_second() {
    // Not at a full second, at which `sinceSeconds=5` would include a sixth line.
    let at = "2026-03-01T10:00:00.5Z".parse().unwrap();
    let server = Builder::default().pods_run(true).starting_at(at).build();
    let client = Client::of(&server);
    client.post(PODS, pod("a")).await.ok();
    let path = format!("{PODS}/a/log");
    assert_eq!(client.get(&path).await.code, 204);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let text = |query: &str| {
        let (client, path) = (client.clone(), format!("{path}?{query}"));
        async move {
            let answer = client.get(&path).await;
            assert_eq!(answer.code, 200, "{:?}", answer.body);
            String::from_utf8(answer.body.to_vec()).unwrap()
        }
    };
    let all = text("").await;
    let count = all.lines().count();
    assert!((50..=61).contains(&count), "{count}");
    assert!(all.starts_with("c of default/a: line 1\nc of default/a: line 2\n"), "{all}");
    assert_eq!(text("container=c").await, all);
    assert_eq!(text("tailLines=2").await.lines().count(), 2);
    assert!(all.ends_with(&text("tailLines=2").await));
    assert_eq!(text("tailLines=0").await, "");
    assert_eq!(text("sinceSeconds=5").await.lines().count(), 5);
    assert_eq!(text("limitBytes=7").await, "c of de");
    let stamped = text("timestamps=true&tailLines=1").await;
    let (at, line) = stamped.split_once(' ').unwrap();
    assert!(at.ends_with(".000000000Z") && at.parse::<jiff::Timestamp>().is_ok(), "{at}");
    assert!(all.ends_with(line));
    for (query, code) in [
        ("container=none", 400),
        ("tailLines=-1", 422),
        ("limitBytes=0", 422),
        ("tailLines=x", 400),
        ("previous=true", 400),
    ] {
        client.get(&format!("{path}?{query}")).await.failed(code);
    }
    client.get(&format!("{PODS}/none/log")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn a_followed_log_ends_with_its_pod() {
    let server = Builder::default().pods_run(true).build();
    let client = Client::of(&server);
    client.post(PODS, pod("a")).await.ok();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let followed = tokio::spawn({
        let client = client.clone();
        async move { client.get(&format!("{PODS}/a/log?follow=true&tailLines=1")).await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server.watches(), 1);
    let options = json!({"gracePeriodSeconds": 0});
    client.delete_with(&format!("{PODS}/a"), options).await.ok();
    let answer = followed.await.unwrap();
    let lines = String::from_utf8(answer.body.to_vec()).unwrap().lines().count();
    assert!((5..=7).contains(&lines), "{lines}");
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_needs_a_container_is_not_implemented() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(PODS, pod("a")).await.ok();
    for (method, path) in [
        ("POST", "exec?command=ls"),
        ("GET", "exec?command=ls"),
        ("GET", "attach"),
        ("POST", "portforward"),
        ("GET", "proxy"),
        ("PUT", "proxy/some/path"),
    ] {
        let answer = client.request(method, &format!("{PODS}/a/{path}"), &[], "").await;
        let status = answer.failed(501);
        assert!(status["message"].as_str().unwrap().contains("is not supported"), "{status}");
    }
    client.get("/api/v1/nodes/n/proxy/metrics").await.failed(501);
    client.request("PUT", &format!("{PODS}/a/exec"), &[], "").await.failed(405);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_are_added_and_stay() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(PODS, pod("a")).await.ok();
    let path = format!("{PODS}/a/ephemeralcontainers");
    let debugger = json!({"spec": {
        "ephemeralContainers": [{"name": "d", "image": "i"}], "containers": [],
    }});
    let added = client.merge(&path, debugger).await.ok();
    assert_eq!(added["spec"]["ephemeralContainers"][0]["name"], "d");
    assert_eq!(added["spec"]["containers"][0]["name"], "c");
    for (containers, change) in
        [(json!([]), "removed"), (json!([{"name": "d", "image": "other"}]), "changed")]
    {
        let body = json!({"spec": {"ephemeralContainers": containers}});
        let status = client.merge(&path, body).await.failed(422);
        assert!(status["message"].as_str().unwrap().contains(change), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_resources_alone() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(PODS, pod("a")).await.ok();
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [
        {"name": "c", "image": "other", "resources": {"requests": {"cpu": "1"}}},
        {"name": "new", "image": "i"},
    ]}});
    let resized = client.merge(&format!("{PODS}/a/resize"), patch).await.ok();
    let containers = &resized["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 1);
    assert_eq!(containers[0]["image"], "i");
    assert_eq!(containers[0]["resources"], json!({"requests": {"cpu": "1"}}));
    assert_eq!(resized["metadata"]["labels"], json!({"app": "a"}));
}

#[tokio::test(start_paused = true)]
async fn signing_requests_are_approved_in_their_own_subresource() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({"metadata": {"name": "r"}, "spec": {
        "request": "LS0t", "signerName": "example.com/signer", "usages": ["client auth"],
    }});
    let mut made = client.post(requests, request).await.ok();
    let condition = json!({"type": "Approved", "status": "True", "reason": "Test"});
    made["status"] = json!({"conditions": [condition]});
    made["spec"]["signerName"] = json!("example.com/other");
    let path = format!("{requests}/r");
    assert_eq!(client.put(&path, made.clone()).await.ok().get("status"), None);
    made["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let approved = client.put(&format!("{path}/approval"), made).await.ok();
    let condition = &approved["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("Approved"), &json!("Test")));
    assert!(condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn finalize_changes_the_finalizers_of_a_namespace() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let spaces = "/api/v1/namespaces";
    let mut space = client.post(spaces, json!({"metadata": {"name": "n"}})).await.ok();
    space["spec"] = json!({"finalizers": ["example.com/f"]});
    space["metadata"]["labels"] = json!({"x": "y"});
    let path = format!("{spaces}/n/finalize");
    let finalized = client.put(&path, space).await.ok();
    assert_eq!(finalized["spec"]["finalizers"], json!(["example.com/f"]));
    assert_eq!(finalized["metadata"]["labels"].get("x"), None);
    client.get(&path).await.failed(405);
}

/// Returns each manager of an object with its fields.
fn managers(object: &Value) -> Vec<(&str, String)> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .map(|entry| (entry["manager"].as_str().unwrap(), entry["fieldsV1"].to_string()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn no_client_owns_what_the_server_writes_to_pods() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let apply = [("content-type", "application/apply-patch+yaml")];
    let config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "a", "labels": {"applied": "x"}, "finalizers": ["test/keep"],
    }});
    client.post(&format!("{PODS}?fieldManager=creator"), pod("a")).await.ok();
    client.post(&format!("{PODS}/a/binding"), binding("a", "n1")).await.ok();
    // From now on, the pod shows its managers.
    let path = format!("{PODS}/a?fieldManager=applier");
    client.request("PATCH", &path, &apply, config.to_string()).await.ok();
    client.post(&format!("{PODS}/a/eviction"), eviction("a")).await.ok();
    let found = client.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(found["spec"]["nodeName"], "n1");
    assert!(found["status"].to_string().contains("DisruptionTarget"), "{found}");
    let managers = managers(&found);
    let names: Vec<_> = managers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["applier", "creator"]);
    for (name, fields) in &managers {
        for field in ["f:nodeName", "f:by", "f:status", "f:deletionTimestamp"] {
            assert!(!fields.contains(field), "{name} owns {field}: {fields}");
        }
    }
    assert!(managers[1].1.contains("f:containers"), "{managers:?}");
}

#[tokio::test(start_paused = true)]
async fn the_creator_does_not_own_finalizers_of_a_deletion() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut guarded = pod("a");
    guarded["metadata"]["finalizers"] = json!(["test/keep"]);
    client.post(&format!("{PODS}?fieldManager=creator"), guarded).await.ok();
    client.delete(&format!("{PODS}/a?propagationPolicy=Foreground")).await.ok();
    let apply = [("content-type", "application/apply-patch+yaml")];
    let config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "a", "labels": {"applied": "x"},
    }});
    let path = format!("{PODS}/a?fieldManager=applier");
    let found = client.request("PATCH", &path, &apply, config.to_string()).await.ok();
    let creator = &managers(&found)[1];
    assert_eq!(creator.0, "creator");
    assert!(creator.1.contains("test/keep"), "{creator:?}");
    assert!(!creator.1.contains("foregroundDeletion"), "{creator:?}");
}
