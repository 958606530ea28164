//! The network: a load balancer that can cut idle connections.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService, Body};
use http::{Request, Response};
use http_body::Frame;
use tokio::time::Instant;

/// The time after which an idle watch is cut, plus up to [`IDLE_SPREAD`] seconds.
const IDLE_MIN: Duration = Duration::from_secs(35);
const IDLE_SPREAD: u32 = 26;

/// All connections of a run.
#[derive(Clone)]
pub(crate) struct Network {
    service: ApiService,
    watches: Arc<Mutex<Watches>>,
}

#[derive(Default)]
struct Watches {
    opened: u32,
    open: Vec<Weak<Mutex<Connection>>>,
    /// The number of lists and watches that were answered in protobuf.
    protobuf_answers: usize,
}

struct Connection {
    /// When data last arrived.
    heard: Instant,
    /// How long the connection may be idle.
    idle_max: Duration,
    is_cut: bool,
    waiting: Option<Waker>,
}

/// The body of a response, until its connection is cut.
pub(crate) struct Cuttable {
    body: Body,
    connection: Arc<Mutex<Connection>>,
}

impl Network {
    pub(crate) fn to(server: &ApiServer) -> Self {
        Self { service: server.service_as("kubernetes-admin"), watches: Arc::default() }
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Returns the number of lists and watches that were answered in protobuf.
    pub(crate) fn protobuf_answers(&self) -> usize {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).protobuf_answers
    }

    /// Cuts watches that have been idle for too long, and returns their number.
    pub(crate) fn cut_idle(&self) -> usize {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.open.retain(|watch| watch.strong_count() > 0);
        let mut cut = 0;
        for watch in watches.open.iter().filter_map(Weak::upgrade) {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            if !watch.is_cut && watch.heard.elapsed() >= watch.idle_max {
                watch.is_cut = true;
                cut += 1;
                watch.waiting.take().into_iter().for_each(Waker::wake);
            }
        }
        cut
    }
}

impl tower_service::Service<Request<kube::client::Body>> for Network {
    type Response = Response<Cuttable>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Cuttable>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let watches = self.watches.clone();
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let mut watches = watches.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = Arc::new(Mutex::new(Connection {
                heard: Instant::now(),
                idle_max: IDLE_MIN + Duration::from_secs((watches.opened * 7 % IDLE_SPREAD).into()),
                is_cut: false,
                waiting: None,
            }));
            watches.protobuf_answers += usize::from(is_protobuf(&answer));
            if is_watch {
                watches.opened += 1;
                watches.open.push(Arc::downgrade(&connection));
            }
            Ok(answer.map(|body| Cuttable { body, connection }))
        })
    }
}

fn is_protobuf<B>(answer: &Response<B>) -> bool {
    let content_type = answer.headers().get(http::header::CONTENT_TYPE);
    let is = |value: &http::HeaderValue| {
        value.as_bytes().starts_with(b"application/vnd.kubernetes.protobuf")
    };
    answer.status().is_success() && content_type.is_some_and(is)
}

impl http_body::Body for Cuttable {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let connection = self.connection.clone();
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_cut {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            connection.heard = Instant::now();
        } else {
            connection.waiting = Some(context.waker().clone());
        }
        frame
    }
}
