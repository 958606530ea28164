//! HTTP/2 connections to one server: as many as its limits require, and no more.

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};
use http::{Request, Response};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::held::Held;
use crate::BoxError;

/// Time without traffic after which a connection is pinged (client-go's `ReadIdleTimeout`).
pub(super) const QUIET_MAX: Duration = Duration::from_secs(30);

/// Time limit for the response to a ping (client-go's `PingTimeout`).
pub(super) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(15);

/// Concurrent requests on one connection. A connection is decrypted by one task, and all its requests fail with
/// it, so this is less than servers allow: 250 for those in Go, 1,000 for kube-apiserver.
const STREAMS_MAX: usize = 100;

/// Bytes of one response that may be in flight or unread: Go's value, and about what TCP allows for a
/// connection.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;

/// The same for all responses of a connection. With room for each of them, unread responses do not delay
/// others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;

/// Bytes of one frame. Each frame costs the reader a wakeup: a large list takes a third less CPU time than with
/// HTTP/2's default of 16 KiB.
const FRAME_BYTES_MAX: u32 = 512 * 1024;

/// Header bytes of one response.
const HEADER_BYTES_MAX: u32 = 256 * 1024;

/// A connection, as hyper needs it.
pub(super) trait Io: Read + Write + Send + Unpin {}
impl<S: Read + Write + Send + Unpin> Io for S {}

/// Opens a connection; `None` if the server negotiates HTTP/1.
pub(super) type Dial = Box<
    dyn Fn() -> BoxFuture<'static, Result<Option<Box<dyn Io>>, BoxError>> + Send + Sync + 'static,
>;

pub(super) struct Pool {
    dial: Dial,
    state: Mutex<State>,
    /// Notified when a connection may have room again, or has ended.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Whether the server has negotiated HTTP/1.
    http1: bool,
    connections: Vec<Arc<Connection>>,
    /// The connection that is being opened, as long as a request waits for it.
    dialing: Option<WeakShared<Dialing>>,
}

type Dialing = BoxFuture<'static, Result<(), Unconnected>>;

struct Connection {
    sender: SendRequest<Body>,
    /// Changed only while the pool's state is locked.
    used: AtomicUsize,
    /// Number of requests that the server allows; 0 until it has sent its settings.
    allowed: AtomicUsize,
}

impl Connection {
    /// Returns the number of further requests. Until the server has sent its settings, that is one.
    fn room(&self) -> usize {
        let allowed = self.allowed.load(Ordering::Relaxed).clamp(1, STREAMS_MAX);
        allowed.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn is_new(&self) -> bool {
        self.allowed.load(Ordering::Relaxed) == 0
    }
}

/// How to get a place on a connection.
enum Step {
    Take(Slot),
    Wait,
    Dial(Shared<Dialing>),
    Http1,
}

impl Pool {
    pub(super) fn new(dial: Dial) -> Arc<Self> {
        Arc::new(Self { dial, state: Mutex::default(), changed: Notify::new() })
    }

    /// Returns a place on a connection; `None` if the server speaks HTTP/1.
    pub(super) async fn slot(self: &Arc<Self>) -> Result<Option<Slot>, BoxError> {
        loop {
            // Registered before the check, so that no change is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.step() {
                Step::Take(slot) => return Ok(Some(slot)),
                Step::Http1 => return Ok(None),
                Step::Wait => changed.await,
                Step::Dial(dialing) => dialing.await?,
            }
        }
    }

    fn step(self: &Arc<Self>) -> Step {
        let mut state = self.state.lock();
        if state.http1 {
            return Step::Http1;
        }
        state.connections.retain(|connection| !connection.sender.is_closed());
        // The first with room, so that the last ones become idle and can be closed.
        let free = state.connections.iter().find(|connection| connection.room() > 0);
        if let Some(connection) = free {
            connection.used.fetch_add(1, Ordering::Relaxed);
            return Step::Take(Slot { pool: self.clone(), connection: connection.clone() });
        }
        if state.connections.iter().any(|connection| connection.is_new()) {
            return Step::Wait;
        }
        let dialing = state.dialing.as_ref().and_then(WeakShared::upgrade);
        Step::Dial(dialing.unwrap_or_else(|| {
            let dialing = self.clone().add().boxed().shared();
            state.dialing = dialing.downgrade();
            dialing
        }))
    }

    /// Opens another connection.
    async fn add(self: Arc<Self>) -> Result<(), Unconnected> {
        let connected = self.connect().await;
        let mut state = self.state.lock();
        state.dialing = None;
        match connected.map_err(|error| Unconnected(error.into()))? {
            Some(connection) => state.connections.push(connection),
            None => state.http1 = true,
        }
        Ok(())
    }

    async fn connect(self: &Arc<Self>) -> Result<Option<Arc<Connection>>, BoxError> {
        let Some(io) = (self.dial)().await? else { return Ok(None) };
        let (sender, driver) = builder().handshake::<_, Body>(io).await?;
        let (used, allowed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let connection = Arc::new(Connection { sender, used, allowed });
        tokio::spawn(drive(driver, Arc::downgrade(&connection), Arc::downgrade(self)));
        Ok(Some(connection))
    }
}

fn builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        // The first request waits for the server's settings, which say how many more are allowed.
        .initial_max_send_streams(0)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        // As many as can be cancelled at once; late frames of others would be an error.
        .max_concurrent_reset_streams(STREAMS_MAX)
        .keep_alive_interval(QUIET_MAX)
        .keep_alive_timeout(ANSWER_WAIT_MAX)
        .keep_alive_while_idle(true);
    builder
}

/// Runs a connection, and reports its limit and its end.
async fn drive(
    mut driver: http2::Connection<Box<dyn Io>, Body, TokioExecutor>,
    connection: Weak<Connection>,
    pool: Weak<Pool>,
) {
    let changed = || {
        if let Some(pool) = pool.upgrade() {
            pool.changed.notify_waiters();
        }
    };
    let mut known = 0;
    let ended = poll_fn(|cx| {
        let ended = Pin::new(&mut driver).poll(cx);
        let allowed = driver.current_max_send_streams();
        if allowed != known {
            known = allowed;
            if let Some(connection) = connection.upgrade() {
                connection.allowed.store(allowed, Ordering::Relaxed);
            }
            changed();
        }
        ended
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "an HTTP/2 connection failed");
    }
    // Drops its end of the request queue, which shows the others that it has ended.
    drop(driver);
    changed();
}

/// A place on a connection, for one request and its response.
pub(super) struct Slot {
    pool: Arc<Pool>,
    connection: Arc<Connection>,
}

impl Slot {
    pub(super) async fn send(self, request: Request<Body>) -> Result<Response<Held>, Failure> {
        let was_new = self.connection.is_new();
        match self.connection.sender.clone().try_send_request(request).await {
            Ok(response) => Ok(response.map(|body| Held::new(body, self))),
            Err(error) => Err(Failure { error, was_new }),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        let before = self.connection.used.fetch_sub(1, Ordering::Relaxed);
        let is_this = |other: &Arc<Connection>| Arc::ptr_eq(other, &self.connection);
        let others = state.connections.iter().filter(|other| !is_this(other));
        if before == 1 && others.map(|other| other.room()).any(|room| room > 0) {
            state.connections.retain(|other| !is_this(other));
        }
        drop(state);
        self.pool.changed.notify_waiters();
    }
}

/// A request without a response.
pub(super) struct Failure {
    error: TrySendError<Request<Body>>,
    was_new: bool,
}

impl Failure {
    /// Returns the request if it was not sent because the connection had ended, so that it can be
    /// retried on another. If a connection ends before its first request, there is no retry.
    pub(super) fn unsent(mut self) -> Result<Request<Body>, BoxError> {
        match self.error.take_message() {
            Some(request) if !self.was_new => Ok(request),
            _ => Err(self.error.into_error().into()),
        }
    }
}

/// Why a connection could not be opened, for all requests that waited for it. Its message is that
/// of hyper-util's client, so that both can be handled alike.
#[derive(Clone)]
struct Unconnected(Arc<dyn StdError + Send + Sync>);

impl fmt::Display for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("client error (Connect)")
    }
}

impl fmt::Debug for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unconnected({:?})", self.0)
    }
}

impl StdError for Unconnected {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}
