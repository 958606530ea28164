//! A server with config maps, informers of them, and their recorded events.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Verb};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::{
    ListItem, ListOptions, ListStream, WatchItem, WatchOptions, WatchStream,
};
use kube_informer::{
    ErrorReport, Event, FinalState, FromSource, InformerBuilder, KubeListWatch, ListWatch, Next,
    Object, Result, SharedInformer,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

pub(crate) type Maps = SharedInformer<ConfigMap>;

pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(7).bookmark_interval(Duration::from_secs(10)).build()
}

pub(crate) fn add(server: &ApiServer, name: &str) {
    server.create(map(name, "first")).expect("it is new");
}

pub(crate) fn change(server: &ApiServer, name: &str, value: &str) {
    server.update(map(name, value)).expect("it is there");
}

pub(crate) fn remove(server: &ApiServer, name: &str) {
    server.delete("configmaps", "default", name).expect("it is there");
}

fn map(name: &str, value: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": name},
        "data": {"value": value},
    })
}

pub(crate) fn source(server: &ApiServer) -> KubeListWatch {
    KubeListWatch::of::<ConfigMap>(server.client())
}

pub(crate) fn builder(server: &ApiServer) -> InformerBuilder<ConfigMap, FromSource> {
    SharedInformer::from_source(source(server)).seed(7)
}

/// Builds and starts an informer, and waits for its sync.
pub(crate) async fn synced(builder: InformerBuilder<ConfigMap, FromSource>) -> Maps {
    let maps = builder.build();
    maps.start();
    maps.wait_for_sync().await.expect("it syncs");
    settle().await;
    maps
}

/// Runs everything that can run now; time is paused.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

pub(crate) async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

pub(crate) fn names<K: 'static>(informer: &SharedInformer<K>) -> Vec<String> {
    let list = informer.lister().list();
    let mut names: Vec<_> = list.iter().map(|object| object.name().to_owned()).collect();
    names.sort();
    names
}

/// Returns the number of lists and streaming lists.
pub(crate) fn lists(server: &ApiServer) -> usize {
    let all = server.requests();
    let stream = |uri: &str| uri.contains("sendInitialEvents=true");
    all.iter().filter(|one| one.verb == Some(Verb::List) || stream(&one.uri)).count()
}

/// A shared list of notes.
pub(crate) struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Notes<T> {
    pub(crate) fn push(&self, note: T) {
        self.0.lock().push(note);
    }
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Notes<ErrorReport> {
    pub(crate) fn reporter(&self) -> impl Fn(&ErrorReport) + Send + Sync + 'static {
        let notes = self.clone();
        move |report| notes.push(report.clone())
    }

    /// The reaction to each error.
    pub(crate) fn nexts(&self) -> Vec<&'static str> {
        let next = |report: &ErrorReport| match report.next {
            Next::Resume { .. } => "resume",
            Next::Relist { .. } => "relist",
            Next::Poll { .. } => "poll",
            Next::FallBackToList => "fall back",
            Next::SkipObject => "skip",
            _ => "other",
        };
        self.0.lock().iter().map(next).collect()
    }
}

impl Notes<String> {
    /// Records events: `*a` initial, `+a`, `~a`, `=a` unchanged, `-a`, `?a` (a missed delete), `synced`.
    pub(crate) fn handler<K>(&self) -> impl FnMut(Event<K>) + Send + 'static {
        let notes = self.clone();
        move |event| notes.push(short(&event))
    }
}

pub(crate) fn short<K>(event: &Event<K>) -> String {
    match event {
        Event::Added { object, initial: true } => format!("*{}", object.name()),
        Event::Added { object, .. } => format!("+{}", object.name()),
        Event::Updated { old, new } if old.resource_version() == new.resource_version() => {
            format!("={}", new.name())
        }
        Event::Updated { new, .. } => format!("~{}", new.name()),
        Event::Deleted(gone) if gone.final_state == FinalState::Known => {
            format!("-{}", gone.name())
        }
        Event::Deleted(gone) => format!("?{}", gone.name()),
        Event::Resynced(object) => format!("resync {}", object.name()),
        Event::Synced => "synced".to_owned(),
    }
}

/// A custom source that counts requests and follows its instructions.
#[derive(Clone, Default)]
pub(crate) struct Own {
    pub(crate) streams: bool,
    pub(crate) lists: Lists,
    pub(crate) asked: Notes<&'static str>,
}

#[derive(Clone, Copy, Default)]
pub(crate) enum Lists {
    /// One object, `a`.
    #[default]
    One,
    /// A watch without events.
    Hang,
    Panic,
}

impl ListWatch for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        self.asked.push("list");
        let end = ListItem::End { resource_version: 1.into(), continue_token: None };
        match self.lists {
            Lists::One => {
                let items = [ListItem::Object(object("a", 1)), end];
                Box::pin(async { Ok(stream::iter(items.map(Ok)).boxed()) })
            }
            Lists::Hang => Box::pin(std::future::pending()),
            Lists::Panic => Box::pin(async { panic!("a source of somebody's own") }),
        }
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        let initial = options.send_initial_events;
        self.asked.push(if initial { "stream" } else { "watch" });
        let end = WatchItem::Bookmark { resource_version: 1.into(), initial_events_end: true };
        let items = if initial { vec![WatchItem::Added(object("a", 1)), end] } else { vec![] };
        Box::pin(async {
            Ok(stream::iter(items.into_iter().map(Ok)).chain(stream::pending()).boxed())
        })
    }

    fn streams_lists(&self) -> bool {
        self.streams
    }
}

pub(crate) fn object(name: &str, version: u32) -> Object {
    let metadata = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
    Object::from_json(json!({"metadata": metadata}).to_string()).expect("an object")
}
