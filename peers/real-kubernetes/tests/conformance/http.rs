//! A plain HTTP client: requests and responses exactly as on the wire.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

pub(crate) const JSON: &str = "application/json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The timeout of a response. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interval at which a server is polled for changes that it does not announce.
const GLANCE: Duration = Duration::from_millis(20);

/// The user that sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// A user with all permissions.
    Admin,
    /// A user without permissions.
    Reader,
    /// A client without a token.
    Nobody,
    /// A client with an unknown token.
    Stranger,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    /// Includes the query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    pub(crate) user: User,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        let path = path.into();
        Self { method, path, headers: Vec::new(), body: String::new(), user: User::Admin }
    }
}

/// Returns a body as text; protobuf is converted to JSON.
fn text(headers: &HeaderMap, body: &[u8]) -> Result<String> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type == Some(kube_schema::MEDIA_TYPE) {
        return Ok(kube_schema::from_slice::<Value>(body)?.to_string());
    }
    Ok(String::from_utf8_lossy(body).into_owned())
}

/// A server, with clients that add only a token.
#[derive(Clone)]
pub(crate) struct Http {
    admin: Client,
    reader: Client,
    nobody: Client,
    stranger: Client,
}

impl Http {
    /// Connects with the kubeconfig of an administrator, and the client of a user without permissions.
    pub(crate) async fn new(kubeconfig: Kubeconfig, reader: Client) -> Result<Self> {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // Each call must send exactly one request.
        config.default_retry = false;
        let admin = Client::try_from(config.clone())?;
        config.auth_info = AuthInfo::default();
        let nobody = Client::try_from(config.clone())?;
        config.auth_info.token = Some("nobody-gave-this-out".to_owned().into());
        Ok(Self { admin, reader, nobody, stranger: Client::try_from(config)? })
    }

    async fn open(&self, ask: &Ask) -> Result<http::Response<Body>> {
        let mut request = Request::builder().method(ask.method).uri(&ask.path);
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(ask.body.clone().into_bytes()))?;
        let client = match ask.user {
            User::Admin => &self.admin,
            User::Reader => &self.reader,
            User::Nobody => &self.nobody,
            User::Stranger => &self.stranger,
        };
        let answer = timeout(PATIENCE, client.send(request)).await;
        let answer = answer.with_context(|| format!("no answer to {} {}", ask.method, ask.path))?;
        Ok(answer?)
    }

    /// Sends a request. Repeats it while the real server replaces the storage of a custom resource, which it does after
    /// its definition has been established or changed.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Answer> {
        let asked = async {
            loop {
                let answer = self.send_once(ask).await?;
                if !answer.is_replacing_storage() {
                    return anyhow::Ok(answer);
                }
                sleep(GLANCE).await;
            }
        };
        let answer = timeout(PATIENCE, asked).await;
        answer.with_context(|| format!("{} {} stays unavailable", ask.method, ask.path))?
    }

    async fn send_once(&self, ask: &Ask) -> Result<Answer> {
        let (parts, body) = self.open(ask).await?.into_parts();
        let body = timeout(PATIENCE, body.collect()).await;
        let body = body.with_context(|| format!("{} {} has no end", ask.method, ask.path))??;
        let text = text(&parts.headers, &body.to_bytes())?;
        Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, text })
    }

    /// Repeats a request until its response satisfies a condition.
    pub(crate) async fn send_until(
        &self,
        ask: &Ask,
        wanted: impl Fn(&Answer) -> bool,
    ) -> Result<Answer> {
        let asked = async {
            loop {
                let answer = self.send(ask).await?;
                if wanted(&answer) {
                    return anyhow::Ok(answer);
                }
                sleep(GLANCE).await;
            }
        };
        let answer = timeout(PATIENCE, asked).await;
        answer.with_context(|| format!("{} {} stays as it is", ask.method, ask.path))?
    }

    /// Opens a watch; returns the response instead if it is not one.
    pub(crate) async fn follow(&self, ask: &Ask) -> Result<Result<Watch, Answer>> {
        let (parts, body) = self.open(ask).await?.into_parts();
        if parts.status.is_success() {
            return Ok(Ok(Watch { body, buffer: Vec::new() }));
        }
        let text = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
        Ok(Err(Answer { code: parts.status.as_u16(), headers: parts.headers, text }))
    }
}

/// A watch over WebSocket.
pub(crate) type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

impl Http {
    /// Opens a WebSocket; returns the response instead if it is refused.
    pub(crate) async fn upgrade(&self, ask: &Ask) -> Result<Result<WebSocket, Answer>> {
        let response = self.open(ask).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let stream = TokioIo::new(hyper::upgrade::on(response).await?);
            let socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
            return Ok(Ok(socket));
        }
        let (parts, body) = response.into_parts();
        let text = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
        Ok(Err(Answer { code: parts.status.as_u16(), headers: parts.headers, text }))
    }
}

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    fn is_replacing_storage(&self) -> bool {
        self.code == 503 && self.text.contains("apiserver is shutting down")
    }

    /// Returns the body, as a string if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| Value::String(self.text.clone()))
    }

    /// Returns all values of a header that may be repeated.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) object: Value,
}

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    /// Returns the next event, or `None` when the watch has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>> {
        match timeout(PATIENCE, self.read()).await {
            Ok(read) => read,
            Err(_) => bail!("nothing comes, and the watch does not end"),
        }
    }

    async fn read(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let mut line: Value = serde_json::from_slice(&line)?;
                let kind = line["type"].as_str().context("an event has a type")?.to_owned();
                return Ok(Some(Event { kind, object: line["object"].take() }));
            }
            let Some(frame) = self.body.frame().await else {
                ensure!(self.buffer.is_empty(), "a watch ended within an event");
                return Ok(None);
            };
            if let Ok(data) = frame?.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}
