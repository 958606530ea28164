//! `PartialObjectMeta`: reads of metadata only.

use embedded_apiserver::ApiServer;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::{PartialObjectMeta, PartialObjectMetaExt};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;

fn a_map(server: &ApiServer) -> Api<ConfigMap> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"l": "m"}}, "data": {"big": "data"},
    });
    server.create(map).unwrap();
    Api::default_namespaced(server.client())
}

#[tokio::test(start_paused = true)]
async fn gets_lists_and_patches_can_be_of_metadata() {
    let server = ApiServer::start();
    let maps = a_map(&server);
    let whole = maps.get("a").await.unwrap();
    assert_eq!(maps.get_metadata("a").await.unwrap().metadata, whole.metadata);
    assert!(maps.get_metadata_opt("nope").await.unwrap().is_none());
    let list = maps.list_metadata(&ListParams::default().labels("l=m")).await.unwrap();
    assert_eq!((list.items.len(), &list.items[0].metadata), (1, &whole.metadata));

    let change = kube::api::ObjectMeta {
        annotations: Some([("k".to_owned(), "v".to_owned())].into()),
        ..kube::api::ObjectMeta::default()
    };
    let patch = change.into_request_partial::<ConfigMap>();
    let patched = maps.patch_metadata("a", &PatchParams::default(), &Patch::Merge(&patch)).await;
    assert_eq!(patched.unwrap().annotations()["k"], "v");
    assert_eq!(maps.get("a").await.unwrap().data, whole.data);
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_of_metadata() {
    let server = ApiServer::start();
    let maps = a_map(&server);
    let mut watch = maps.watch_metadata(&WatchParams::default(), "0").await.unwrap().boxed();
    let Some(WatchEvent::Added(added)) = watch.try_next().await.unwrap() else {
        panic!("what is there comes first")
    };
    assert_eq!(added.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    assert_eq!(added.labels()["l"], "m");

    let partial: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(server.client());
    let applied = watcher(partial, watcher::Config::default()).applied_objects();
    let first = applied.boxed().try_next().await.unwrap().unwrap();
    assert_eq!(first.metadata, added.metadata);
}
