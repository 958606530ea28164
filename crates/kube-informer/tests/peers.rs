//! The README's statements about kube-runtime, compared with this library.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::runtime::watcher::{self, Event as TheirEvent};
use kube_informer::{Event, FinalState, SharedInformerFactory};
use serde_json::json;
use tokio::time::sleep;

fn map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Takes the server down while an object is deleted and the history compacted.
async fn miss_a_delete(server: &ApiServer, name: &str) {
    server.refuse_connections();
    server.delete("configmaps", "default", name).unwrap();
    server.store().compact(u64::MAX);
    sleep(Duration::from_secs(5)).await;
    server.accept_connections();
}

#[tokio::test(start_paused = true)]
async fn a_missed_delete_is_no_event_of_kube_runtime() {
    let server = ApiServer::start();
    server.create(map("gone")).unwrap();
    let maps: Api<ConfigMap> = Api::all(server.client());
    let mut theirs = watcher::watcher(maps, watcher::Config::default()).boxed();
    while !matches!(theirs.next().await, Some(Ok(TheirEvent::InitDone))) {}

    miss_a_delete(&server, "gone").await;
    server.create(map("after")).unwrap();
    let mut deletes = 0;
    loop {
        match theirs.next().await.unwrap() {
            Ok(TheirEvent::Delete(_)) => deletes += 1,
            // The following list lacks it, and that is all.
            Ok(TheirEvent::InitDone) => break,
            _ => sleep(Duration::from_secs(1)).await,
        }
    }
    assert_eq!(deletes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_missed_delete_is_an_event_of_ours() {
    let server = ApiServer::start();
    server.create(map("gone")).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let mut ours = factory.informer::<ConfigMap>().events();
    factory.start();
    while !matches!(ours.next().await, Some(Event::Synced)) {}

    miss_a_delete(&server, "gone").await;
    let Some(Event::Deleted(deleted)) = ours.next().await else { panic!("no delete") };
    assert_eq!((deleted.name(), deleted.final_state), ("gone", FinalState::Unknown));
}

/// Creates an object that does not match the program's type: its size is not a number.
fn strange(server: &ApiServer) {
    server.create(definition()).unwrap();
    server.create(widget("good", &json!(3))).unwrap();
    server.create(widget("strange", &json!("three"))).unwrap();
}

fn definition() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn widget(name: &str, size: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": name}, "spec": {"size": size},
    })
}

#[derive(
    kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

#[tokio::test(start_paused = true)]
async fn kube_runtime_fails_lists_with_an_undecodable_object() {
    let server = ApiServer::start();
    strange(&server);
    let widgets: Api<Widget> = Api::all(server.client());
    let mut theirs = watcher::watcher(widgets, watcher::Config::default()).boxed();
    // However often it retries, no object arrives, not even the good one.
    for _ in 0..5 {
        match theirs.next().await.unwrap() {
            Ok(TheirEvent::Init) | Err(_) => {}
            Ok(event) => panic!("{event:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_in_our_cache() {
    let server = ApiServer::start();
    strange(&server);
    let factory = SharedInformerFactory::new(server.client());
    let widgets = factory.informer::<Widget>().lister();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(widgets.list().len(), 2);
    let decoded = widgets.list().into_iter().filter(|widget| widget.decode().is_ok()).count();
    assert_eq!(decoded, 1);
}
