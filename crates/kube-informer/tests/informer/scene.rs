//! A server, changes of its config maps, and the requests that it received.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{ApiServer, RequestRecord, Verb};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::{
    KubeListWatch, ListOptions, ListStream, WatchOptions, WatchStream,
};
use kube_informer::{ErrorReport, ListWatch, Lister, Next, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// A server with reproducible uids and random choices.
pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(7).build()
}

/// A config map with one value.
pub(crate) fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"value": value}},
        "data": {"value": value},
    })
}

/// Changes of the server's config maps. Each returns the new version.
pub(crate) trait Maps {
    fn add(&self, name: &str, value: &str) -> String;
    fn change(&self, name: &str, value: &str) -> String;
    fn remove(&self, name: &str) -> String;
    fn version(&self) -> String;
}

impl Maps for ApiServer {
    fn add(&self, name: &str, value: &str) -> String {
        self.create(map(name, value)).expect("it is new");
        self.version()
    }

    fn change(&self, name: &str, value: &str) -> String {
        self.update(map(name, value)).expect("it is there");
        self.version()
    }

    fn remove(&self, name: &str) -> String {
        self.delete("configmaps", "default", name).expect("it is there");
        self.version()
    }

    fn version(&self) -> String {
        self.store().revision().to_string()
    }
}

/// The config maps of a server, listed as a stream.
pub(crate) fn maps_of(server: &ApiServer) -> KubeListWatch {
    KubeListWatch::of::<ConfigMap>(server.client())
}

/// A source without support for streaming lists.
pub(crate) struct Listed<S>(pub(crate) S);

impl<S: ListWatch> ListWatch for Listed<S> {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        self.0.list(options)
    }
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        self.0.watch(options)
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

/// Returns the lists and watches that an informer requested.
pub(crate) fn requests(server: &ApiServer) -> Vec<RequestRecord> {
    let of_informers = |request: &RequestRecord| {
        matches!(request.verb, Some(Verb::List | Verb::Watch)) && request.user != "oracle"
    };
    server.requests().into_iter().filter(of_informers).collect()
}

/// Returns the requests in short form: `list rv=0 limit=500`, `list rv>=7`, `list next limit=500`,
/// `stream`, `stream rv>=7`, `watch rv=7`.
pub(crate) fn asked(server: &ApiServer) -> Vec<String> {
    requests(server).iter().map(short).collect()
}

/// Returns the times between requests.
pub(crate) fn gaps(server: &ApiServer) -> Vec<Duration> {
    let requests = requests(server);
    requests.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect()
}

pub(crate) fn count(server: &ApiServer, verb: Verb) -> usize {
    requests(server).iter().filter(|request| request.verb == Some(verb)).count()
}

/// Returns one parameter of a request.
pub(crate) fn parameter(request: &RequestRecord, name: &str) -> Option<String> {
    let query = request.uri.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn short(request: &RequestRecord) -> String {
    let get = |name| parameter(request, name);
    let mut text = match (request.verb, get("sendInitialEvents").as_deref()) {
        (Some(Verb::List), _) => "list".to_owned(),
        (_, Some("true")) => "stream".to_owned(),
        _ => "watch".to_owned(),
    };
    if get("continue").is_some() {
        text += " next";
    }
    match (get("resourceVersion"), get("resourceVersionMatch").as_deref()) {
        (Some(version), Some("NotOlderThan")) => text += &[" rv>=", &version].concat(),
        (Some(version), None) => text += &[" rv=", &version].concat(),
        (Some(version), Some(other)) => text += &[" rv ", other, " ", &version].concat(),
        (None, _) => {}
    }
    if let Some(limit) = get("limit") {
        text += &[" limit=", &limit].concat();
    }
    text
}

/// Runs everything until nothing is left to do but to wait for time to pass, which is paused.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

pub(crate) async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// Waits until a condition holds, and returns how long it took.
pub(crate) async fn within(
    limit: Duration,
    what: &str,
    mut holds: impl FnMut() -> bool,
) -> Duration {
    let began = Instant::now();
    settle().await;
    while !holds() {
        assert!(began.elapsed() <= limit, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

/// Returns whether a cache has exactly the server's objects, in their newest state.
pub(crate) fn agrees(server: &ApiServer, lister: &Lister<ConfigMap>) -> bool {
    let list = lister.list();
    let newest = |name: &str| {
        let object = server.get("configmaps", "default", name)?;
        Some(object["metadata"]["resourceVersion"].as_str()?.to_owned())
    };
    list.len() == server.count("configmaps", "")
        && list.iter().all(|object| {
            newest(object.name()).is_some_and(|newest| *object.resource_version() == *newest)
        })
}

/// The reported errors.
#[derive(Clone, Default)]
pub(crate) struct Errors(Arc<Mutex<Vec<ErrorReport>>>);

impl Errors {
    pub(crate) fn recorder(&self) -> impl Fn(&ErrorReport) + Send + Sync + 'static {
        let errors = self.0.clone();
        move |report| errors.lock().push(report.clone())
    }

    pub(crate) fn all(&self) -> Vec<ErrorReport> {
        self.0.lock().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn last(&self) -> ErrorReport {
        self.0.lock().last().expect("an error was reported").clone()
    }

    /// The reaction to each error, without the pause.
    pub(crate) fn nexts(&self) -> Vec<&'static str> {
        self.0.lock().iter().map(|report| next(&report.next)).collect()
    }

    pub(crate) fn attempts(&self) -> Vec<u32> {
        self.0.lock().iter().map(|report| report.attempt).collect()
    }
}

pub(crate) fn next(next: &Next) -> &'static str {
    match next {
        Next::Resume { .. } => "resume",
        Next::Relist { .. } => "relist",
        Next::Poll { .. } => "poll",
        Next::FallBackToList => "fall back",
        Next::SkipObject => "skip",
        _ => "other",
    }
}

/// Returns the pause that a report announces.
pub(crate) fn pause(report: &ErrorReport) -> Duration {
    match report.next {
        Next::Resume { after } | Next::Relist { after } | Next::Poll { after } => after,
        _ => Duration::ZERO,
    }
}
