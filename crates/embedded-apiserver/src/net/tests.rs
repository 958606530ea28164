//! Connections that do not end by the means of HTTP.

use std::io::ErrorKind;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Reins, wire};
use crate::connection::Connection;
use crate::server::ApiServer;

/// Both sides of a connection.
struct Line {
    server: ApiServer,
    reins: Arc<Reins>,
    connection: Connection,
    peer: TcpStream,
}

impl Line {
    async fn new() -> Self {
        let server = ApiServer::builder().anonymous(true).build();
        let reins = Arc::new(Reins {
            shared: Arc::clone(&server.shared),
            tls: None,
            host_rule: super::host::HostRule::Any,
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let connection = Connection::default();
        reins.tasks.spawn(wire::serve(Arc::clone(&reins), stream, connection.clone()));
        reins.tasks.close();
        Self { server, reins, connection, peer }
    }

    async fn send(&mut self, text: &str) {
        self.peer.write_all(text.as_bytes()).await.unwrap();
    }

    /// Starts a watch and reads until it has begun.
    async fn watch(&mut self) {
        self.send("GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
        let mut seen = String::new();
        while !seen.contains("kube-system") {
            let mut bytes = [0; 4096];
            let read = self.peer.read(&mut bytes).await.unwrap();
            assert_ne!(read, 0);
            seen.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
    }

    async fn assert_reset(mut self) {
        let mut rest = Vec::new();
        let error = self.peer.read_to_end(&mut rest).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        self.reins.tasks.wait().await;
        assert_eq!(self.server.watches(), 0);
    }
}

#[tokio::test]
async fn a_connection_that_is_broken_is_reset() {
    let mut line = Line::new().await;
    line.watch().await;
    line.connection.reset();
    line.assert_reset().await;
}

#[tokio::test]
async fn a_restart_resets() {
    let mut line = Line::new().await;
    line.watch().await;
    line.server.restart();
    line.assert_reset().await;
}

#[tokio::test]
async fn a_request_that_fails_breaks_its_connection() {
    let mut line = Line::new().await;
    line.server.refuse_connections();
    line.reins.tasks.wait().await;
    line.assert_reset().await;

    line = Line::new().await;
    line.server.shared.accepting.send_replace(false);
    line.send("GET /version HTTP/1.1\r\nHost: x\r\n\r\n").await;
    line.assert_reset().await;
}

#[tokio::test]
async fn a_frozen_connection_is_silent_until_the_server_restarts() {
    let mut line = Line::new().await;
    line.watch().await;
    line.connection.freeze();
    // The task polls the freeze first, so neither of these is answered.
    line.send("GET /version HTTP/1.1\r\nHost: x\r\n\r\n").await;
    line.server
        .create(serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unheard-of"},
        }))
        .unwrap();
    let mut silence = [0; 1];
    let mut read = Box::pin(line.peer.read(&mut silence));
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut read).is_pending());
        tokio::task::yield_now().await;
    }
    drop(read);
    assert_eq!(line.server.watches(), 1);
    line.server.restart();
    line.assert_reset().await;
}

#[tokio::test]
async fn a_frozen_connection_ends_with_its_listener() {
    let mut line = Line::new().await;
    line.watch().await;
    line.connection.freeze();
    tokio::task::yield_now().await;
    line.reins.closing.cancel();
    line.assert_reset().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_forever_to_ask() {
    // Paused time advances when all tasks are idle, here to the end of the server's timeout.
    for beginning in ["", "P", "GET /version HTTP/1.1\r\nHos"] {
        let mut line = Line::new().await;
        line.send(beginning).await;
        let mut rest = Vec::new();
        let ended = line.peer.read_to_end(&mut rest).await;
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{beginning:?}");
        assert!(ended.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true));
        line.reins.tasks.wait().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_of_http2_is_closed() {
    let mut line = Line::new().await;
    // The connection preface and empty settings, then silence until the timeout.
    line.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    // A request that needs no token and has no body: HEADERS with `GET /version`, from the static
    // table.
    let head = b"\x82\x86\x41\x09localhost\x44\x08/version";
    let mut frame = vec![0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1];
    frame.extend_from_slice(head);
    line.peer.write_all(&frame).await.unwrap();
    let mut rest = Vec::new();
    let ended = line.peer.read_to_end(&mut rest).await;
    assert!(ended.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true));
    assert!(!rest.is_empty());
    line.reins.tasks.wait().await;
}
