//! Removal of objects by requests other than a DELETE.

#[path = "shared/wire.rs"]
mod wire;

use embedded_apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};
use wire::{Given, Wire, version_of};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, metadata: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    object["metadata"]["name"] = name.into();
    object
}

async fn ok(wire: &Wire, method: Method, uri: &str, body: Value) -> Value {
    let reply = wire.send(method, uri, &body).await;
    assert!(reply.code < 300, "{uri}: {}", reply.body);
    reply.body
}

#[tokio::test(start_paused = true)]
async fn the_last_finalizer_shows_the_state_before_it_went() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    let made = map("a", &json!({"finalizers": ["x/y"], "labels": {"in": "1"}}));
    let made = ok(&wire, Method::POST, MAPS, made).await;
    let from = version_of(&made);
    let everything = format!("{MAPS}?watch=1&resourceVersion={from}");
    let mut selected = wire.watch(&format!("{everything}&labelSelector=in%3D1")).await;
    let mut all = wire.watch(&everything).await;
    let marked = ok(&wire, Method::DELETE, &format!("{MAPS}/a"), Value::Null).await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string());

    // Both at once: it is removed, and would no longer match the selector.
    let patch = json!({"metadata": {"finalizers": null, "labels": null}});
    let answer = ok(&wire, Method::PATCH, &format!("{MAPS}/a"), patch).await;
    assert_eq!(answer["metadata"].get("finalizers"), None, "the client sees its change");
    assert_eq!(wire.get(&format!("{MAPS}/a")).await.code, 404);

    for watch in [&mut selected, &mut all] {
        let Given::Event(modified) = watch.next_now() else { panic!("it was marked") };
        assert_eq!((&modified["type"], &modified["object"]), (&json!("MODIFIED"), &marked));
        let Given::Event(deleted) = watch.next_now() else { panic!("it was deleted") };
        let mut last = marked.clone();
        last["metadata"]["resourceVersion"] = server.store().revision().to_string().into();
        assert_eq!((&deleted["type"], &deleted["object"]), (&json!("DELETED"), &last));
        assert_eq!(watch.next_now(), Given::Nothing);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_stays_while_something_is_in_it_or_holds_it() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let wire = Wire::new(&server, "u");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "n", "finalizers": ["x/y"]}});
    ok(&wire, Method::POST, "/api/v1/namespaces", namespace).await;
    let maps = "/api/v1/namespaces/n/configmaps";
    ok(&wire, Method::POST, maps, map("a", &json!({}))).await;
    let one = "/api/v1/namespaces/n";
    ok(&wire, Method::DELETE, one, Value::Null).await;

    // While the namespace is not empty, an update does not remove it.
    ok(&wire, Method::PATCH, one, json!({"metadata": {"labels": {"l": "1"}}})).await;
    assert_eq!(wire.get(one).await.body["status"]["phase"], "Terminating");
    ok(&wire, Method::DELETE, &format!("{maps}/a"), Value::Null).await;
    assert_eq!(wire.get(one).await.code, 200, "its finalizer holds it");
    ok(&wire, Method::PATCH, one, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(wire.get(one).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_updated_goes_with_its_last_object() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let wire = Wire::new(&server, "u");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    ok(&wire, Method::POST, "/api/v1/namespaces", namespace).await;
    let maps = "/api/v1/namespaces/n/configmaps";
    ok(&wire, Method::POST, maps, map("a", &json!({}))).await;
    let one = "/api/v1/namespaces/n";
    ok(&wire, Method::DELETE, one, Value::Null).await;
    ok(&wire, Method::PATCH, one, json!({"metadata": {"labels": {"l": "1"}}})).await;
    assert_eq!(wire.get(one).await.code, 200, "there is a config map in it");
    ok(&wire, Method::DELETE, &format!("{maps}/a"), Value::Null).await;
    assert_eq!(wire.get(one).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_ends_its_resource_when_its_last_finalizer_goes() {
    let server = ApiServer::start();
    let wire = Wire::new(&server, "u");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.e.io", "finalizers": ["x/y"]},
        "spec": {"group": "e.io", "scope": "Cluster",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    ok(&wire, Method::POST, definitions, definition).await;
    let foos = "/apis/e.io/v1/foos";
    let foo = json!({"apiVersion": "e.io/v1", "kind": "Foo", "metadata": {"name": "f"}});
    let from = version_of(&ok(&wire, Method::POST, foos, foo).await);
    let mut watch = wire.watch(&format!("{foos}?watch=1&resourceVersion={from}")).await;
    let one = format!("{definitions}/foos.e.io");
    ok(&wire, Method::DELETE, &one, Value::Null).await;
    assert_eq!(wire.get(foos).await.code, 200, "its finalizer holds it");
    ok(&wire, Method::PATCH, &one, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(server.count("foos.e.io", ""), 0);
    let Given::Event(deleted) = watch.next_now() else { panic!("its object was deleted") };
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(watch.next_now(), Given::End);
}
