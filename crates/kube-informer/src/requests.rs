//! The requests of a client, counted by result and measured, as client-go's REST client measures its own.
//!
//! A request takes two short locks. Watches and other streams are only counted, and their events take none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use http::header::UPGRADE;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower_service::Service;

/// For modules that only pass an address on.
pub(crate) use http::Uri;

use crate::measure::{Histogram, REQUEST_BYTES, REQUEST_SECONDS};

/// The requests to one server.
pub(crate) struct Requests {
    host: String,
    by_method: Mutex<BTreeMap<&'static str, Arc<ByMethod>>>,
}

/// The requests with one method.
pub(crate) struct ByMethod {
    results: Mutex<BTreeMap<Outcome, u64>>,
    /// The time until the whole response has arrived.
    pub(crate) duration: Histogram,
    pub(crate) request_bytes: Histogram,
    pub(crate) response_bytes: Histogram,
}

/// The result of a request, as a label. The set is bounded, whatever a server sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// There was no response.
    Failed,
    Code(u16),
    /// A status code that no standard defines.
    Unknown,
}

impl From<StatusCode> for Outcome {
    fn from(code: StatusCode) -> Self {
        if code.canonical_reason().is_some() { Self::Code(code.as_u16()) } else { Self::Unknown }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => f.write_str("<error>"),
            Self::Code(code) => code.fmt(f),
            Self::Unknown => f.write_str("other"),
        }
    }
}

impl Requests {
    pub(crate) fn new(host: String) -> Self {
        Self { host, by_method: Mutex::default() }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns a client that counts the requests that it sends through another one.
    pub(crate) fn measured(self: Arc<Self>, client: Client) -> Client {
        let (namespace, valid_until) =
            (client.default_namespace().to_owned(), *client.valid_until());
        Client::new(Measured { client, requests: self }, namespace).with_valid_until(valid_until)
    }

    pub(crate) fn by_method(&self) -> Vec<(&'static str, Arc<ByMethod>)> {
        self.by_method.lock().iter().map(|(method, requests)| (*method, requests.clone())).collect()
    }

    fn of(&self, method: &Method) -> Arc<ByMethod> {
        self.by_method.lock().entry(label(method)).or_default().clone()
    }
}

impl ByMethod {
    pub(crate) fn results(&self) -> BTreeMap<Outcome, u64> {
        self.results.lock().clone()
    }

    fn count(&self, outcome: Outcome) {
        *self.results.lock().entry(outcome).or_default() += 1;
    }
}

impl Default for ByMethod {
    fn default() -> Self {
        Self {
            results: Mutex::default(),
            duration: Histogram::new(REQUEST_SECONDS),
            request_bytes: Histogram::new(REQUEST_BYTES),
            response_bytes: Histogram::new(REQUEST_BYTES),
        }
    }
}

/// Returns the host and the port of a server, as client-go names it. Credentials in its address are left out.
pub(crate) fn host(server: &Uri) -> String {
    match (server.host(), server.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "none".to_owned(),
    }
}

fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Returns whether the response is a stream, which has no end that a client waits for.
fn is_stream(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let streams = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        matches!((&*name, &*value), ("watch" | "follow", "true" | "1"))
    };
    request.headers().contains_key(UPGRADE) || form_urlencoded::parse(query.as_bytes()).any(streams)
}

/// The service that a measured client consists of.
struct Measured {
    client: Client,
    requests: Arc<Requests>,
}

impl Service<Request<Body>> for Measured {
    type Response = Response<MeasuredBody>;
    type Error = kube_client::Error;
    type Future = BoxFuture<'static, kube_client::Result<Self::Response>>;

    /// Requests wait in the inner client.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube_client::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        let mut attempt = Attempt::new(self.requests.of(request.method()), &request);
        Box::pin(async move {
            let response = client.send(request).await?;
            attempt.answered(response.status());
            let attempt = Some(attempt).filter(|attempt| !attempt.is_stream);
            Ok(response.map(|body| MeasuredBody { body, bytes: 0, attempt }))
        })
    }
}

/// A request until its response has been read. If it is dropped before, it failed or its caller gave up.
struct Attempt {
    requests: Arc<ByMethod>,
    begun: Instant,
    is_stream: bool,
    is_answered: bool,
}

impl Attempt {
    fn new(requests: Arc<ByMethod>, request: &Request<Body>) -> Self {
        let is_stream = is_stream(request);
        if let Some(bytes) = request.body().size_hint().exact().filter(|_| !is_stream) {
            requests.request_bytes.record(bytes as f64);
        }
        Self { requests, begun: Instant::now(), is_stream, is_answered: false }
    }

    fn answered(&mut self, code: StatusCode) {
        self.requests.count(code.into());
        self.is_answered = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_answered {
            self.requests.count(Outcome::Failed);
        }
        if !self.is_stream {
            self.requests.duration.record_duration(self.begun.elapsed());
        }
    }
}

/// The body of a response, whose end is the end of the request.
struct MeasuredBody {
    body: Body,
    bytes: u64,
    /// `None` for streams, and after the end.
    attempt: Option<Attempt>,
}

impl MeasuredBody {
    fn end(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.requests.response_bytes.record(self.bytes as f64);
        }
    }
}

impl http_body::Body for MeasuredBody {
    type Data = Bytes;
    type Error = kube_client::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<kube_client::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64,
            Some(Err(_)) => self.attempt = None,
            None => self.end(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for MeasuredBody {
    fn drop(&mut self) {
        // Readers need not ask again after the last frame.
        if self.body.is_end_stream() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_has_the_port_and_no_credentials() {
        for (server, expected) in [
            ("https://10.0.0.1:6443/prefix", "10.0.0.1:6443"),
            ("https://user:secret@api.example/", "api.example"),
            ("https://[::1]:6443", "[::1]:6443"),
            ("embedded", "embedded"),
            ("/path", "none"),
        ] {
            assert_eq!(host(&server.parse().unwrap()), expected, "{server}");
        }
    }

    #[test]
    fn labels_are_bounded() {
        let codes = (100..1000).map(|code| Outcome::from(StatusCode::from_u16(code).unwrap()));
        let codes: std::collections::BTreeSet<_> = codes.map(|code| code.to_string()).collect();
        assert!(codes.contains("410") && codes.contains("other") && codes.len() < 100, "{codes:?}");
        assert_eq!(label(&Method::from_bytes(b"BREW").unwrap()), "other");
    }

    #[test]
    fn watches_logs_and_upgrades_are_streams() {
        let stream = |uri: &str| is_stream(&Request::get(uri).body(Body::empty()).unwrap());
        for uri in ["/api/v1/pods?limit=5&watch=true", "/api/v1/pods?watch=1", "/log?follow=true"] {
            assert!(stream(uri), "{uri}");
        }
        for uri in ["/api/v1/pods", "/api/v1/pods?watch=false", "/x?fieldSelector=watch%3Dtrue"] {
            assert!(!stream(uri), "{uri}");
        }
        let exec = Request::get("/exec").header(UPGRADE, "websocket").body(Body::empty());
        assert!(is_stream(&exec.unwrap()));
    }
}
