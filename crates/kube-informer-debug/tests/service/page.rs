//! Requests to a page, its stream of messages, and an informer with hostile names.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube_informer::list_watch::{
    ListItem, ListOptions, ListStream, WatchItem, WatchOptions, WatchStream,
};
use kube_informer::{ListWatch, Object, Result, SharedInformer};
use kube_informer_debug::{Body, DebugPage};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tower_service::Service;

pub(crate) const TOKEN: &str = "t0ken";

/// The number of messages among which an awaited one must be.
const MESSAGES_MAX: usize = 1000;

pub(crate) struct Page(pub(crate) DebugPage);

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Calls a service that never fails.
pub(crate) async fn call<S, B>(
    mut service: S,
    method: Method,
    uri: &str,
    headers: &[(&str, &str)],
) -> Answer
where
    S: Service<Request<axum::body::Body>, Response = Response<B>, Error: std::fmt::Debug>,
    B: http_body::Body<Data: Send, Error: std::fmt::Debug>,
{
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = service.call(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Answer { status: head.status, headers: head.headers, body }
}

impl Page {
    pub(crate) async fn send(&self, method: Method, uri: &str, headers: &[(&str, &str)]) -> Answer {
        call(self.0.clone(), method, uri, headers).await
    }

    /// Sends a request with the token, from this machine.
    pub(crate) async fn get(&self, uri: &str) -> Answer {
        let uri = format!(
            "{uri}{}token={TOKEN}",
            if uri.ends_with('?') {
                ""
            } else if uri.contains('?') {
                "&"
            } else {
                "?"
            }
        );
        self.send(Method::GET, &uri, &[("host", "localhost")]).await
    }

    /// Opens the stream of messages.
    pub(crate) async fn open(&self) -> Stream {
        let uri = format!("/stream?token={TOKEN}");
        let request = Request::get(uri).header("host", "localhost").body(()).unwrap();
        let response = self.0.clone().call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Stream { body: Box::pin(response.into_body()) }
    }
}

pub(crate) struct Stream {
    body: Pin<Box<Body>>,
}

impl Stream {
    /// Returns the next message, which must be of this type, on one line.
    pub(crate) async fn next(&mut self, kind: &str) -> Value {
        let frame = self.body.frame().await.expect("there is another message").unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        let rest = text.strip_prefix(&format!("event: {kind}\ndata: ")).expect(&text);
        let json = rest.strip_suffix("\n\n").unwrap();
        assert!(!json.contains(['\n', '\r']));
        serde_json::from_str(json).unwrap()
    }

    /// Waits for a message.
    pub(crate) async fn beat(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..MESSAGES_MAX {
            let beat = self.next("beat").await;
            if is(&beat) {
                return beat;
            }
        }
        panic!("no such message among {MESSAGES_MAX}");
    }

    /// Waits for an event, which must be the only one in its message.
    pub(crate) async fn event(&mut self) -> Value {
        let beat = self.beat(|beat| beat["events"] != json!([])).await;
        assert_eq!(beat["events"].as_array().unwrap().len(), 1);
        beat["events"][0].clone()
    }

    pub(crate) async fn ended(&mut self) -> bool {
        self.body.frame().await.is_none()
    }
}

/// A source of one object, which changes when it is told to.
struct Hostile {
    name: String,
    change: Arc<Notify>,
}

impl Hostile {
    fn object(&self, version: &str) -> Object {
        let metadata = json!({"name": self.name, "uid": "u", "resourceVersion": version});
        Object::from_json(json!({"kind": "Thing", "metadata": metadata}).to_string()).unwrap()
    }
}

impl ListWatch for Hostile {
    fn name(&self) -> &str {
        &self.name
    }
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let end = ListItem::End { resource_version: "1".into(), continue_token: None };
        let items = [ListItem::Object(self.object("1")), end];
        async { Ok(stream::iter(items).map(Ok).boxed()) }.boxed()
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        let (change, object) = (self.change.clone(), self.object("2"));
        let changed = async move {
            change.notified().await;
            Ok(WatchItem::Modified(object))
        };
        async { Ok(stream::once(changed).chain(stream::pending()).boxed()) }.boxed()
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

/// Returns an informer that is named like its only object, and the signal that changes that object.
pub(crate) fn hostile(name: &str) -> (SharedInformer, Arc<Notify>) {
    let change = Arc::new(Notify::new());
    let source = Hostile { name: name.to_owned(), change: change.clone() };
    (SharedInformer::from_source(source).build(), change)
}

/// Returns a text as a part of a query.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Sends a request over a socket, and returns the response.
pub(crate) async fn fetch(address: SocketAddr, path: &str) -> String {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).await.unwrap();
    response
}

/// Waits until connections are refused. Until then the system may accept some, but none is served.
pub(crate) async fn until_refused(address: SocketAddr) {
    while let Ok(mut socket) = tokio::net::TcpStream::connect(address).await {
        let read = socket.read(&mut [0]).await;
        assert!(!matches!(read, Ok(1..)), "it is still served");
    }
}
