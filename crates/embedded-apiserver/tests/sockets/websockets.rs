//! Watches over WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use embedded_apiserver::{ApiServer, EventType, Fault, Listening, Verb, limits};
use futures::{SinkExt, StreamExt};
use http::{Request, Response, Version};
use http_body_util::Empty;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Duration;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tower_service::Service;

use crate::both;
use crate::client::encrypted;
use crate::ends::make;

const WATCH: &str = "/api/v1/configmaps?watch=1&resourceVersion=0";

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type WebSocket = WebSocketStream<Box<dyn Stream>>;

/// Returns the request of a handshake, with some headers added, or removed if they are empty.
fn handshake(server: &ApiServer, path: &str, headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = Request::get(format!("ws://localhost{path}")).body(()).unwrap();
    let (key, token) = (generate_key(), format!("Bearer {}", server.token()));
    let usual = [
        ("host", "localhost"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", &key),
        ("origin", "http://localhost"),
        ("authorization", &token),
    ];
    for (name, value) in usual.iter().chain(headers) {
        match *value {
            "" => drop(request.headers_mut().remove(*name)),
            value => drop(request.headers_mut().insert(*name, value.parse().unwrap())),
        }
    }
    request
}

async fn stream(listening: &Listening) -> Box<dyn Stream> {
    let tcp = TcpStream::connect(listening.addr()).await.unwrap();
    match listening.ca_pem() {
        Some(ca) => Box::new(encrypted(tcp, ca, Version::HTTP_11).await.unwrap()),
        None => Box::new(tcp),
    }
}

async fn open(
    server: &ApiServer,
    listening: &Listening,
    headers: &[(&'static str, &str)],
) -> Result<(WebSocket, Response<Option<Vec<u8>>>), Error> {
    let request = handshake(server, WATCH, headers);
    tokio_tungstenite::client_async(request, stream(listening).await).await
}

async fn watch(server: &ApiServer, listening: &Listening) -> WebSocket {
    open(server, listening, &[]).await.unwrap().0
}

/// Returns the next message as JSON.
async fn event(socket: &mut WebSocket) -> Value {
    let message = socket.next().await.unwrap().unwrap();
    let Message::Text(text) = message else { panic!("{message:?} is no text") };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns how the server closed the socket, if it did so gracefully.
async fn close_code(socket: &mut WebSocket) -> Option<CloseCode> {
    let message = socket.next().await.unwrap();
    match message.unwrap() {
        Message::Close(Some(CloseFrame { code, .. })) => Some(code),
        _ => None,
    }
}

async fn until_no_watches(server: &ApiServer) {
    while server.watches() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn each_event_is_a_text_message() {
    let server = ApiServer::start();
    for (listening, names) in both(&server).await.iter().zip([["a", "b"], ["c", "d"]]) {
        let mut socket = watch(&server, listening).await;
        server.clear_record();
        for name in names {
            make(&server, name);
        }
        for name in names {
            let event = event(&mut socket).await;
            assert_eq!(
                (&event["type"], &event["object"]["metadata"]["name"]),
                (&"ADDED".into(), &name.into())
            );
        }
        let told = server.deliveries();
        let told: Vec<_> = told.iter().map(|d| (d.event_type, d.key.as_ref().unwrap())).collect();
        assert_eq!(told.len(), 2);
        for ((event_type, key), name) in told.into_iter().zip(names) {
            assert_eq!((event_type, key.name()), (EventType::Added, name));
            server.delete("configmaps", "default", name).unwrap();
        }
        socket.close(None).await.unwrap();
        until_no_watches(&server).await;
    }
}

#[tokio::test]
async fn a_watch_is_recorded_as_switching_protocols() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let _socket = watch(&server, &tls).await;
    let requests = server.requests();
    let last = requests.last().unwrap();
    assert_eq!((last.status, last.verb), (Some(101), Some(Verb::Watch)));
    assert_eq!(server.watches(), 1);
}

#[tokio::test]
async fn protobuf_events_are_binary_messages() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let accept = ("accept", "application/vnd.kubernetes.protobuf");
    let (mut socket, _) = open(&server, &tls, &[accept]).await.unwrap();
    make(&server, "a");
    let message = socket.next().await.unwrap().unwrap();
    let Message::Binary(frame) = message else { panic!("{message:?} is not binary") };
    let frame = kube_schema::WatchFrame::parse(&frame).unwrap();
    assert_eq!(frame.event_type, "ADDED");
    let object: Value = kube_schema::from_slice(frame.object).unwrap();
    assert_eq!(object["metadata"]["name"], "a");
}

#[tokio::test]
async fn a_single_subprotocol_is_accepted() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    for protocol in ["base64.binary.k8s.io", "binary.k8s.io", "other"] {
        let header = ("sec-websocket-protocol", protocol);
        let (mut socket, response) = open(&server, &tls, &[header]).await.unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], protocol);
        // As on a real server, the events are plain JSON all the same.
        make(&server, "a");
        assert_eq!(event(&mut socket).await["type"], "ADDED");
        server.delete("configmaps", "default", "a").unwrap();
    }
}

#[tokio::test]
async fn browsers_send_the_token_as_a_subprotocol() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let offer = |token: &str| {
        let token = URL_SAFE_NO_PAD.encode(token);
        format!("base64url.bearer.authorization.k8s.io.{token}, binary.k8s.io")
    };
    let [right, wrong] = [server.token(), "wrong"].map(offer);
    let opened =
        open(&server, &tls, &[("authorization", ""), ("sec-websocket-protocol", &right)]).await;
    assert_eq!(opened.unwrap().1.headers()["sec-websocket-protocol"], "binary.k8s.io");
    let refused =
        open(&server, &tls, &[("authorization", ""), ("sec-websocket-protocol", &wrong)]).await;
    assert_eq!(code(refused.map(drop)), 401);
}

/// Returns the status of a refused handshake.
fn code(opened: Result<(), Error>) -> u16 {
    match opened {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn invalid_handshakes_and_other_upgrades_are_refused() {
    let server = ApiServer::start();
    let [_, plain] = both(&server).await;
    for (name, value, refused) in [
        ("sec-websocket-key", "", 400),
        ("sec-websocket-version", "8", 400),
        ("sec-websocket-protocol", "a,b", 400),
        ("origin", "", 403),
        ("upgrade", "SPDY/3.1", 400),
        ("accept", "text/html", 406),
    ] {
        let request = handshake(&server, WATCH, &[(name, value)]).map(|()| Empty::<Bytes>::new());
        let io = hyper_util::rt::TokioIo::new(stream(&plain).await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), refused, "{name}: {value}");
        assert_eq!(response.headers()["content-type"], "application/json");
    }
    assert_eq!(server.watches(), 0);
}

#[tokio::test]
async fn requests_in_process_are_not_upgraded() {
    let server = ApiServer::start();
    let request = handshake(&server, WATCH, &[]).map(|()| Empty::<Bytes>::new());
    let response = server.service().call(request).await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(server.requests().last().unwrap().status, Some(400));
    assert_eq!(server.watches(), 0);
}

#[tokio::test]
async fn pings_are_answered_and_other_messages_ignored() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let mut socket = watch(&server, &tls).await;
    socket.send(Message::text("hello")).await.unwrap();
    socket.send(Message::Ping(Bytes::from_static(b"1"))).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"1")));
    make(&server, "a");
    assert_eq!(event(&mut socket).await["type"], "ADDED");
}

#[tokio::test]
async fn clients_may_not_send_much() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let mut socket = watch(&server, &tls).await;
    let large = "x".repeat(limits::WEBSOCKET_RECEIVED_BYTES_MAX + 1);
    socket.send(Message::text(large)).await.unwrap();
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Size));
    until_no_watches(&server).await;
}

#[tokio::test]
async fn a_watch_that_ends_closes_its_socket() {
    let server = ApiServer::start();
    for listening in both(&server).await {
        let mut socket = watch(&server, &listening).await;
        server.drop_watches();
        assert_eq!(close_code(&mut socket).await, Some(CloseCode::Normal));
        assert!(socket.next().await.is_none());
        let mut socket = watch(&server, &listening).await;
        let closed = async {
            let code = close_code(&mut socket).await;
            assert!(socket.next().await.is_none());
            code
        };
        let ((), code) = tokio::join!(listening.shutdown(), closed);
        assert_eq!(code, Some(CloseCode::Normal));
    }
    assert_eq!(server.watches(), 0);
}

#[tokio::test]
async fn a_client_that_is_gone_ends_its_watch() {
    let server = ApiServer::start();
    for listening in both(&server).await {
        drop(watch(&server, &listening).await);
        until_no_watches(&server).await;
    }
}

#[tokio::test]
async fn a_restart_and_a_reset_break_the_socket() {
    let server = ApiServer::start();
    for listening in both(&server).await {
        let mut socket = watch(&server, &listening).await;
        server.restart();
        assert!(socket.next().await.unwrap().is_err());
        let mut socket = watch(&server, &listening).await;
        server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
        assert!(socket.next().await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_half_open_socket_is_silent_until_a_restart() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let mut socket = watch(&server, &tls).await;
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::HalfOpen);
    while server.faults().pending() > 0 {
        tokio::task::yield_now().await;
    }
    make(&server, "a");
    server.restart();
    assert!(socket.next().await.unwrap().is_err());
}

#[tokio::test]
async fn faults_change_messages_as_they_change_lines() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    let slow = Fault::SlowBytes { bytes: 7, every: Duration::ZERO };
    for (fault, intact) in [(Fault::DuplicateEvent, 2), (slow, 1), (Fault::Truncated, 0)] {
        let mut socket = watch(&server, &tls).await;
        let name = server.faults().on(Verb::Watch).after_events(0).inject(fault);
        make(&server, "a");
        for _ in 0..intact {
            assert_eq!(event(&mut socket).await["object"]["metadata"]["name"], "a", "{name:?}");
        }
        if intact == 0 {
            let message = socket.next().await.unwrap().unwrap();
            let text = message.into_text().unwrap();
            assert!(text.starts_with(r#"{"type":"ADDED""#), "{text}");
            assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
            assert_eq!(close_code(&mut socket).await, Some(CloseCode::Normal));
        }
        server.delete("configmaps", "default", "a").unwrap();
        // Otherwise the next fault could strike this watch instead of the next one.
        drop(socket);
        until_no_watches(&server).await;
    }
    let mut socket = watch(&server, &tls).await;
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    assert_eq!(event(&mut socket).await["object"]["code"], 410);
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Normal));
    // A client has to fail the connection.
    let mut socket = watch(&server, &tls).await;
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::MalformedUtf8);
    make(&server, "a");
    assert!(matches!(socket.next().await.unwrap(), Err(Error::Utf8(_))));
}

#[tokio::test]
async fn a_refused_watch_is_an_ordinary_response() {
    let server = ApiServer::start();
    let [tls, _] = both(&server).await;
    server.faults().on(Verb::Watch).inject(Fault::status(503));
    assert_eq!(code(open(&server, &tls, &[]).await.map(drop)), 503);
    assert_eq!(code(open(&server, &tls, &[("authorization", "")]).await.map(drop)), 401);
    assert!(open(&server, &tls, &[]).await.is_ok());
}
