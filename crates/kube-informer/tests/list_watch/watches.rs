//! Watches.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube_informer::list_watch::{WatchItem, WatchOptions};
use kube_informer::{KubeListWatch, ListWatch};
use serde_json::{Value, json};

use crate::support::{
    add, add_labelled, add_namespace, event, last_uri, list_all, maps, server, watch_from,
};

#[tokio::test(start_paused = true)]
async fn r40_a_watch_from_a_version_is_every_change_after_it() {
    let server = server();
    add(&server, "default", "a");
    let source = maps(&server);
    let version = list_all(&source).await.version;
    add(&server, "default", "b");
    let mut watch = watch_from(&source, &version).await.unwrap();
    let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    assert_eq!(last_uri(&server), format!("/api/v1/namespaces/default/configmaps?{query}"));
    assert_eq!(event(&mut watch).await.unwrap(), "added default/b");
    let mut a = server.get("configmaps", "default", "a").unwrap();
    a["data"] = json!({"new": "value"});
    server.update(a).unwrap();
    server.delete("configmaps", "default", "a").unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "modified default/a");
    assert_eq!(event(&mut watch).await.unwrap(), "deleted default/a");
    assert_eq!(event(&mut watch).await.unwrap(), "bookmark");
}

#[tokio::test(start_paused = true)]
async fn w1_a_streaming_list_ends_with_its_bookmark_and_goes_on() {
    let server = server();
    add(&server, "default", "a");
    let newest = add(&server, "default", "b");
    let mut options = WatchOptions::default();
    options.send_initial_events = true;
    options.timeout = Some(Duration::from_secs(300));
    let mut watch = maps(&server).watch(options).await.unwrap();
    assert!(last_uri(&server).ends_with(
        "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&\
         resourceVersionMatch=NotOlderThan&timeoutSeconds=300"
    ));
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    assert_eq!(event(&mut watch).await.unwrap(), "added default/b");
    let Some(Ok(WatchItem::Bookmark { resource_version, initial_events_end: true })) =
        watch.next().await
    else {
        panic!("the end of the initial events")
    };
    assert_eq!(resource_version.as_str(), newest);
    add(&server, "default", "c");
    assert_eq!(event(&mut watch).await.unwrap(), "added default/c");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_times_out_ends_without_an_error() {
    let server = server();
    let mut options = WatchOptions::default();
    options.timeout = Some(Duration::from_secs(5));
    options.resource_version = Some(add(&server, "default", "a").as_str().into());
    let watch = maps(&server).watch(options).await.unwrap();
    let items: Vec<_> = watch.collect().await;
    assert!(items.iter().all(|item| matches!(item, Ok(WatchItem::Bookmark { .. }))), "{items:?}");
}

#[tokio::test(start_paused = true)]
async fn every_source_watches_what_it_lists() {
    let server = server();
    add_namespace(&server, "web");
    let version = add(&server, "default", "a");
    let resource = ApiResource::erase::<ConfigMap>(&());
    let dynamic = Api::<DynamicObject>::namespaced_with(server.client(), "web", &resource);
    let everywhere = KubeListWatch::of::<ConfigMap>(server.client());
    let sources = [
        everywhere.clone().namespace("web"),
        dynamic.into(),
        everywhere.clone().labels("app=web"),
        everywhere.fields("metadata.namespace=web"),
    ];
    let mut watches = Vec::new();
    for source in &sources {
        watches.push(watch_from(source, &version).await.unwrap());
    }
    add(&server, "default", "b");
    add_labelled(&server, "web", "c", &json!({"app": "web"}));
    for watch in &mut watches {
        assert_eq!(event(watch).await.unwrap(), "added web/c");
    }
}

#[tokio::test(start_paused = true)]
async fn sv7_leaving_the_selection_is_a_delete() {
    let server = server();
    let source = maps(&server).labels("app=web");
    let version = add_labelled(&server, "default", "a", &json!({"app": "web"}));
    let mut watch = watch_from(&source, &version).await.unwrap();
    let mut a = server.get("configmaps", "default", "a").unwrap();
    a["metadata"]["labels"]["app"] = json!("db");
    let updated = server.update(a).unwrap();
    let Some(Ok(WatchItem::Deleted(gone))) = watch.next().await else { panic!("a delete") };
    assert_eq!(gone.resource_version().as_str(), crate::support::version(&updated));
    assert_eq!(gone.labels().get("app"), Some("web"));
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_all_that_is_watched() {
    let server = server();
    let source = maps(&server).metadata_only();
    let version = list_all(&source).await.version;
    let mut watch = watch_from(&source, &version).await.unwrap();
    add(&server, "default", "a");
    let Some(Ok(WatchItem::Added(added))) = watch.next().await else { panic!("an object") };
    assert_eq!(added.key().as_str(), "default/a");
    assert_eq!(added.field::<Value>("data").unwrap(), None);
    assert_eq!(event(&mut watch).await.unwrap(), "bookmark");
}
