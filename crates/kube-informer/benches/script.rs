//! An API server that only plays back: a service below `kube::Client` whose answers are prepared, so
//! that what is measured is the client's side alone, from the bytes on.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tower_service::Service;

use crate::pods::{self, Part};

/// About the size of a read from a socket. Objects do not end where these do.
const CHUNK_BYTES: usize = 16 << 10;

/// How the first list is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// As a watch that begins with everything: `sendInitialEvents`.
    Streamed,
    /// In pages of 500.
    Paged,
    /// In one piece.
    Whole,
}

impl How {
    pub(crate) const ALL: [Self; 3] = [Self::Streamed, Self::Paged, Self::Whole];

    pub(crate) fn name(self) -> &'static str {
        match self {
            How::Streamed => "streamed",
            How::Paged => "pages of 500",
            How::Whole => "one piece",
        }
    }

    pub(crate) fn page_size(self) -> Option<u32> {
        (self == How::Paged).then_some(500)
    }
}

/// Where the bytes of a list come from.
pub(crate) enum List {
    /// They were made before. Each object begins with a comma, and ends here.
    Ready { bytes: Bytes, ends: Vec<usize> },
    /// They are made when asked for, so that they are nowhere in memory.
    Made,
}

#[derive(Clone)]
pub(crate) struct Script(Arc<Inner>);

struct Inner {
    pods: usize,
    part: Part,
    how: How,
    list: List,
    /// The events of the first watch once it is released; later watches are silent.
    events: Vec<Bytes>,
    go: watch::Sender<bool>,
    watches: AtomicUsize,
}

type Chunks = BoxStream<'static, Bytes>;
type Answer = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

impl Script {
    pub(crate) fn new(pods: usize, part: Part, how: How, list: List, events: Vec<Bytes>) -> Self {
        let (go, watches) = (watch::Sender::new(false), AtomicUsize::new(0));
        Self(Arc::new(Inner { pods, part, how, list, events, go, watches }))
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// Lets the first watch speak.
    pub(crate) fn go(&self) {
        self.0.go.send_replace(true);
    }

    /// The same again from the beginning.
    pub(crate) fn rewind(&self) {
        self.0.go.send_replace(false);
        self.0.watches.store(0, Ordering::SeqCst);
    }

    fn answer(&self, request: &Request<Body>) -> Response<Answer> {
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            let pair = query.split('&').find_map(|pair| pair.strip_prefix(name));
            pair.and_then(|value| value.strip_prefix('='))
        };
        if value("watch").is_none() {
            let from: usize =
                value("continue").map_or(0, |token| token.parse().expect("our token"));
            let limit = value("limit").map_or(usize::MAX, |limit| limit.parse().expect("a number"));
            let to = from.saturating_add(limit).min(self.0.pods);
            return respond(200, self.page(from..to));
        }
        if value("sendInitialEvents") == Some("true") {
            if self.0.how != How::Streamed {
                let refusal = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}"#;
                return respond(422, stream::iter([Bytes::from(refusal)]).boxed());
            }
            return respond(200, self.initial_events().chain(self.watch()).boxed());
        }
        respond(200, self.watch())
    }

    fn page(&self, range: Range<usize>) -> Chunks {
        let Inner { pods, part, .. } = &*self.0;
        let token = if range.end < *pods { range.end.to_string() } else { String::new() };
        let head = format!(
            r#"{{{},"metadata":{{"resourceVersion":"{pods}","continue":"{token}"}},"items":["#,
            part.list_types()
        );
        let ends = stream::iter([Bytes::from(head)]);
        ends.chain(self.items(range)).chain(stream::iter([Bytes::from("]}\n")])).boxed()
    }

    fn items(&self, range: Range<usize>) -> Chunks {
        if range.is_empty() {
            return stream::empty().boxed();
        }
        let part = self.0.part;
        let List::Ready { bytes, ends } = &self.0.list else {
            return made(range, move |pod, first, text| {
                text.push_str(if first { "" } else { "," });
                pods::item(text, pod, pod + 1, part);
            });
        };
        let start = if range.start == 0 { 0 } else { ends[range.start - 1] };
        stream::iter(chunks(bytes.slice(start + 1..ends[range.end - 1]))).boxed()
    }

    fn initial_events(&self) -> Chunks {
        let Inner { pods, part, list, .. } = &*self.0;
        let (pods, part) = (*pods, *part);
        let events = match list {
            List::Ready { bytes, .. } => stream::iter(chunks(bytes.clone())).boxed(),
            List::Made => made(0..pods, move |pod, _, text| {
                text.push_str(&pods::event("ADDED", pod, pod + 1, part));
            }),
        };
        let end = format!(
            r#"{{"type":"BOOKMARK","object":{{{},"metadata":{{"resourceVersion":"{pods}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}{}"#,
            part.types(),
            "\n"
        );
        events.chain(stream::iter([Bytes::from(end)])).boxed()
    }

    /// Each event in a chunk of its own: a server writes and flushes them one by one.
    fn watch(&self) -> Chunks {
        let first = self.0.watches.fetch_add(1, Ordering::SeqCst) == 0;
        if !first {
            return stream::pending().boxed();
        }
        let mut go = self.0.go.subscribe();
        let wait = stream::once(async move {
            let _ = go.wait_for(|go| *go).await;
            Bytes::new()
        });
        let (script, count) = (self.clone(), self.0.events.len());
        let events = stream::iter((0..count).map(move |at| script.0.events[at].clone()));
        wait.chain(events).chain(stream::pending()).boxed()
    }
}

impl Service<Request<Body>> for Script {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(self.answer(&request)))
    }
}

fn respond(code: u16, chunks: Chunks) -> Response<Answer> {
    let body = StreamBody::new(chunks.map(|chunk| Ok(Frame::data(chunk))).boxed());
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(body).expect("a response")
}

fn chunks(bytes: Bytes) -> impl Iterator<Item = Bytes> {
    let starts = (0..bytes.len()).step_by(CHUNK_BYTES);
    starts.map(move |at| bytes.slice(at..bytes.len().min(at + CHUNK_BYTES)))
}

fn made(range: Range<usize>, make: impl Fn(usize, bool, &mut String) + Send + 'static) -> Chunks {
    let first = range.start;
    let state = (BytesMut::new(), String::new(), range, make);
    let next = move |(mut buffer, mut text, mut range, make): (
        BytesMut,
        String,
        Range<usize>,
        _,
    )| async move {
        while buffer.len() < CHUNK_BYTES {
            let Some(pod) = range.next() else { break };
            text.clear();
            let make: &dyn Fn(usize, bool, &mut String) = &make;
            make(pod, pod == first, &mut text);
            buffer.extend_from_slice(text.as_bytes());
        }
        let chunk = buffer.split_to(buffer.len().min(CHUNK_BYTES)).freeze();
        (!chunk.is_empty()).then_some((chunk, (buffer, text, range, make)))
    };
    stream::unfold(state, next).boxed()
}

/// A list made beforehand, in the way in which it is asked for.
pub(crate) fn ready_list(pods: usize, part: Part, how: How) -> List {
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(pods));
    for pod in 0..pods {
        if how == How::Streamed {
            text.push_str(&pods::event("ADDED", pod, pod + 1, part));
        } else {
            text.push(',');
            pods::item(&mut text, pod, pod + 1, part);
        }
        ends.push(text.len());
    }
    List::Ready { bytes: text.into(), ends }
}

/// The changes of listed pods: nine of ten events are status updates of a kubelet, the others
/// are a pod that comes and one that goes. The last one is a change.
pub(crate) fn events(pods: usize, count: usize) -> Vec<Bytes> {
    let mut random = fastrand::Rng::with_seed(0);
    let (mut oldest, mut newest) = (0, pods);
    let event = |n: usize| {
        let version = pods + 1 + n;
        let (kind, pod) = match n % 20 {
            18 => ("ADDED", newest),
            19 if n + 1 < count => ("DELETED", oldest),
            _ => ("MODIFIED", random.usize(oldest..newest)),
        };
        newest += usize::from(kind == "ADDED");
        oldest += usize::from(kind == "DELETED");
        Bytes::from(pods::event(kind, pod, version, Part::Whole))
    };
    (0..count).map(event).collect()
}

/// The version of the last of these events.
pub(crate) fn last_version(pods: usize, count: usize) -> String {
    (pods + count).to_string()
}

/// The history is gone: list again.
pub(crate) fn expired() -> Vec<Bytes> {
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}"#;
    vec![format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into()]
}
