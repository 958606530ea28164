//! kube-rs's `Api`, a client that we did not write, does all its verbs.

use embedded_apiserver::ApiServer;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

#[tokio::test(start_paused = true)]
async fn verbs_of_one_object() {
    let server = ApiServer::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());

    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert!(made.metadata.uid.is_some());
    let version = made.metadata.resource_version.clone().unwrap();
    assert_eq!(maps.get("a").await.unwrap(), made);

    let patch = Patch::Merge(json!({"data": {"k": "v"}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.as_ref().unwrap()["k"], "v");
    assert_ne!(patched.metadata.resource_version, Some(version.clone()));

    let mut stale = made.clone();
    stale.metadata.resource_version = Some(version);
    let conflict = maps.replace("a", &PostParams::default(), &stale).await.unwrap_err();
    assert!(matches!(conflict, kube::Error::Api(status) if status.is_conflict()));

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn list_and_watch() {
    let server = ApiServer::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    assert_eq!(page.metadata.remaining_item_count, Some(1));
    let token = page.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(rest.items.len(), 1);
    assert_eq!(rest.metadata.continue_, None);

    let version = page.metadata.resource_version.unwrap();
    let watch = maps.watch(&WatchParams::default(), &version).await.unwrap();
    let mut watch = watch.boxed();
    maps.create(&PostParams::default(), &config_map("d")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let added = watch.try_next().await.unwrap().unwrap();
    assert!(matches!(added, WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("d")));
    let deleted = watch.try_next().await.unwrap().unwrap();
    assert!(
        matches!(deleted, WatchEvent::Deleted(map) if map.metadata.name.as_deref() == Some("a"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_group_is_a_404() {
    let server = ApiServer::start();
    let pods: Api<Pod> = Api::namespaced(server.client(), "nope");
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}
