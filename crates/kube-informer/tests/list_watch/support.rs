//! A server with config maps, and lists and watches as lines of text.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::{ListItem, ListOptions, WatchItem, WatchOptions, WatchStream};
use kube_informer::{Error, KubeListWatch, ListWatch, Object, Result};
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(7).bookmark_interval(Duration::from_secs(10)).build()
}

/// Creates a config map, and returns its version.
pub(crate) fn add(server: &ApiServer, namespace: &str, name: &str) -> String {
    add_labelled(server, namespace, name, &json!({}))
}

pub(crate) fn add_labelled(
    server: &ApiServer,
    namespace: &str,
    name: &str,
    labels: &Value,
) -> String {
    let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
    version(&create(server, "v1", "ConfigMap", &metadata, &json!({"data": {"key": "Größe"}})))
}

pub(crate) fn add_namespace(server: &ApiServer, name: &str) {
    create(server, "v1", "Namespace", &json!({"name": name}), &json!({}));
}

pub(crate) fn create(
    server: &ApiServer,
    api_version: &str,
    kind: &str,
    metadata: &Value,
    rest: &Value,
) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    server.create(object).unwrap()
}

pub(crate) fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Returns a source for the config maps in the namespace `default`.
pub(crate) fn maps(server: &ApiServer) -> KubeListWatch {
    KubeListWatch::of::<ConfigMap>(server.client()).namespace("default")
}

/// A page that was read to its end.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Object>,
    pub(crate) unreadable: Vec<Error>,
    pub(crate) version: String,
    pub(crate) token: Option<String>,
}

impl Page {
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.objects.iter().map(|object| object.key().as_str()).collect()
    }
}

pub(crate) async fn list(source: &impl ListWatch, options: ListOptions) -> Result<Page> {
    let mut items = source.list(options).await?;
    let mut page = Page::default();
    while let Some(item) = items.next().await {
        match item? {
            ListItem::Object(object) => page.objects.push(object),
            ListItem::Unreadable(error) => page.unreadable.push(error),
            ListItem::End { resource_version, continue_token } => {
                page.version = resource_version.to_string();
                page.token = continue_token;
                assert!(items.next().await.is_none(), "the end is the end");
                return Ok(page);
            }
        }
    }
    panic!("a list ends with its end or an error")
}

/// Lists everything without pages.
pub(crate) async fn list_all(source: &impl ListWatch) -> Page {
    list(source, ListOptions::default()).await.unwrap()
}

pub(crate) async fn list_error(source: &impl ListWatch) -> Error {
    list(source, ListOptions::default()).await.unwrap_err()
}

pub(crate) async fn watch_from(source: &impl ListWatch, version: &str) -> Result<WatchStream> {
    let mut options = WatchOptions::default();
    options.resource_version = Some(version.into());
    source.watch(options).await
}

/// Returns a description of the next event, or its error.
pub(crate) async fn event(watch: &mut WatchStream) -> Result<String> {
    let next = timeout(Duration::from_secs(3600), watch.next()).await.expect("an event");
    Ok(match next.expect("an event, not the end")? {
        WatchItem::Added(object) => format!("added {}", object.key()),
        WatchItem::Modified(object) => format!("modified {}", object.key()),
        WatchItem::Deleted(object) => format!("deleted {}", object.key()),
        WatchItem::Unreadable { error, resource_version, deleted } => {
            let what = if deleted { "deleted" } else { "changed" };
            let key = error.key().map(ToString::to_string).unwrap_or_default();
            assert!(!resource_version.is_empty());
            format!("{what} unreadable {key}")
        }
        WatchItem::Bookmark { initial_events_end: false, .. } => "bookmark".to_owned(),
        WatchItem::Bookmark { .. } => "end of initial events".to_owned(),
    })
}

/// Returns the error that takes the place of the next event.
pub(crate) async fn watch_error(watch: &mut WatchStream) -> Error {
    let error = event(watch).await.unwrap_err();
    assert!(watch.next().await.is_none(), "an error ends a watch");
    error
}

/// Returns the path and query of the last request.
pub(crate) fn last_uri(server: &ApiServer) -> String {
    server.requests().pop().unwrap().uri
}
