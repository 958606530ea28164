//! Requests to an in-process server, and their responses.

use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService, Body};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// A client that sends requests as a user, or with a token.
#[derive(Clone)]
pub(crate) struct Client(ApiService);

impl Client {
    pub(crate) fn of(server: &ApiServer) -> Self {
        Self(server.service_as("admin"))
    }

    pub(crate) fn through(service: ApiService) -> Self {
        Self(service)
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.open(method, path, headers, body.into()).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("the body is whole").to_bytes();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).expect("a request");
        self.0.clone().call(request).await.expect("the connection holds")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.request("GET", path, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.request("POST", path, &[], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.request("PUT", path, &[], body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.request("PATCH", path, &[("content-type", MERGE_PATCH)], body.to_string()).await
    }

    pub(crate) async fn json_patch(&self, path: &str, body: Value) -> Answer {
        self.request("PATCH", path, &[("content-type", JSON_PATCH)], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Answer {
        self.request("DELETE", path, &[], options.to_string()).await
    }

    /// Starts a watch, which must succeed.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let response = self.open("GET", path, &[("accept", accept)], Bytes::new()).await;
        assert_eq!(response.status(), 200, "{path}");
        Watch { body: response.into_body(), buffer: Vec::new() }
    }
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("JSON: {:?}", self.body))
    }

    /// Returns the object of a successful request.
    pub(crate) fn ok(&self) -> Value {
        assert!(self.code < 300, "{}: {:?}", self.code, self.body);
        self.json()
    }

    /// Returns the `Status` of a failed request.
    pub(crate) fn failed(&self, code: u16) -> Value {
        let status = self.json();
        assert_eq!(self.code, code, "{status}");
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["code"], code);
        status
    }

    /// Returns the object of a protobuf response.
    pub(crate) fn protobuf(&self) -> Value {
        assert_eq!(self.header("content-type"), kube_schema::MEDIA_TYPE, "{:?}", self.body);
        kube_schema::from_slice(&self.body).expect("protobuf")
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().expect("a message").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text"))
    }
}

/// An event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) object: Value,
}

impl Event {
    pub(crate) fn version(&self) -> u64 {
        version(&self.object)
    }

    /// Returns the type, name and version, which most tests compare.
    pub(crate) fn brief(&self) -> (&str, &str, u64) {
        (&self.kind, name(&self.object), self.version())
    }
}

/// An open watch.
pub(crate) struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    /// Returns the next event, or `None` when the watch has ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let mut line: Value = serde_json::from_slice(&line).expect("a line of JSON");
                let kind = line["type"].as_str().expect("a type").to_owned();
                return Some(Event { kind, object: line["object"].take() });
            }
            let frame = self.body.frame().await?.expect("the connection holds");
            self.buffer.extend_from_slice(&frame.into_data().expect("data"));
        }
    }

    /// Returns the next event of a protobuf watch, or `None` when it has ended.
    pub(crate) async fn frame(&mut self) -> Option<Event> {
        loop {
            let len = self.buffer.first_chunk().map(|len| u32::from_be_bytes(*len) as usize);
            if let Some(len) = len.filter(|len| self.buffer.len() >= len + 4) {
                let bytes: Vec<u8> = self.buffer.drain(..len + 4).skip(4).collect();
                let frame = kube_schema::WatchFrame::parse(&bytes).expect("a frame");
                let object = kube_schema::from_slice(frame.object).expect("an object");
                return Some(Event { kind: frame.event_type.to_owned(), object });
            }
            let frame = self.body.frame().await?.expect("the connection holds");
            self.buffer.extend_from_slice(&frame.into_data().expect("data"));
        }
    }

    pub(crate) async fn event(&mut self) -> Event {
        self.next().await.expect("the watch goes on")
    }

    pub(crate) async fn events(&mut self, count: usize) -> Vec<Event> {
        let mut events = Vec::with_capacity(count);
        for _ in 0..count {
            events.push(self.event().await);
        }
        events
    }

    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// Asserts that no event arrives for a while.
    pub(crate) async fn is_quiet(&mut self) {
        let next = tokio::time::timeout(Duration::from_secs(1), self.next()).await;
        assert!(next.is_err(), "{next:?}");
    }
}

pub(crate) fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).unwrap_or_else(|| panic!("{object}"))
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("items").iter().map(name).collect()
}

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

pub(crate) fn labelled(name: &str, labels: Value) -> Value {
    let mut map = map(name);
    map["metadata"]["labels"] = labels;
    map
}

/// Returns a `Status` as it is sent. `details` may be null.
pub(crate) fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    if !details.is_null() {
        status["details"] = details;
    }
    status
}

/// Returns an escaped value for a query.
pub(crate) fn escaped(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns a namespaced definition of `kind` in `tests.example.com/v1`, without subresources.
pub(crate) fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.tests.example.com")},
        "spec": {
            "group": "tests.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}
