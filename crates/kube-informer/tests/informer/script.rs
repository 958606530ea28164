//! A server with scripted responses, which otherwise behaves like the embedded one.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::{Body, Client};
use kube_informer::BoxError;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Scripted responses to the next requests of each kind.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<Answers>>);

#[derive(Default)]
struct Answers {
    lists: VecDeque<Vec<String>>,
    watches: VecDeque<(Vec<String>, End)>,
}

/// How a scripted watch continues after its lines.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Closed,
    Silent,
}

impl Script {
    /// Answers the next LIST with this body.
    pub(crate) fn list(&self, body: &Value) -> &Self {
        self.0.lock().lists.push_back(vec![body.to_string()]);
        self
    }

    /// Answers the next WATCH with these lines.
    pub(crate) fn watch(&self, lines: impl IntoIterator<Item = Value>, end: End) -> &Self {
        let lines = lines.into_iter().map(|line| format!("{line}\n")).collect();
        self.0.lock().watches.push_back((lines, end));
        self
    }

    pub(crate) fn client(&self, server: &ApiServer) -> Client {
        let service = server.service_as("kubernetes-admin");
        Client::new(Scripted { script: self.clone(), service }, "default")
    }

    fn answer(&self, watch: bool) -> Option<(Vec<String>, End)> {
        let mut answers = self.0.lock();
        if watch {
            return answers.watches.pop_front();
        }
        answers.lists.pop_front().map(|lines| (lines, End::Closed))
    }
}

/// An event of a watch.
pub(crate) fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

pub(crate) fn bookmark(version: &str, initial_events_end: Option<&str>) -> Value {
    let annotations = initial_events_end.map(|end| json!({"k8s.io/initial-events-end": end}));
    event(
        "BOOKMARK",
        &json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"resourceVersion": version, "annotations": annotations},
        }),
    )
}

pub(crate) fn error(code: u16, reason: &str) -> Value {
    event(
        "ERROR",
        &json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": "as the script says",
        }),
    )
}

/// A list of config maps.
pub(crate) fn list(version: &str, next: &str, items: impl IntoIterator<Item = Value>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMapList",
        "metadata": {"resourceVersion": version, "continue": next},
        "items": items.into_iter().collect::<Vec<_>>(),
    })
}

/// A config map as a server would return it.
pub(crate) fn stored(name: &str, value: &str, version: &str) -> Value {
    let mut map = super::scene::map(name, value);
    map["metadata"]["uid"] = name.into();
    map["metadata"]["resourceVersion"] = version.into();
    map
}

#[derive(Clone)]
struct Scripted {
    script: Script,
    service: ApiService,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl tower_service::Service<Request<Body>> for Scripted {
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.script.answer(watch);
        // Sent to the server all the same, so that it is in the record.
        let real = self.service.call(request);
        Box::pin(async move {
            let real = real.await?;
            let Some((lines, end)) = answer else {
                return Ok(real.map(|body| body.map_err(Into::into).boxed_unsync()));
            };
            let frames = stream::iter(lines).map(|line| Ok(Frame::data(Bytes::from(line))));
            let rest = match end {
                End::Closed => stream::empty().boxed(),
                End::Silent => stream::pending().boxed(),
            };
            let body = BodyExt::boxed_unsync(StreamBody::new(frames.chain(rest)));
            Ok(Response::builder()
                .header("content-type", "application/json")
                .body(body)
                .expect("a response"))
        })
    }
}
