//! A client that exposes raw requests and bodies.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, Body, RequestRecord};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

/// The path of all tests' objects.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(7).bookmark_interval(Duration::from_secs(10)).build()
}

/// Creates a config map without a request. Returns its version.
pub(crate) fn add(server: &ApiServer, name: &str) -> u64 {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
                     "metadata": {"name": name}, "data": {"key": "Größe"}});
    version(&server.create(map).unwrap())
}

pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub(crate) async fn send(
    server: &ApiServer,
    method: &str,
    uri: &str,
    body: &Value,
) -> io::Result<Response<Body>> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("content-type", "application/json");
    server.service_as("tester").call(request.body(Full::new(Bytes::from(body))).unwrap()).await
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// Returns the names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let list = self.json();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// Sends a GET, which must succeed.
pub(crate) async fn get(server: &ApiServer, uri: &str) -> Answer {
    let response = send(server, "GET", uri, &Value::Null).await.unwrap();
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer { code: head.status, headers: head.headers, bytes }
}

/// Returns how a GET fails before its headers.
pub(crate) async fn broken_get(server: &ApiServer, uri: &str) -> io::ErrorKind {
    send(server, "GET", uri, &Value::Null).await.unwrap_err().kind()
}

/// Returns whether a future stays pending for longer than any client waits.
pub(crate) async fn is_silent(future: impl Future) -> bool {
    timeout(Duration::from_secs(9), future).await.is_err()
}

/// The body of a response, frame by frame.
#[derive(Debug)]
pub(crate) struct Frames(pub(crate) Body);

impl Frames {
    /// Sends a GET.
    pub(crate) async fn of(server: &ApiServer, uri: &str) -> Self {
        let response = send(server, "GET", uri, &Value::Null).await.unwrap();
        assert_eq!(response.status(), 200);
        Self(response.into_body())
    }

    /// Watches config maps.
    pub(crate) async fn watch(server: &ApiServer, query: &str) -> Self {
        Self::of(server, &format!("{MAPS}?watch=true&{query}")).await
    }

    /// Watches config maps from the current version.
    pub(crate) async fn watch_from_now(server: &ApiServer) -> Self {
        let now = server.store().revision();
        Self::watch(server, &format!("resourceVersion={now}")).await
    }

    /// Returns the next frame, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let frame = self.0.frame().await?;
        Some(frame.map(|frame| frame.into_data().unwrap()))
    }

    /// Returns the next event of a watch: its type, and the object's name, a bookmark's version or
    /// an error's code.
    pub(crate) async fn event(&mut self) -> String {
        let line = self.next().await.expect("an event, not the end").unwrap();
        let event: Value = serde_json::from_slice(&line).unwrap();
        let object = &event["object"];
        let about = match event["type"].as_str().unwrap() {
            "BOOKMARK" if object["metadata"]["annotations"].is_object() => "end".to_owned(),
            "BOOKMARK" => object["metadata"]["resourceVersion"].as_str().unwrap().to_owned(),
            "ERROR" => object["code"].to_string(),
            _ => object["metadata"]["name"].as_str().unwrap().to_owned(),
        };
        format!("{} {about}", event["type"].as_str().unwrap())
    }

    pub(crate) async fn breaks(&mut self) -> io::ErrorKind {
        self.next().await.expect("an error, not the end").unwrap_err().kind()
    }

    pub(crate) async fn ends(&mut self) -> bool {
        self.next().await.is_none()
    }
}

/// Returns the only fault that fired, with its version and number of events.
pub(crate) fn fired(server: &ApiServer) -> (&'static str, u64, u64) {
    let fired = server.faults().fired();
    assert_eq!(fired.len(), 1, "{fired:?}");
    let record = record(server, fired[0].request);
    assert_eq!(record.faults, [fired[0].name]);
    (fired[0].name, fired[0].revision, fired[0].after_events)
}

pub(crate) fn record(server: &ApiServer, id: u64) -> RequestRecord {
    server.requests().into_iter().find(|request| request.id == id).unwrap()
}

/// Returns all deliveries: type and name (or version), with `!fault` if a fault altered it.
pub(crate) fn delivered(server: &ApiServer) -> Vec<String> {
    let deliveries = server.deliveries().into_iter().map(|delivery| {
        let about = delivery
            .key
            .as_ref()
            .map_or_else(|| delivery.version.to_string(), |key| key.name().to_owned());
        let fault = delivery.fault.map(|fault| format!(" !{fault}")).unwrap_or_default();
        format!("{} {about}{fault}", delivery.event_type.as_str())
    });
    deliveries.collect()
}
