//! Garbage collection by owner references, and the emptying of namespaces.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, map, names};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const NODES: &str = "/api/v1/nodes";

/// Returns a reference to an owner, for which it waits if it is deleted in the foreground.
fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

fn owned(name: &str, owners: &[&Value]) -> Value {
    let owners: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

async fn create(client: &Client, name: &str, owners: &[&Value]) -> Value {
    client.post(MAPS, owned(name, owners)).await.ok()
}

async fn left(client: &Client) -> Vec<String> {
    names(&client.get(MAPS).await.ok()).iter().map(ToString::to_string).collect()
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test(start_paused = true)]
async fn dependents_are_deleted_after_their_owner() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    let b = create(&client, "b", &[&a]).await;
    create(&client, "c", &[&b]).await;
    client.post(SECRETS, owned("s", &[&b])).await.ok();
    create(&client, "other", &[]).await;
    let deleted = client.delete(&at("a")).await.ok();
    assert_eq!(deleted["status"], "Success");
    assert_eq!(left(&client).await, ["other"]);
    client.get(&format!("{SECRETS}/s")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn another_owner_keeps_an_object_without_the_reference() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    let b = create(&client, "b", &[]).await;
    create(&client, "c", &[&a, &b]).await;
    client.delete(&at("a")).await.ok();
    let kept = client.get(&at("c")).await.ok();
    assert_eq!(kept["metadata"]["ownerReferences"], json!([reference(&b)]));
    client.delete(&at("b")).await.ok();
    assert_eq!(left(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn orphans_are_kept_without_the_reference() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for options in [json!({"propagationPolicy": "Orphan"}), json!({"orphanDependents": true})] {
        let a = create(&client, "a", &[]).await;
        create(&client, "b", &[&a]).await;
        let marked = client.delete_with(&at("a"), options).await.ok();
        assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]));
        let kept = client.get(&at("b")).await.ok();
        assert_eq!(kept["metadata"].get("ownerReferences"), None);
        assert_eq!(left(&client).await, ["b"]);
        client.delete(&at("b")).await.ok();
    }
}

/// These kinds are older than garbage collection. kubectl always names a policy.
#[tokio::test(start_paused = true)]
async fn jobs_orphan_their_pods_unless_told_otherwise() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let job = json!({"metadata": {"name": "j"}, "spec": {}});
    for (policy, kept) in [("", true), ("?propagationPolicy=Background", false)] {
        let job = client.post(JOBS, job.clone()).await.ok();
        create(&client, "b", &[&job]).await;
        client.delete(&format!("{JOBS}/j{policy}")).await.ok();
        client.get(&format!("{JOBS}/j")).await.failed(404);
        assert_eq!(!left(&client).await.is_empty(), kept, "{policy}");
        client.delete(&at("b")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_blocking_dependents() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    let mut blocking = owned("b", &[&a]);
    blocking["metadata"]["finalizers"] = json!(["a.b/c"]);
    client.post(MAPS, blocking).await.ok();
    let mut other = owned("c", &[&a]);
    other["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = json!(false);
    other["metadata"]["finalizers"] = json!(["a.b/c"]);
    client.post(MAPS, other).await.ok();
    create(&client, "d", &[&a]).await;

    let foreground = format!("{}?propagationPolicy=Foreground", at("a"));
    let marked = client.delete(&foreground).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(left(&client).await, ["a", "b", "c"]);
    for name in ["b", "c"] {
        let waiting = client.get(&at(name)).await.ok();
        assert!(waiting["metadata"]["deletionTimestamp"].is_string(), "{name}");
    }
    // A dependent that is created late is deleted too.
    create(&client, "late", &[&a]).await;
    assert_eq!(left(&client).await, ["a", "b", "c"]);
    let done = json!({"metadata": {"finalizers": null}});
    client.merge(&at("b"), done).await.ok();
    assert_eq!(left(&client).await, ["c"], "it does not wait for what does not block it");
}

#[tokio::test(start_paused = true)]
async fn an_owner_stops_waiting_for_a_dependent_that_leaves_it() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for change in [
        json!({"metadata": {"ownerReferences": null}}),
        json!({"metadata": {"ownerReferences": [{"blockOwnerDeletion": false}]}}),
    ] {
        let a = create(&client, "a", &[]).await;
        let mut blocking = owned("b", &[&a]);
        blocking["metadata"]["finalizers"] = json!(["a.b/c"]);
        client.post(MAPS, blocking).await.ok();
        client.delete(&format!("{}?propagationPolicy=Foreground", at("a"))).await.ok();
        client.get(&at("a")).await.ok();
        let mut change = change;
        if let Some(Value::Array(owners)) = change["metadata"].get_mut("ownerReferences") {
            owners[0] = reference(&a);
            owners[0]["blockOwnerDeletion"] = json!(false);
        }
        client.merge(&at("b"), change).await.ok();
        client.get(&at("a")).await.failed(404);
        client.merge(&at("b"), json!({"metadata": {"finalizers": null}})).await.ok();
        client.get(&at("b")).await.failed(404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cycle_of_owners_ends() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    let b = create(&client, "b", &[&a]).await;
    let c = create(&client, "c", &[&b]).await;
    let back = json!({"metadata": {"ownerReferences": [reference(&c)]}});
    client.merge(&at("a"), back).await.ok();
    client.delete(&format!("{}?propagationPolicy=Foreground", at("a"))).await.ok();
    assert_eq!(left(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_dependent_of_an_owner_that_is_gone_is_deleted() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    client.delete(&at("a")).await.ok();
    create(&client, "a", &[]).await;
    let made = client.post(MAPS, owned("late", &[&a])).await.ok();
    assert_eq!(made["metadata"]["name"], "late", "the response comes first");
    assert_eq!(left(&client).await, ["a"], "the owner's name belongs to another object");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_existed_is_kept() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let unknown = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                         "metadata": {"name": "r", "uid": "u"}});
    let unserved = json!({"apiVersion": "example.com/v1", "kind": "Thing",
                          "metadata": {"name": "t", "uid": "v"}});
    create(&client, "a", &[&unknown]).await;
    create(&client, "b", &[&unserved]).await;
    // A cluster-scoped object cannot have a namespaced owner.
    let c = create(&client, "c", &[]).await;
    client.post(NODES, owned("n", &[&c])).await.ok();
    client.delete(&at("c")).await.ok();
    assert_eq!(left(&client).await, ["a", "b"]);
    client.get(&format!("{NODES}/n")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_large_family_is_deleted_in_the_background() {
    const CHILDREN: usize = 1_000;
    let server = ApiServer::start();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    for at in 0..CHILDREN {
        server.create(typed(owned(&format!("child-{at}"), &[&a]))).unwrap();
    }
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion=0")).await;
    watch.events(CHILDREN + 1).await;
    client.delete(&at("a")).await.ok();
    assert!(server.count("configmaps", "default") > 0, "a request does a limited part");
    watch.events(CHILDREN + 1).await;
    assert_eq!(server.count("configmaps", "default"), 0);
}

/// Without a runtime there is no task, and the call that left the work does it.
#[test]
fn a_server_without_a_runtime_collects_before_it_returns() {
    let server = ApiServer::start();
    let a = server.create(typed(map("a"))).unwrap();
    for at in 0..300 {
        server.create(typed(owned(&format!("child-{at}"), &[&a]))).unwrap();
    }
    server.delete("configmaps", "default", "a").unwrap();
    assert_eq!(server.count("configmaps", ""), 0);
}

fn typed(mut object: Value) -> Value {
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("ConfigMap");
    object
}

#[tokio::test(start_paused = true)]
async fn without_garbage_collection_finalizers_and_dependents_stay() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    create(&client, "b", &[&a]).await;
    client.delete(&format!("{}?propagationPolicy=Foreground", at("a"))).await.ok();
    assert_eq!(left(&client).await, ["a", "b"]);
    // Another policy replaces the finalizer.
    client.delete(&format!("{}?propagationPolicy=Background", at("a"))).await.ok();
    assert_eq!(left(&client).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_the_dependents_of_its_objects_with_it() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    client.post(definitions, definition).await.ok();
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    let things = "/apis/example.com/v1/namespaces/default/things";
    let owner = client.post(things, thing.clone()).await.ok();
    create(&client, "a", &[&owner]).await;
    client.delete(&format!("{things}/t")).await.ok();
    assert_eq!(left(&client).await, Vec::<String>::new());

    let owner = client.post(things, thing).await.ok();
    create(&client, "a", &[&owner]).await;
    client.delete(&format!("{definitions}/things.example.com")).await.ok();
    assert_eq!(left(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_finishes_its_deletions() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let client = Client::of(&server);
    let a = create(&client, "a", &[]).await;
    create(&client, "b", &[&a]).await;
    client.delete(&format!("{}?propagationPolicy=Foreground", at("a"))).await.ok();
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "home"}})).await.ok();
    client.post("/api/v1/namespaces/home/configmaps", map("held")).await.ok();
    client.delete("/api/v1/namespaces/home").await.ok();

    let other = ApiServer::start();
    other.restore(&server.store().snapshot());
    let client = Client::of(&other);
    client.get(MAPS).await.ok();
    assert_eq!(left(&client).await, Vec::<String>::new());
    client.get("/api/v1/namespaces/home").await.failed(404);
}
