//! Raw requests to an in-process server, for tests that must see every byte of a response.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::io;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService, Body};
use futures::FutureExt;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower_service::Service;

/// A client.
#[derive(Clone)]
pub(crate) struct Wire(ApiService);

/// A complete response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Wire {
    pub(crate) fn new(server: &ApiServer, user: &str) -> Self {
        Self(server.service_as(user))
    }

    /// Sends a request. An error represents a broken connection.
    pub(crate) async fn raw(&self, request: Request<Full<Bytes>>) -> io::Result<Response<Body>> {
        self.0.clone().call(request).await
    }

    /// Sends JSON (nothing for null), and returns the complete response as JSON.
    pub(crate) async fn send(&self, method: Method, uri: &str, body: &Value) -> Reply {
        let content_type = match method {
            Method::PATCH if body.is_array() => "application/json-patch+json",
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(bytes.into()))
            .expect("tests send valid requests");
        let response = self.raw(request).await.expect("the connection is whole");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("the answer is whole").to_bytes();
        Reply { code, body: serde_json::from_slice(&bytes).expect("answers are JSON") }
    }

    pub(crate) async fn get(&self, uri: &str) -> Reply {
        self.send(Method::GET, uri, &Value::Null).await
    }

    /// Starts a watch.
    pub(crate) async fn watch(&self, uri: &str) -> Watching {
        let request = Request::get(uri).body(Full::default()).expect("tests send valid requests");
        let response = self.raw(request).await.expect("the connection is whole");
        assert_eq!(response.status(), 200, "{uri}");
        Watching { body: response.into_body() }
    }
}

/// An open watch, which the test reads when it needs to.
pub(crate) struct Watching {
    body: Body,
}

/// The result of reading a watch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    Event(Value),
    /// The watch ended gracefully.
    End,
    /// The connection broke.
    Broken,
    /// Nothing is available yet.
    Nothing,
}

impl Watching {
    /// Returns the next event, if it is available.
    pub(crate) fn next_now(&mut self) -> Given {
        // Without tokio's cooperative budget, which makes ready futures pending after many reads.
        let frame = tokio::task::unconstrained(self.body.frame());
        match frame.now_or_never() {
            None => Given::Nothing,
            Some(None) => Given::End,
            Some(Some(Err(_))) => Given::Broken,
            Some(Some(Ok(frame))) => {
                let line = frame.into_data().expect("watches send data");
                assert_eq!(line.last(), Some(&b'\n'), "an event is a line");
                Given::Event(serde_json::from_slice(&line).expect("events are JSON"))
            }
        }
    }

    /// Waits for the next event. Returns `None` when the watch ends in any way.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.body.frame().await?.ok()?.into_data().expect("watches send data");
        Some(serde_json::from_slice(&line).expect("events are JSON"))
    }
}

/// Returns the resourceVersion of an object, a list or an event's object.
pub(crate) fn version_of(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).expect("it has a resourceVersion")
}
