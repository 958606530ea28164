//! The end of connections: by the listener, by the server, and when they are refused.

use std::time::{Duration, Instant};

use embedded_apiserver::{ApiServer, Listening};
use http::{StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::{VERSIONS, both};

/// A guard against hanging, which no test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a watch.
pub(crate) async fn watch(server: &ApiServer, listening: &Listening, version: Version) -> Incoming {
    let mut client = Client::new(server, listening, version).await;
    let response = client.get("/api/v1/configmaps?watch=1&resourceVersion=0").await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body()
}

/// Returns the next data. Skips the empty frames that HTTP/2 may send.
pub(crate) async fn next(body: &mut Incoming) -> Option<hyper::Result<String>> {
    loop {
        let frame = body.frame().await?;
        let text = frame.map(|frame| String::from_utf8(frame.into_data().unwrap().into()).unwrap());
        if text.as_ref().is_ok_and(String::is_empty) {
            continue;
        }
        return Some(text);
    }
}

pub(crate) fn make(server: &ApiServer, name: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    server.create(map).unwrap();
}

async fn until_refused(listening: std::net::SocketAddr) {
    while TcpStream::connect(listening).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_watch_gets_events_and_ends_with_its_listener() {
    for version in VERSIONS {
        let server = ApiServer::start();
        for (listening, name) in both(&server).await.into_iter().zip(["one", "two"]) {
            let mut body = watch(&server, &listening, version).await;
            make(&server, name);
            let mut seen = String::new();
            while !seen.contains(name) {
                // Events may be combined.
                seen.push_str(&next(&mut body).await.unwrap().unwrap());
            }
            assert!(seen.starts_with(r#"{"type":"ADDED""#), "{seen}");
            listening.shutdown().await;
            // An end, not an error.
            assert!(next(&mut body).await.is_none());
        }
        assert_eq!(server.watches(), 0);
    }
}

#[tokio::test]
async fn watches_elsewhere_outlive_a_listener() {
    let server = ApiServer::start();
    let [first, second] = both(&server).await;
    let mut body = watch(&server, &second, Version::HTTP_2).await;
    first.shutdown().await;
    make(&server, "later");
    assert!(next(&mut body).await.unwrap().unwrap().contains("later"));
}

#[tokio::test]
async fn a_restart_breaks_connections_and_takes_new_ones() {
    let server = ApiServer::start();
    for listening in both(&server).await {
        for version in VERSIONS {
            let mut body = watch(&server, &listening, version).await;
            server.restart();
            assert!(next(&mut body).await.unwrap().is_err());
            let mut client = Client::new(&server, &listening, version).await;
            assert_eq!(client.get_whole("/healthz").await.0, StatusCode::OK);
        }
    }
}

#[tokio::test]
async fn a_server_that_is_down_refuses_and_comes_back_on_its_port() {
    let server = ApiServer::start();
    let listening = server.listen("127.0.0.1:0").await.unwrap();
    for _ in 0..3 {
        let mut body = watch(&server, &listening, Version::HTTP_2).await;
        server.refuse_connections();
        assert!(next(&mut body).await.unwrap().is_err());
        until_refused(listening.addr()).await;
        server.accept_connections();
        while TcpStream::connect(listening.addr()).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    server.refuse_connections();
    listening.shutdown().await;
}

/// Asserts that no task is left. A runtime drops a task shortly after it has ended.
fn assert_idle(runtime: &Runtime) {
    let begun = Instant::now();
    while runtime.metrics().num_alive_tasks() > 0 {
        assert!(begun.elapsed() < PATIENCE, "a task was left behind");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_is_left_after_a_shutdown() {
    let server = ApiServer::start();
    let [serving, asking] = [Runtime::new().unwrap(), Runtime::new().unwrap()];
    for listening in serving.block_on(both(&server)) {
        let addr = listening.addr();
        let watches = asking.block_on(async {
            let idle = TcpStream::connect(addr).await.unwrap();
            let one = watch(&server, &listening, Version::HTTP_11).await;
            let two = watch(&server, &listening, Version::HTTP_2).await;
            (idle, one, two)
        });
        serving.block_on(listening.shutdown());
        asking.block_on(until_refused(addr));
        drop(watches);
    }
    assert_idle(&serving);
    assert_eq!(server.watches(), 0);
}

#[test]
fn nothing_is_left_after_a_drop() {
    let server = ApiServer::start();
    let [serving, asking] = [Runtime::new().unwrap(), Runtime::new().unwrap()];
    for listening in serving.block_on(both(&server)) {
        let addr = listening.addr();
        let (mut one, mut two) = asking.block_on(async {
            let one = watch(&server, &listening, Version::HTTP_11).await;
            (one, watch(&server, &listening, Version::HTTP_2).await)
        });
        drop(listening);
        asking.block_on(async {
            assert!(next(&mut one).await.unwrap().is_err());
            assert!(next(&mut two).await.unwrap().is_err());
            until_refused(addr).await;
        });
    }
    assert_idle(&serving);
    assert_eq!(server.watches(), 0);
}

#[tokio::test]
async fn what_runs_is_finished_at_a_shutdown() {
    let server = ApiServer::start();
    let listening = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listening.addr()).await.unwrap();
    let body = r#"{"metadata":{"name":"late"}}"#;
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        server.token(),
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut shutdown = Box::pin(listening.shutdown());
    assert!(futures::poll!(&mut shutdown).is_pending());
    client.write_all(body.as_bytes()).await.unwrap();
    shutdown.await;
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 201"), "{response}");
    assert!(server.get("configmaps", "default", "late").is_some());
}
