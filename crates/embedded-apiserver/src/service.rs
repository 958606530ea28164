//! Handles an HTTP request: authentication, parsing, authorization, and then the verb.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::access::User;
use crate::body::Body;
use crate::codec::Codec;
use crate::connection::Connection;
use crate::kinds::Registry;
use crate::limits::BODY_BYTES_MAX;
use crate::record::RequestRecord;
use crate::request::{Target, Verb, route};
use crate::response::{failure, of_type};
use crate::rest::{self, Call};
use crate::server::{ApiServer, Shared};
use crate::status::{Status, clipped};
use crate::{control, discovery, duration, health, negotiate, openapi};

/// The media type of YAML, in which clients may send objects.
const YAML: &str = "application/yaml";

/// The way in which requests reach the server.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// From this process, as a user.
    InProcess(User),
    /// From a socket: the token identifies the user.
    Socket,
}

/// The server as an in-process `tower` service, for `kube::Client` or direct calls.
#[derive(Debug, Clone)]
pub struct ApiService {
    shared: Arc<Shared>,
    origin: Origin,
}

impl ApiServer {
    /// Returns a service that handles requests as `user`, without a token.
    pub fn service_as(&self, user: impl Into<Arc<str>>) -> ApiService {
        let origin = Origin::InProcess(User(user.into()));
        ApiService { shared: Arc::clone(&self.shared), origin }
    }

    /// Returns a service that requires a token.
    pub fn service(&self) -> ApiService {
        ApiService { shared: Arc::clone(&self.shared), origin: Origin::Socket }
    }
}

impl<B> tower_service::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { shared, origin } = self.clone();
        Box::pin(async move { shared.serve(request, &origin).await })
    }
}

impl Shared {
    /// Handles a request. An error represents a failed connection.
    pub(crate) async fn serve<B>(
        self: &Arc<Self>,
        request: Request<B>,
        origin: &Origin,
    ) -> io::Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !*self.accepting.borrow() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (mut parts, body) = request.into_parts();
        let is_pretty = wants_pretty(parts.uri.query().unwrap_or_default());
        if is_pretty {
            parts.headers.remove(ACCEPT_ENCODING);
        }
        let codec = negotiate::status_codec(&parts.headers);
        let user = match origin {
            Origin::InProcess(user) => Ok(user.clone()),
            Origin::Socket => self.access.authenticate(&parts.headers),
        };
        if self.options.control && control::is_for(parts.uri.path()) {
            let answer = self.controlled(&parts, body, user).await;
            return Ok(answer.unwrap_or_else(|status| failure(&status, codec)));
        }
        let mut target = route(&parts.method, &parts.uri, &self.registry.read());
        let record = self.record_of(&parts, user.as_ref().ok(), &target);
        let id = match user {
            Ok(_) => self.record.request(record),
            Err(_) => self.record.refused(record),
        };
        let connections = self.connections.current();
        let about = target.as_ref().ok().and_then(Option::as_ref);
        let mut exposure = self.expose(id, &parts, user.as_ref().ok(), about, &connections);
        let answered = async {
            let about = target.as_mut().ok().and_then(Option::as_mut);
            let instead = exposure.before_answer(&mut parts, about).await?;
            let response = if let Some(instead) = instead {
                instead
            } else {
                let on_socket = parts.extensions.get::<Connection>().is_some();
                let answer = self.answer(id, parts, body, user, target).await;
                let answer = answer.and_then(|response| check_upgrade(response, on_socket));
                let response = answer.unwrap_or_else(|status| failure(&status, codec));
                if is_pretty { prettify(response).await? } else { response }
            };
            exposure.after_answer(response).await
        };
        let response = tokio::select! {
            // A completed response takes precedence, so that it is sent, and two runs of a test
            // under paused time are identical.
            biased;
            answered = answered => answered?,
            () = connections.cancelled() => return Err(io::ErrorKind::ConnectionReset.into()),
        };
        let status = response.status().as_u16();
        self.record.amend(id, |request| request.status = Some(status));
        Ok(response)
    }

    async fn answer<B>(
        self: &Arc<Self>,
        id: u64,
        mut parts: Parts,
        body: B,
        user: Result<User, Status>,
        target: Result<Option<Target>, Status>,
    ) -> Result<Response<Body>, Status>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let about = target.as_ref().ok().and_then(Option::as_ref);
        if !about.is_some_and(Target::is_long_running) {
            check_timeout(parts.uri.query().unwrap_or_default())?;
        }
        let user = user?;
        let Some(target) = target? else { return Ok(self.plain(&parts)) };
        self.access.authorize(&user, &target)?;
        let mut body = read_body(body).await?;
        let is_yaml = negotiate::content_type(&parts.headers) == YAML;
        if is_yaml && target.verb != Verb::Patch && !body.is_empty() {
            body = json_of_yaml(&target, &body)?;
            parts.headers.insert(CONTENT_TYPE, Codec::Json.content_type());
        }
        let age = Duration::ZERO;
        let call = Call { id, target, headers: parts.headers, body, age };
        rest::answer(self, &call).await
    }

    /// Handles a request that concerns the server instead of the API.
    async fn controlled<B>(
        self: &Arc<Self>,
        parts: &Parts,
        body: B,
        user: Result<User, Status>,
    ) -> Result<Response<Body>, Status>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = parts.uri.path();
        control::admit(&user?, path)?;
        let body = read_body(body).await?;
        control::answer(self, &parts.method, path, &body)
    }

    fn record_of(
        &self,
        parts: &Parts,
        user: Option<&User>,
        target: &Result<Option<Target>, Status>,
    ) -> RequestRecord {
        let target = target.as_ref().ok().and_then(Option::as_ref);
        RequestRecord {
            id: 0,
            at: self.clock.elapsed(),
            revision: self.store.revision(),
            user: user.map(|user| user.0.to_string()).unwrap_or_default(),
            method: parts.method.to_string(),
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: target.map(|target| target.verb),
            resource: target.map(Target::resource_path).unwrap_or_default(),
            namespace: target.map(|target| target.namespace().to_owned()).unwrap_or_default(),
            name: target.map(|target| target.name().to_owned()).unwrap_or_default(),
            status: None,
            faults: Vec::new(),
        }
    }

    /// Handles everything that is not a resource: discovery, schemas, version and health.
    fn plain(&self, parts: &Parts) -> Response<Body> {
        let path = parts.uri.path();
        let accept = parts.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
        let codec = negotiate::status_codec(&parts.headers);
        let registry = self.registry.read();
        let found = discovery::respond(path, accept, &registry)
            .map(|(content_type, value)| (content_type, value.to_string()))
            .or_else(|| openapi::respond(path, accept, &registry))
            .or_else(|| health::respond(path, parts.uri.query()));
        match found {
            None if is_version(path, &registry) => failure(&Status::no_such_resource(), codec),
            None => page_not_found(),
            Some(_) if parts.method != http::Method::GET => {
                failure(&Status::method_not_allowed(), codec)
            }
            Some((content_type, text)) => of_type(StatusCode::OK, content_type, text),
        }
    }
}

/// Refuses to upgrade a connection that does not exist.
fn check_upgrade(response: Response<Body>, on_socket: bool) -> Result<Response<Body>, Status> {
    if on_socket || response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    Err(Status::bad_request("a WebSocket needs a connection, which an in-process request has not"))
}

/// Checks the time that a client gives a request, which is never used up here.
fn check_timeout(query: &str) -> Result<(), Status> {
    let timeouts = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "timeout");
    match timeouts.map(|(_, value)| value).find(|value| !value.is_empty()) {
        None => Ok(()),
        Some(value) => duration::check(&value).map_err(|why| {
            let why = format!("invalid timeout specified in the request URL - {why}");
            Status::bad_request(clipped(why))
        }),
    }
}

/// Returns the object of a body in YAML as JSON.
fn json_of_yaml(target: &Target, body: &[u8]) -> Result<Bytes, Status> {
    let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8".to_owned());
    let value = text.and_then(|text| {
        serde_saphyr::from_str::<Value>(text).map_err(|error| {
            // The error would quote the text, which may be a secret.
            let line = error.location().map_or(0, |at| at.line());
            format!("line {line} is not valid")
        })
    });
    let value = value.map_err(|why| {
        let kind = &target.resource.kind;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): yaml: {why}"
        ))
    })?;
    Ok(value.to_string().into())
}

/// Returns whether a client asks for indented JSON.
fn wants_pretty(query: &str) -> bool {
    let mut all = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "pretty");
    all.next().is_some_and(|(_, value)| matches!(&*value, "" | "1" | "true"))
}

/// Indents the JSON of a response. Other responses, and watches, are left as they are.
async fn prettify(response: Response<Body>) -> io::Result<Response<Body>> {
    let headers = response.headers();
    let is_json = headers.get(CONTENT_TYPE) == Some(&Codec::Json.content_type());
    if !is_json || response.body().is_events() {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let compact = body.collect().await?.to_bytes();
    let pretty = serde_json::from_slice::<Value>(&compact)
        .and_then(|value| serde_json::to_vec_pretty(&value))
        .map_or(compact, Bytes::from);
    Ok(Response::from_parts(head, Body::whole(pretty)))
}

/// Returns whether a path is that of a version, served or not, of a known group.
fn is_version(path: &str, registry: &Registry) -> bool {
    match *path.trim_matches('/').split('/').collect::<Vec<_>>() {
        ["api", _] => true,
        ["apis", group, _] => registry.is_built_in(group),
        _ => false,
    }
}

/// Returns the response of a real server for an unknown path or group.
fn page_not_found() -> Response<Body> {
    let text = "404 page not found\n".to_owned();
    of_type(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", text)
}

async fn read_body<B>(body: B) -> Result<Bytes, Status>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limited = std::pin::pin!(Limited::new(body, BODY_BYTES_MAX));
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Status::too_large_entity(BODY_BYTES_MAX))
        }
        Err(error) => Err(Status::bad_request(format!("the body could not be read: {error}"))),
    }
}
