//! Requests that cost the server far more than their sender, and racing writes.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, definition, failure, map, names};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/tests.example.com/v1/namespaces/default/things";

/// Without a limit the response is quadratic, because each error shows all references.
#[tokio::test(start_paused = true)]
async fn an_answer_to_many_bad_owners_is_short() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let owner = |n: usize| {
        json!({"apiVersion": "v1", "kind": "A", "name": format!("n{n}"), "uid": format!("u{n}"),
               "controller": true})
    };
    let mut sent = map("a");
    sent["metadata"]["ownerReferences"] = (0..400).map(owner).collect();
    let answer = client.post(MAPS, sent).await;
    assert_eq!(answer.code, 422);
    assert!(answer.body.len() < 1024 * 1024, "{} bytes", answer.body.len());
    let labels: serde_json::Map<_, _> =
        (0..50_000).map(|n| (format!("-{n}"), json!("-"))).collect();
    let mut sent = map("a");
    sent["metadata"]["labels"] = labels.into();
    let answer = client.post(MAPS, sent).await;
    assert_eq!(answer.code, 422);
    assert!(answer.body.len() < 256 * 1024, "{} bytes", answer.body.len());
}

/// Comparing all pairs of references would take minutes.
#[tokio::test(start_paused = true)]
async fn many_owners_are_compared_in_linear_time() {
    let server = ApiServer::start();
    let owner =
        |n: usize| json!({"apiVersion": "v1", "kind": "A", "name": "n", "uid": n.to_string()});
    let mut sent = map("a");
    sent["metadata"]["ownerReferences"] = (0..15_000).chain(0..100).map(owner).collect();
    let made = Client::of(&server).post(MAPS, sent).await.ok();
    assert_eq!(made["metadata"]["ownerReferences"].as_array().unwrap().len(), 15_000);
}

#[tokio::test(start_paused = true)]
async fn the_last_generation_stays_the_last() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut sent = map("a");
    sent["metadata"]["generation"] = json!(i64::MAX);
    sent["metadata"]["finalizers"] = json!(["tests.example.com/wait"]);
    client.post(MAPS, sent).await.ok();
    let path = format!("{MAPS}/a");
    client.merge(&path, json!({"data": {"a": "b"}})).await.ok();
    client.delete(&path).await.ok();
    assert_eq!(client.get(&path).await.ok()["metadata"]["generation"], json!(i64::MAX));
}

/// Returns a definition with `v1` and `v2`, whose selectable fields are in different places.
fn two_versions() -> Value {
    let mut definition = definition("things", "Thing");
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    let mut second = versions[0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    versions[0]["selectableFields"] =
        json!([{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.color"}]);
    second["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    versions.push(second);
    definition
}

fn thing(version: &str, name: &str, color: &str) -> Value {
    json!({"apiVersion": format!("tests.example.com/{version}"), "kind": "Thing",
           "metadata": {"name": name}, "spec": {"size": "blue", "color": color}})
}

#[tokio::test(start_paused = true)]
async fn custom_fields_are_compared_by_path_in_every_version() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(DEFINITIONS, two_versions()).await.ok();
    let second = THINGS.replace("v1", "v2");
    client.post(THINGS, thing("v1", "one", "red")).await.ok();
    client.post(&second, thing("v2", "two", "red")).await.ok();
    let red = "fieldSelector=spec.color%3Dred";
    for path in [THINGS, &second] {
        let list = client.get(&format!("{path}?{red}")).await.ok();
        assert_eq!(names(&list), ["one", "two"], "{path}");
        let none = client.get(&format!("{path}?fieldSelector=spec.color%3Dblue")).await.ok();
        assert!(names(&none).is_empty(), "{path}");
    }
    // After a write through the other version the object still matches: it is a MODIFIED.
    let mut watch = client.watch(&format!("{THINGS}?watch=1&{red}")).await;
    watch.events(2).await;
    client.merge(&format!("{second}/one"), json!({"spec": {"note": "x"}})).await.ok();
    let event = watch.event().await;
    assert_eq!((event.kind.as_str(), event.brief().1), ("MODIFIED", "one"));
    // The same holds after a change of the definition.
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/selectableFields",
                        "value": [{"jsonPath": ".spec.color"}]}]);
    client.json_patch(&format!("{DEFINITIONS}/things.tests.example.com"), patch).await.ok();
    assert_eq!(names(&client.get(&format!("{THINGS}?{red}")).await.ok()), ["one", "two"]);
    client.merge(&format!("{THINGS}/two"), json!({"spec": {"note": "x"}})).await.ok();
    let event = watch.event().await;
    assert_eq!((event.kind.as_str(), event.brief().1), ("MODIFIED", "two"));
}

#[tokio::test(start_paused = true)]
async fn a_rollback_keeps_versions_that_are_still_defined() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(DEFINITIONS, definition("things", "Thing")).await.ok();
    client.post(THINGS, thing("v1", "one", "red")).await.ok();
    let snapshot = server.store().snapshot();
    let path = format!("{DEFINITIONS}/things.tests.example.com");
    let versions = two_versions()["spec"]["versions"].clone();
    client.merge(&path, json!({"spec": {"versions": versions}})).await.ok();
    server.restore(&snapshot);
    assert_eq!(names(&client.get(THINGS).await.ok()), ["one"]);
    client.post(THINGS, thing("v1", "two", "red")).await.ok();
    assert_eq!(client.get(&THINGS.replace("v1", "v2")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_serves_no_version_is_not_served() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(DEFINITIONS, definition("things", "Thing")).await.ok();
    client.post(THINGS, thing("v1", "one", "red")).await.ok();
    let watch = client.watch(&format!("{THINGS}?watch=1")).await;
    let path = format!("{DEFINITIONS}/things.tests.example.com");
    let serve = |served: bool| json!([{"op": "replace", "path": "/spec/versions/0/served", "value": served}]);
    client.json_patch(&path, serve(false)).await.ok();
    assert_eq!(client.get(THINGS).await.code, 404);
    assert_eq!(watch.rest().await.len(), 1);
    // Its objects were not deleted.
    client.json_patch(&path, serve(true)).await.ok();
    assert_eq!(names(&client.get(THINGS).await.ok()), ["one"]);
    // But they are deleted with the definition, served or not.
    client.json_patch(&path, serve(false)).await.ok();
    client.delete(&path).await.ok();
    client.post(DEFINITIONS, definition("things", "Thing")).await.ok();
    assert!(names(&client.get(THINGS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_waits_for_custom_objects_goes_with_their_definition() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let client = Client::of(&server);
    client.post(DEFINITIONS, definition("things", "Thing")).await.ok();
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "home"}})).await.ok();
    client.post(&THINGS.replace("default", "home"), thing("v1", "one", "red")).await.ok();
    client.delete("/api/v1/namespaces/home").await.ok();
    client.get("/api/v1/namespaces/home").await.ok();
    client.delete(&format!("{DEFINITIONS}/things.tests.example.com")).await.ok();
    let message = "namespaces \"home\" not found";
    let details = json!({"name": "home", "kind": "namespaces"});
    let answer = client.get("/api/v1/namespaces/home").await;
    assert_eq!(answer.json(), failure(404, "NotFound", message, details));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_defined_is_what_is_served_whatever_races() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{DEFINITIONS}/things.tests.example.com");
    for round in 0..300 {
        client.post(DEFINITIONS, definition("things", "Thing")).await.ok();
        let (a, b, path_a, path_b) = (client.clone(), client.clone(), path.clone(), path.clone());
        let deleted = tokio::spawn(async move { a.delete(&path_a).await.code });
        let changed = tokio::spawn(async move {
            for n in 0..4 {
                let labels = json!({"metadata": {"labels": {"n": n.to_string()}}});
                b.merge(&path_b, labels).await;
            }
        });
        deleted.await.unwrap();
        changed.await.unwrap();
        let codes = [client.get(&path).await.code, client.get(THINGS).await.code];
        assert_eq!(codes[0], codes[1], "in round {round}");
        if codes[0] == 200 {
            client.delete(&path).await.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_in_a_namespace_that_is_gone_whatever_races() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let (home, maps) = ("/api/v1/namespaces/home", "/api/v1/namespaces/home/configmaps");
    for round in 0..300 {
        client.post("/api/v1/namespaces", json!({"metadata": {"name": "home"}})).await.ok();
        let (a, b) = (client.clone(), client.clone());
        let deleted = tokio::spawn(async move { a.delete(home).await.code });
        let created = tokio::spawn(async move { b.post(maps, map("a")).await.code });
        deleted.await.unwrap();
        created.await.unwrap();
        if client.get(home).await.code == 404 {
            assert!(names(&client.get(maps).await.ok()).is_empty(), "in round {round}");
        } else {
            client.delete(&format!("{maps}/a")).await.ok();
            assert_eq!(client.get(home).await.code, 404, "in round {round}");
        }
    }
}
