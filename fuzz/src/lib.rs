//! Responses made of the fuzzer's bytes, and descriptions of what the library reads from them.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::Client;
use kube_core::{ApiResource, GroupVersionKind};
use kube_informer::list_watch::{ListItem, ListOptions, WatchItem, WatchOptions};
use kube_informer::{KubeListWatch, ListWatch, Object};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// Returns a runtime with paused time, which advances only while everything waits.
pub fn runtime() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().expect("a runtime can be built")
}

/// Runs a future to completion, on this thread's runtime.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: Runtime = runtime();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

pub fn pods() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"))
}

/// A server that answers every request with the same bytes.
#[derive(Clone)]
pub struct Answer {
    protobuf: bool,
    metadata_only: bool,
    body: Bytes,
}

impl Answer {
    /// The bits of `options` choose the encoding, metadata only, and whether the bytes come in an envelope.
    pub fn new(options: u8, body: &[u8], is_list: bool) -> Self {
        let (protobuf, metadata_only) = (options & 1 != 0, options & 2 != 0);
        let body = match options & 4 {
            0 if protobuf && is_list => {
                let kind = if metadata_only { PARTIAL_LIST } else { ("v1", "PodList") };
                envelope(kind, body)
            }
            _ => body.to_vec(),
        };
        Self { protobuf, metadata_only, body: body.into() }
    }

    fn source(&self, chunk: usize) -> KubeListWatch {
        let client = Client::new(Server { answer: self.clone(), chunk }, "default");
        let source = KubeListWatch::new(client, &pods());
        if self.metadata_only { source.metadata_only() } else { source }
    }

    /// Reads the response as a list, in chunks of this size, and describes each item.
    pub fn list(&self, chunk: usize) -> Vec<String> {
        run(async {
            let mut items = match self.source(chunk).list(ListOptions::default()).await {
                Ok(items) => items,
                Err(error) => return vec![error.to_string()],
            };
            let mut all = Vec::new();
            while let Some(item) = items.next().await {
                all.push(match item {
                    Ok(ListItem::Object(object)) => describe(&object),
                    Ok(other) => format!("{other:?}"),
                    Err(error) => error.to_string(),
                });
            }
            all
        })
    }

    /// Reads the objects of the response, which is a list.
    pub fn objects(&self) -> Vec<Object> {
        run(async {
            let items = self.source(usize::MAX).list(ListOptions::default()).await;
            let mut items = items.expect("a server that answers");
            let mut objects = Vec::new();
            while let Some(Ok(item)) = items.next().await {
                if let ListItem::Object(object) = item {
                    objects.push(object);
                }
            }
            objects
        })
    }

    /// Reads the response as a watch, in chunks of this size, and describes each event.
    pub fn watch(&self, chunk: usize) -> Vec<String> {
        run(async {
            let mut options = WatchOptions::default();
            options.resource_version = Some("1".into());
            let mut events = match self.source(chunk).watch(options).await {
                Ok(events) => events,
                Err(error) => return vec![error.to_string()],
            };
            let mut all = Vec::new();
            while let Some(event) = events.next().await {
                all.push(match event {
                    Ok(WatchItem::Added(object)) => format!("added {}", describe(&object)),
                    Ok(WatchItem::Modified(object)) => format!("modified {}", describe(&object)),
                    Ok(WatchItem::Deleted(object)) => format!("deleted {}", describe(&object)),
                    Ok(other) => format!("{other:?}"),
                    Err(error) => error.to_string(),
                });
            }
            all
        })
    }
}

/// Reads every part of an object, and describes it.
pub fn describe(object: &Object) -> String {
    let json = object.to_json().map(|json| String::from_utf8_lossy(&json).into_owned());
    let value = object.decode_as::<Value>().map_err(|error| error.to_string());
    let node = object.field::<Value>("spec.nodeName").map_err(|error| error.to_string());
    let (labels, owner) = (object.labels(), object.controller());
    format!("{} {json:?} {value:?} {node:?} {labels:?} {owner:?}", object.key())
}

pub const PARTIAL_LIST: (&str, &str) = ("meta.k8s.io/v1", "PartialObjectMetadataList");

/// Wraps a message as servers do: `k8s\0`, and an `Unknown` with its kind.
pub fn envelope((api_version, kind): (&str, &str), message: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    field(1, api_version.as_bytes(), &mut types);
    field(2, kind.as_bytes(), &mut types);
    let mut out = b"k8s\0".to_vec();
    field(1, &types, &mut out);
    field(2, message, &mut out);
    out
}

/// Writes a field of bytes.
pub fn field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    let mut len = bytes.len();
    while len > 0x7f {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(bytes);
}

struct Server {
    answer: Answer,
    chunk: usize,
}

type Chunks = stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

impl<B> tower_service::Service<Request<B>> for Server {
    type Response = Response<StreamBody<Chunks>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let content_type = match (self.answer.protobuf, is_watch) {
            (true, true) => "application/vnd.kubernetes.protobuf;stream=watch",
            (true, false) => "application/vnd.kubernetes.protobuf",
            (false, _) => "application/json",
        };
        let chunks = self.answer.body.chunks(self.chunk.max(1));
        let chunks: Vec<_> =
            chunks.map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))).collect();
        let body = StreamBody::new(stream::iter(chunks));
        let response = Response::builder().header("content-type", content_type).body(body);
        ready(Ok(response.expect("it is valid")))
    }
}
