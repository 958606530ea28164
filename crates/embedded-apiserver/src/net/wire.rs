//! A connection, from the handshake until it ends gracefully or breaks.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Reins;
use super::activity::Activity;
use super::orderly::Orderly;
use super::socket::Socket;
use super::streams::Streams;
use super::websocket::Upgrading;
use crate::codec::Codec;
use crate::connection::Connection;
use crate::limits::{
    HEADER_BYTES_MAX, HEADER_TIMEOUT, SHUTDOWN_GRACE, STREAM_BYTES_MAX, STREAMS_MAX,
};
use crate::response::failure;
use crate::service::Origin;
use crate::upgrade::Messages;

/// A connection, as its requests see it.
#[derive(Clone)]
struct Wire {
    reins: Arc<Reins>,
    connection: Connection,
    activity: Activity,
    /// The response that ends HTTP on this connection.
    upgrading: Arc<Mutex<Option<Upgrading>>>,
}

/// Serves a connection until it ends or connections are broken.
pub(super) fn serve(
    reins: Arc<Reins>,
    stream: TcpStream,
    connection: Connection,
) -> impl Future<Output = ()> + Send {
    let restarted = reins.shared.connections.current();
    let socket = Socket::new(stream, connection.clone());
    let wire = Wire { reins, connection, activity: Activity::default(), upgrading: Arc::default() };
    run(wire, socket, restarted)
}

async fn run(wire: Wire, socket: Socket, restarted: CancellationToken) {
    let mut spoken = pin!(wire.speak(socket));
    let broken = async {
        tokio::select! {
            () = wire.connection.until_reset() => {}
            () = restarted.cancelled() => {}
            () = wire.reins.stop.cancelled() => {}
        }
    };
    let mut broken = pin!(broken);
    tokio::select! {
        biased;
        () = &mut broken => {}
        () = wire.connection.until_frozen() => {
            // Nothing is read or written any more. Only the socket is kept open.
            tokio::select! {
                () = &mut broken => {}
                () = wire.reins.closing.cancelled() => {}
            }
        }
        () = wire.activity.until_late(HEADER_TIMEOUT) => {}
        () = &mut spoken => return,
    }
    // The protocol's state is dropped next, and the socket with it.
    wire.connection.reset();
}

impl Wire {
    async fn speak(&self, socket: Socket) {
        let Some(tls) = &self.reins.tls else {
            return self.speak_http(socket).await;
        };
        tokio::select! {
            () = self.reins.closing.cancelled() => {}
            accepted = tls.accept(socket) => match accepted {
                Ok(stream) => self.speak_http(stream).await,
                Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
            }
        }
    }

    async fn speak_http(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let gone = CancellationToken::new();
        let _gone = gone.clone().drop_guard();
        let connection = self.connection.clone();
        let streams = Streams { tasks: self.reins.tasks.clone(), connection, gone };
        let http = http_builder(streams);
        let wire = self.clone();
        let answer = service_fn(move |request| wire.clone().answer(request));
        let mut served = pin!(http.serve_connection_with_upgrades(TokioIo::new(stream), answer));
        let ended = tokio::select! {
            biased;
            () = self.reins.closing.cancelled() => {
                served.as_mut().graceful_shutdown();
                served.await
            }
            // HTTP/1 has its own timeout. An HTTP/2 connection would stay open forever.
            () = self.activity.until_idle(HEADER_TIMEOUT) => {
                served.as_mut().graceful_shutdown();
                // An unresponsive client does not complete the graceful shutdown.
                timeout(SHUTDOWN_GRACE, served).await.unwrap_or(Ok(()))
            }
            ended = &mut served => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection failed");
        }
        let upgrading = self.upgrading.lock().take();
        if let Some(upgrading) = upgrading
            && upgrading.run().await.is_err()
        {
            self.connection.reset();
        }
    }

    async fn answer(self, mut request: Request<Incoming>) -> io::Result<Response<Orderly>> {
        let open = self.activity.begin();
        if let Err(status) = self.reins.host_rule.check(&request) {
            let refused = failure(&status, Codec::Json);
            return Ok(refused.map(|body| Orderly::new(body, self.reins.closing.clone(), open)));
        }
        request.extensions_mut().insert(self.connection.clone());
        let upgrade = hyper::upgrade::on(&mut request);
        match self.reins.shared.serve(request, &Origin::Socket).await {
            Ok(response) => {
                let response =
                    response.map(|body| Orderly::new(body, self.reins.closing.clone(), open));
                Ok(self.upgraded(response, upgrade))
            }
            Err(error) => {
                // HTTP/2 would reset only this stream, but the fault concerns the whole connection.
                self.connection.reset();
                Err(error)
            }
        }
    }
}

impl Wire {
    /// Takes the body of a response that upgrades the connection, to be sent after its head.
    fn upgraded(&self, response: Response<Orderly>, connection: OnUpgrade) -> Response<Orderly> {
        let (mut head, body) = response.into_parts();
        let Some(messages) = head.extensions.remove::<Messages>() else {
            return Response::from_parts(head, body);
        };
        // It describes the messages.
        head.headers.remove(CONTENT_TYPE);
        let empty = Orderly::empty(self.reins.closing.clone(), self.activity.begin());
        *self.upgrading.lock() = Some(Upgrading { connection, messages, body });
        Response::from_parts(head, empty)
    }
}

fn http_builder(streams: Streams) -> auto::Builder<Streams> {
    let mut http = auto::Builder::new(streams);
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_send_buf_size(STREAM_BYTES_MAX)
        // Pings to idle clients would only add noise.
        .keep_alive_interval(None);
    http
}
