//! How many allocations an event takes from the bytes of a watch to its handler, counted.

#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../benches/pods.rs"]
mod pods;

use std::convert::Infallible;
use std::future::{IntoFuture as _, Ready, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::Body;
use kube_informer::SharedInformerFactory;
use kube_schema::WatchFrame;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};
use tower_service::Service;

use pods::Part;

/// Enough for a dictionary of their own.
const PODS: usize = 300;
/// Before counting begins: until buffers have the size that they keep.
const WARM_EVENTS: usize = 100;
const EVENTS: usize = 640;

/// The body and the object around it are kept.
const KEPT: f64 = 2.0;
/// Each batch of changes takes memory for the changes and for their effects.
const EACH_BATCH: f64 = 2.0;
/// Tables and buffers grow now and then. An allocation for every event would add 1.
const NOW_AND_THEN: f64 = 0.05;

#[test]
fn an_event_takes_no_allocation_beyond_what_is_kept() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        for together in [1, 64] {
            let own = allocations(encoding, together, read_alone);
            let all = allocations(encoding, together, inform);
            let most = KEPT + EACH_BATCH / together as f64 + NOW_AND_THEN;
            assert!(
                all - own <= most,
                "{encoding:?}, {together} together: {all}, of which {own} are the test's, and not {most}"
            );
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// An event, which is given as a line of JSON.
    fn event(self, line: String) -> Bytes {
        if self == Self::Json {
            return line.into();
        }
        let event: Value = serde_json::from_str(&line).unwrap();
        let object = kube_schema::to_vec(&event["object"]).unwrap();
        let event_type = event["type"].as_str().unwrap();
        WatchFrame { event_type, object: &object }.to_vec().into()
    }
}

/// Returns how many allocations each event takes on average if so many of them come together, with a consumer that
/// `begin` starts.
fn allocations<C>(
    encoding: Encoding,
    together: usize,
    begin: impl FnOnce(&Runtime, Script, Arc<Seen>) -> C,
) -> f64 {
    let event = |nth| pods::event("MODIFIED", nth * 7 % PODS, PODS + 1 + nth, Part::Whole);
    let events: Vec<Bytes> =
        (0..WARM_EVENTS + EVENTS).map(|nth| encoding.event(event(nth))).collect();
    let mut events = events.into_iter();
    let (sender, receiver) = mpsc::unbounded_channel();
    let script = Script { encoding, events: Arc::new(Mutex::new(Some(receiver))) };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let seen = Arc::new(Seen::default());
    let consumer = begin(&runtime, script, seen.clone());
    let mut sent = 0;
    let mut feed = |until: usize| {
        while sent < until {
            let now = together.min(until - sent);
            events.by_ref().take(now).for_each(|event| sender.send(event).unwrap());
            sent += now;
            runtime.block_on(seen.until(sent));
        }
    };
    feed(WARM_EVENTS);
    let info = allocation_counter::measure(|| feed(WARM_EVENTS + EVENTS));
    drop(consumer);
    info.count_total as f64 / EVENTS as f64
}

/// An informer with a handler.
fn inform(runtime: &Runtime, script: Script, seen: Arc<Seen>) -> SharedInformerFactory {
    let protobuf = script.encoding == Encoding::Protobuf;
    let factory = SharedInformerFactory::new(Client::new(script, "default"));
    let pods = factory.builder_for::<Pod>().protobuf(protobuf).build();
    let handler = pods.handler().on_update(move |_, _| seen.see()).register();
    factory.start();
    runtime.block_on(handler.wait_for_sync().into_future()).unwrap();
    factory
}

/// The control: nothing but the stream that the informer would read, so that every allocation is the test's.
fn read_alone(runtime: &Runtime, mut script: Script, seen: Arc<Seen>) {
    let answer = script.call(Request::new(Body::empty())).into_inner().unwrap();
    // After the pods and the bookmark behind them.
    let mut events = answer.into_body().skip(PODS + 1);
    runtime.spawn(async move {
        while events.next().await.is_some() {
            seen.see();
        }
    });
}

/// Counts updates.
#[derive(Default)]
struct Seen {
    updates: AtomicUsize,
    changed: Notify,
}

impl Seen {
    fn see(&self) {
        self.updates.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    async fn until(&self, updates: usize) {
        while self.updates.load(Ordering::Relaxed) < updates {
            self.changed.notified().await;
        }
    }
}

/// A server with one watch, which begins with all pods. Each event is a chunk of its own, as from a server that
/// flushes each.
#[derive(Clone)]
struct Script {
    encoding: Encoding,
    events: Arc<Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>>,
}

type Answer = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

impl Service<Request<Body>> for Script {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let encoding = self.encoding;
        let added = (0..PODS).map(|pod| pods::event("ADDED", pod, pod + 1, Part::Whole));
        let end = format!(
            r#"{{"type":"BOOKMARK","object":{{{},"metadata":{{"resourceVersion":"{PODS}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}{}"#,
            Part::Whole.types(),
            "\n"
        );
        let initial: Vec<Bytes> = added.chain([end]).map(|line| encoding.event(line)).collect();
        let events = self.events.lock().unwrap().take().expect("one watch");
        let events =
            stream::unfold(
                events,
                |mut events| async move { Some((events.recv().await?, events)) },
            );
        let chunks = stream::iter(initial).chain(events).map(|chunk| Ok(Frame::data(chunk)));
        let response = Response::builder().header("content-type", encoding.media_type());
        ready(Ok(response.body(StreamBody::new(chunks.boxed())).unwrap()))
    }
}
