//! Fields that the server sets: identity, time and generation, and the separation of status.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, definition, labelled, map, name, version};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {}},
    })
}

fn generation(object: &Value) -> &Value {
    &object["metadata"]["generation"]
}

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_its_identity_from_the_server_alone() {
    let at = "2026-02-03T04:05:06Z";
    let server = ApiServer::builder().starting_at(at.parse().unwrap()).build();
    let client = Client::of(&server);
    let mut sent = map("a");
    for (field, value) in [
        ("uid", "mine"),
        ("creationTimestamp", "2000-01-01T00:00:00Z"),
        ("deletionTimestamp", "2000-01-01T00:00:00Z"),
        ("selfLink", "x"),
    ] {
        sent["metadata"][field] = json!(value);
    }
    let answer = client.post(MAPS, sent).await;
    assert_eq!(answer.code, 201);
    let made = answer.json();
    let metadata = made["metadata"].as_object().unwrap();
    let fields: Vec<_> = metadata.keys().map(String::as_str).collect();
    assert_eq!(fields, ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"]);
    assert_eq!(metadata["creationTimestamp"], at);
    assert_eq!(version(&made), server.store().revision());
    let uid = metadata["uid"].as_str().unwrap();
    let lengths: Vec<_> = uid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(uid.as_bytes()[14], b'4', "a random uid says so: {uid}");
}

/// A uid distinguishes an object from earlier and later ones of the same name.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_made_again_is_another_one() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let first = client.post(MAPS, map("a")).await.ok();
    client.delete(&format!("{MAPS}/a")).await.ok();
    let second = client.post(MAPS, map("a")).await.ok();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert!(version(&second) > version(&first) + 1, "the deletion has a version of its own");
}

#[tokio::test(start_paused = true)]
async fn identity_stays_whatever_an_update_says_of_it() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let mut changed = map("a");
    changed["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    changed["metadata"]["selfLink"] = json!("x");
    changed["metadata"]["generation"] = json!(7);
    changed["data"] = json!({"k": "v"});
    let updated = client.put(&format!("{MAPS}/a"), changed).await.ok();
    let mut want = made["metadata"].clone();
    want["resourceVersion"] = updated["metadata"]["resourceVersion"].clone();
    assert_eq!(updated["metadata"], want);
    assert!(version(&updated) > version(&made));
}

#[tokio::test(start_paused = true)]
async fn generated_names_have_the_prefix_and_differ() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let prefixed = json!({"metadata": {"generateName": "a-"}});
    let first = client.post(MAPS, prefixed.clone()).await.ok();
    let second = client.post(MAPS, prefixed).await.ok();
    for made in [&first, &second] {
        assert_eq!(name(made).len(), "a-".len() + 5);
        assert!(name(made).starts_with("a-"), "{made}");
        assert_eq!(made["metadata"]["generateName"], "a-");
    }
    assert_ne!(name(&first), name(&second));
    let both = json!({"metadata": {"name": "own", "generateName": "a-"}});
    let own = client.post(MAPS, both).await.ok();
    assert_eq!((name(&own), &own["metadata"]["generateName"]), ("own", &json!("a-")));
    let long = json!({"metadata": {"generateName": "a".repeat(80)}});
    assert_eq!(name(&client.post(MAPS, long).await.ok()).len(), 63);
}

/// `metadata.generation` is the sequence number of the desired state: of the spec, not of labels or
/// the status.
#[tokio::test(start_paused = true)]
async fn generation_counts_changes_of_the_spec_only() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut sent = deployment("d");
    sent["metadata"]["generation"] = json!(9);
    let made = client.post(DEPLOYMENTS, sent).await.ok();
    assert_eq!(*generation(&made), 1);
    let path = format!("{DEPLOYMENTS}/d");
    for (path, patch, want) in [
        (path.clone(), json!({"metadata": {"labels": {"x": "y"}}}), 1),
        (path.clone(), json!({"metadata": {"generation": 5}}), 1),
        (format!("{path}/status"), json!({"status": {"replicas": 3}}), 1),
        (path.clone(), json!({"spec": {"replicas": 2}}), 2),
        (path.clone(), json!({"spec": {"replicas": 2}}), 2),
        (path.clone(), json!({"spec": {"replicas": 3}, "metadata": {"labels": null}}), 3),
    ] {
        let changed = client.merge(&path, patch.clone()).await.ok();
        assert_eq!(*generation(&changed), want, "{patch}");
    }
    let map = client.post(MAPS, map("a")).await.ok();
    assert_eq!(*generation(&map), Value::Null, "a kind without a spec has no generation");
}

/// Without a status subresource, a custom resource's status is ordinary data.
#[tokio::test(start_paused = true)]
async fn generation_counts_the_status_of_a_custom_resource_that_has_no_such_subresource() {
    let server = ApiServer::start();
    let mut walled = definition("walleds", "Walled");
    walled["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    server.create(walled).unwrap();
    server.create(definition("opens", "Open")).unwrap();
    let client = Client::of(&server);
    for (plural, kind, after_status, after_label) in
        [("walleds", "Walled", 1, 1), ("opens", "Open", 2, 2)]
    {
        let path = format!("/apis/tests.example.com/v1/namespaces/default/{plural}");
        let object = json!({
            "apiVersion": "tests.example.com/v1", "kind": kind, "metadata": {"name": "a"},
            "spec": {"x": 1}, "status": {"y": 1},
        });
        let made = client.post(&path, object).await.ok();
        assert_eq!(made["status"]["y"].is_null(), kind == "Walled");
        assert_eq!(*generation(&made), 1);
        let path = format!("{path}/a");
        let changed = client.merge(&path, json!({"status": {"y": 2}})).await.ok();
        assert_eq!(*generation(&changed), after_status, "{kind}");
        let changed = client.merge(&path, json!({"metadata": {"labels": {"b": "2"}}})).await.ok();
        assert_eq!(*generation(&changed), after_label, "{kind}");
        let code = client.merge(&format!("{path}/status"), json!({})).await.code;
        assert_eq!(code, if kind == "Walled" { 200 } else { 404 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_to_the_object_leaves_the_status_alone_and_the_reverse() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut sent = deployment("d");
    sent["status"] = json!({"replicas": 3});
    let made = client.post(DEPLOYMENTS, sent).await.ok();
    assert_eq!(made["status"], json!({}), "a new object has no status of the client's");

    let path = format!("{DEPLOYMENTS}/d");
    let both = json!({
        "metadata": {"labels": {"x": "y"}, "finalizers": ["a.b/c"]},
        "spec": {"replicas": 7}, "status": {"replicas": 4},
    });
    let of_status = client.merge(&format!("{path}/status"), both.clone()).await.ok();
    assert_eq!(of_status["status"], json!({"replicas": 4}));
    assert_eq!(of_status["spec"], made["spec"]);
    // Deployments behave like this, for no known reason.
    assert_eq!(of_status["metadata"]["labels"], Value::Null);
    assert_eq!(of_status["metadata"]["finalizers"], json!(["a.b/c"]));

    let mut replaced = of_status.clone();
    replaced["spec"]["replicas"] = json!(8);
    replaced["status"] = json!({"replicas": 9});
    let of_object = client.put(&path, replaced).await.ok();
    assert_eq!(of_object["spec"]["replicas"], 8);
    assert_eq!(of_object["status"], json!({"replicas": 4}));

    let mut without = of_object.clone();
    without.as_object_mut().unwrap().remove("status");
    assert_eq!(client.put(&path, without).await.ok()["status"], json!({"replicas": 4}));
}

/// An update that changes nothing creates no event, so controllers that write an unchanged object
/// do not wake each other forever.
#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_has_no_version_and_no_event() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, labelled("a", json!({"x": "1"}))).await.ok();
    let before = server.store().revision();
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={before}")).await;
    let path = format!("{MAPS}/a");
    assert_eq!(client.put(&path, made.clone()).await.ok(), made);
    assert_eq!(client.put(&path, labelled("a", json!({"x": "1"}))).await.ok(), made);
    assert_eq!(client.merge(&path, json!({"metadata": {"annotations": {}}})).await.ok(), made);
    assert_eq!(client.json_patch(&path, json!([])).await.ok(), made);
    assert_eq!(server.store().revision(), before);
    watch.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_secrets_texts_become_data_and_are_gone() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "value"}});
    let made = client.post(secrets, secret).await.ok();
    assert_eq!(made["data"], json!({"k": "dmFsdWU="}));
    assert_eq!((&made["stringData"], &made["type"]), (&Value::Null, &json!("Opaque")));
    let patch = json!({"stringData": {"l": "x"}});
    let changed = client.merge(&format!("{secrets}/s"), patch).await.ok();
    assert_eq!(changed["data"], json!({"k": "dmFsdWU=", "l": "eA=="}));
}
