//! Servers in memory, so that time can be paused, and connections to them that can be cut.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_client::Config;
use kube_client::client::Body;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::Transport;
use super::super::connect::Connectors;
use super::super::held::Held;
use super::super::pool::{Io, Pool};
use super::LONG;
use crate::BoxError;

/// Bytes that fit between two ends.
const BUFFER: usize = 64 * 1024;

/// A server, the connections to it, and a client.
pub(super) struct Network {
    pub(super) transport: Transport,
    pub(super) server: Arc<Server>,
}

/// The server as tests observe and control it.
pub(super) struct Server {
    streams_max: u32,
    dials: AtomicUsize,
    /// How many dials are to fail.
    pub(super) refuse: AtomicUsize,
    /// How many connections are to be silent from the beginning.
    pub(super) mute: AtomicUsize,
    /// Dials wait while it is closed.
    pub(super) gate: watch::Sender<bool>,
    links: Mutex<Vec<Link>>,
    open: watch::Sender<usize>,
    /// Goes to all watches.
    events: broadcast::Sender<&'static str>,
}

/// One connection.
#[derive(Clone, Default)]
pub(super) struct Link {
    /// From now on nothing comes through, and nothing is closed.
    pub(super) silence: CancellationToken,
    /// The server wants no more requests on it.
    pub(super) goaway: CancellationToken,
}

impl Network {
    pub(super) fn new(streams_max: u32) -> Self {
        let server = Arc::new(Server {
            streams_max,
            dials: AtomicUsize::new(0),
            refuse: AtomicUsize::new(0),
            mute: AtomicUsize::new(0),
            gate: watch::Sender::new(true),
            links: Mutex::default(),
            open: watch::Sender::new(0),
            events: broadcast::Sender::new(16),
        });
        let dialed = server.clone();
        let dial = move || dialed.clone().dial().boxed();
        // HTTP/1 leads nowhere.
        let nowhere = Config::new("http://127.0.0.1:1".parse().unwrap());
        let http1 = Connectors::new(&nowhere).unwrap().http1;
        let http1 = legacy::Client::builder(TokioExecutor::new()).build(http1);
        let transport = Transport { http1, http2: Some(Pool::new(Box::new(dial))) };
        Self { transport, server }
    }

    pub(super) async fn get(&self, path: &str) -> Result<Response<Held>, BoxError> {
        let request = Request::get(format!("https://server/{path}")).body(Body::empty()).unwrap();
        self.transport.clone().send(request).await
    }

    /// A watch that has begun.
    pub(super) async fn watch(&self) -> Watch {
        let mut watch = Watch(self.get("watch").await.unwrap().into_body());
        assert_eq!(watch.next().await.unwrap(), "begun");
        watch
    }

    pub(super) async fn is_answered(&self) -> bool {
        let Ok(response) = self.get("version").await else { return false };
        response.into_body().collect().await.unwrap().to_bytes() == "1.37"
    }
}

pub(super) struct Watch(Held);

impl Watch {
    pub(super) async fn next(&mut self) -> Result<Bytes, hyper::Error> {
        let frame = self.0.frame().await.expect("watches do not end");
        Ok(frame?.into_data().unwrap())
    }
}

impl Server {
    pub(super) fn dials(&self) -> usize {
        self.dials.load(Ordering::SeqCst)
    }

    /// How many connections there have been.
    pub(super) fn links(&self) -> usize {
        self.links.lock().len()
    }

    pub(super) fn link(&self, number: usize) -> Link {
        self.links.lock()[number].clone()
    }

    pub(super) fn tell_watches(&self, event: &'static str) {
        self.events.send(event).unwrap();
    }

    /// Until so many connections are open.
    pub(super) async fn until_open(&self, connections: usize) {
        let mut open = self.open.subscribe();
        let reached = timeout(LONG, open.wait_for(|open| *open == connections)).await;
        reached.expect("connections come and go as expected").unwrap();
    }

    async fn dial(self: Arc<Self>) -> Result<Option<Box<dyn Io>>, BoxError> {
        self.dials.fetch_add(1, Ordering::SeqCst);
        self.gate.subscribe().wait_for(|open| *open).await.unwrap();
        if one_of(&self.refuse) {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        }
        let (near, near_end) = duplex(BUFFER);
        let (far_end, far) = duplex(BUFFER);
        let link = Link::default();
        if one_of(&self.mute) {
            link.silence.cancel();
        }
        self.links.lock().push(link.clone());
        relay(near_end, far_end, &link.silence);
        tokio::spawn(self.serve(far, link));
        Ok(Some(Box::new(TokioIo::new(near))))
    }

    async fn serve(self: Arc<Self>, io: DuplexStream, link: Link) {
        self.open.send_modify(|open| *open += 1);
        let server = self.clone();
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.max_concurrent_streams(self.streams_max);
        let answers = service_fn(move |request| {
            let answer = server.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(io), answers));
        tokio::select! {
            biased;
            () = link.goaway.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
            _ = &mut connection => {}
        }
        self.open.send_modify(|open| *open -= 1);
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<StreamBody<Frames>> {
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        let chunks = match request.uri().path() {
            "/watch" => {
                let events = self.events.subscribe();
                let more = stream::unfold(events, async |mut events| match events.recv().await {
                    Ok(event) => Some((event, events)),
                    Err(_) => pending().await,
                });
                stream::iter(["begun"]).chain(more).map(text).boxed()
            }
            "/endless" => {
                let chunk = Bytes::from(vec![b'x'; BUFFER]);
                stream::repeat(chunk).boxed()
            }
            _ => stream::iter(["1.37"]).map(text).boxed(),
        };
        let frames: Frames = chunks.map(|chunk| Ok(Frame::data(chunk))).boxed();
        Response::new(StreamBody::new(frames))
    }
}

/// Whether there was one left.
fn one_of(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

/// Passes on what comes until silence falls; then it keeps both ends open.
fn relay(one: DuplexStream, other: DuplexStream, silence: &CancellationToken) {
    let (one_read, one_write) = split(one);
    let (other_read, other_write) = split(other);
    for (mut from, mut to) in [(one_read, other_write), (other_read, one_write)] {
        let silence = silence.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; BUFFER];
            loop {
                let read = tokio::select! {
                    biased;
                    () = silence.cancelled() => pending().await,
                    read = from.read(&mut buffer) => read.unwrap_or(0),
                };
                if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
                    let _ = to.shutdown().await;
                    return;
                }
            }
        });
    }
}
