//! The layer that applies faults to requests, their responses and the events of watches.
//!
//! # Architecture invariants
//! - The code inside the layer does not know about faults. One fault changes the request instead: a
//!   stale list cannot be derived from a fresh one, so an old version is requested.
//! - Delays wait only for tokio's time or for connections to end.

mod body;
mod objects;
mod watch;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;

use crate::access::{self, User};
use crate::body::Body;
use crate::codec::Codec;
use crate::connection::Connection;
use crate::faults::{Chance, Fault, FiredFault, Point, Waiting};
use crate::negotiate;
use crate::request::{Target, Verb, VersionMatch, parse_version};
use crate::response::{failure, of_type};
use crate::server::{ApiServer, Shared};
use crate::status::Status;

/// The response of a proxy that has lost its upstream server.
const HTML: &str = "<html>\r\n<head><title>Bad Gateway</title></head>\r\n<body>\r\n\
                    <center><h1>Bad Gateway</h1></center>\r\n<hr><center>proxy</center>\r\n\
                    </body>\r\n</html>\r\n";

/// A request and its pending faults. The default is exempt from faults.
#[derive(Debug, Default)]
pub(crate) struct Exposure {
    request: Option<Arc<Exposed>>,
    waiting: Vec<Waiting>,
    /// The newest rule that has been checked.
    newest_rule: u64,
}

/// The request itself.
#[derive(Debug)]
struct Exposed {
    server: ApiServer,
    id: u64,
    user: User,
    target: Option<Target>,
    /// `None` in process.
    connection: Option<Connection>,
    connections: CancellationToken,
}

impl Shared {
    /// Finds the pending faults of a request. Open watches are exposed to new rules as well; other
    /// requests only to those that exist when they arrive. If no rule can affect the request,
    /// nothing is set up. Unauthenticated requests are exempt: they must not consume faults that
    /// are meant for others.
    pub(crate) fn expose(
        self: &Arc<Self>,
        id: u64,
        parts: &Parts,
        user: Option<&User>,
        target: Option<&Target>,
        connections: &CancellationToken,
    ) -> Exposure {
        let Some(user) = user else { return Exposure::default() };
        let watches = target.is_some_and(|target| target.verb == Verb::Watch);
        if !watches && self.faults.count() == 0 {
            return Exposure::default();
        }
        let (waiting, newest_rule) = self.faults.meet_request(user, target);
        let request = Exposed {
            server: ApiServer { shared: Arc::clone(self) },
            id,
            user: user.clone(),
            target: target.cloned(),
            connection: parts.extensions.get().cloned(),
            connections: connections.clone(),
        };
        Exposure { request: Some(Arc::new(request)), waiting, newest_rule }
    }
}

impl Exposure {
    /// Applies the faults that fire before the request is carried out. Returns the response if one
    /// of them replaces it.
    pub(crate) async fn before_answer(
        &mut self,
        parts: &mut Parts,
        target: Option<&mut Target>,
    ) -> io::Result<Option<Response<Body>>> {
        let Some(request) = self.request.clone() else { return Ok(None) };
        let is_about_json = |waiting: &Waiting| match waiting.point {
            Point::Request => false,
            Point::Events(_) => objects::is_of_objects(&waiting.fault),
            _ => true,
        };
        if self.waiting.iter().any(is_about_json) {
            // Faults of bytes and objects apply to JSON, not to its compressed form or protobuf.
            parts.headers.remove(ACCEPT_ENCODING);
            negotiate::prefer_json(&mut parts.headers);
        }
        let codec = negotiate::status_codec(&parts.headers);
        let mut target = target;
        for waiting in self.take(|point| point == Point::Request) {
            let stale_list = matches!(*waiting.fault, Fault::StaleList { .. });
            if (stale_list && !request.lists_anew()) || !request.is_struck(&waiting, 0) {
                continue;
            }
            match &*waiting.fault {
                Fault::Status { code: StatusCode::FORBIDDEN, retry_after: None } => {
                    return Ok(Some(failure(&request.forbidden(), codec)));
                }
                Fault::Status { code, retry_after } => {
                    return Ok(Some(status_answer(*code, retry_after.as_ref(), codec)));
                }
                Fault::Gone => {
                    let status = Status::too_old(request.asked_version(), request.revision());
                    return Ok(Some(failure(&status, codec)));
                }
                Fault::Html(code) => return Ok(Some(of_type(*code, "text/html", HTML))),
                Fault::StaleList { versions } => {
                    let store = request.server.store();
                    let then = store.revision().saturating_sub(*versions);
                    if let Some(target) = target.as_deref_mut() {
                        let version = then.max(store.compacted_revision()).max(1);
                        target.query.resource_version = version.to_string();
                        target.query.version_match = Some(VersionMatch::Exact);
                    }
                }
                other => request.suffer(other).await?,
            }
        }
        Ok(None)
    }

    /// Applies faults to the response.
    pub(crate) async fn after_answer(
        mut self,
        mut response: Response<Body>,
    ) -> io::Result<Response<Body>> {
        let Some(request) = self.request.clone() else { return Ok(response) };
        for waiting in self.take(|point| point == Point::Head) {
            if !request.is_struck(&waiting, 0) {
                continue;
            }
            match &*waiting.fault {
                Fault::ContentType(content_type) => {
                    response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
                }
                other => request.suffer(other).await?,
            }
        }
        let is_protobuf =
            response.headers().get(CONTENT_TYPE) == Some(&Codec::Protobuf.watch_content_type());
        let codec = if is_protobuf { Codec::Protobuf } else { Codec::Json };
        let of_events = self.take(|point| matches!(point, Point::Events(_)));
        response = response.map(|body| match body.into_events() {
            Ok(events) => {
                let request = Arc::clone(&request);
                watch::damaged(events, codec, request, of_events, self.newest_rule)
            }
            Err(body) => body,
        });
        let of_items = self.take(|point| matches!(point, Point::Items(_)));
        if !of_items.is_empty() && response.status().is_success() {
            let (head, body) = response.into_parts();
            let whole = body.collect().await?.to_bytes();
            let damaged = objects::damage_answer(&request, &of_items, &whole).map(Bytes::from);
            response = Response::from_parts(head, Body::whole(damaged.unwrap_or(whole)));
        }
        let of_bytes = self.take(|point| matches!(point, Point::Body | Point::Bytes(_)));
        if of_bytes.is_empty() {
            return Ok(response);
        }
        Ok(response.map(|whole| body::damaged(whole, request, of_bytes)))
    }

    fn take(&mut self, at: impl Fn(Point) -> bool) -> Vec<Waiting> {
        self.waiting.extract_if(.., |waiting| at(waiting.point)).collect()
    }
}

impl Exposed {
    /// Returns the error of a denied request, from which clients see which permission is missing.
    fn forbidden(&self) -> Status {
        match &self.target {
            Some(target) => access::forbidden(&self.user, target),
            None => Status::of_code(StatusCode::FORBIDDEN),
        }
    }

    fn revision(&self) -> u64 {
        self.server.store().revision()
    }

    fn lists_anew(&self) -> bool {
        let target = self.target.as_ref().filter(|target| target.verb == Verb::List);
        target.is_some_and(|target| target.query.continue_token.is_none())
    }

    fn asked_version(&self) -> u64 {
        let version = self.target.as_ref().map(|target| target.query.resource_version.as_str());
        parse_version(version.unwrap_or_default()).unwrap_or_default()
    }

    /// Asks the rule whether the fault fires, and records it if so.
    fn draw(&self, waiting: &Waiting, after_events: u64) -> Chance {
        let shared = &self.server.shared;
        let chance = shared.faults.draw(waiting.rule, || shared.random());
        if chance == Chance::Strikes {
            let name = waiting.fault.name();
            shared.faults.log(FiredFault {
                id: waiting.rule,
                name,
                request: self.id,
                revision: self.revision(),
                at: shared.clock.elapsed(),
                after_events,
            });
            shared.record.amend(self.id, |record| {
                // A permanent rule can fire without end in a watch, so its name is recorded once.
                if !record.faults.iter().any(|known| known == name) {
                    record.faults.push(name.to_owned());
                }
            });
        }
        chance
    }

    /// Returns whether a fault fires that has only one chance.
    fn is_struck(&self, waiting: &Waiting, after_events: u64) -> bool {
        self.draw(waiting, after_events) == Chance::Strikes
    }

    /// Applies a fault of the connection or the server. An error represents a connection that did
    /// not survive it.
    async fn suffer(&self, fault: &Fault) -> io::Result<()> {
        match fault {
            Fault::Latency(time) => self.wait(*time).await,
            Fault::Refused => Err(self.broken(io::ErrorKind::ConnectionRefused).await),
            Fault::Reset | Fault::LostAnswer => {
                Err(self.broken(io::ErrorKind::ConnectionReset).await)
            }
            Fault::HalfOpen => {
                if let Some(connection) = &self.connection {
                    connection.freeze();
                }
                Err(self.silence().await)
            }
            Fault::StalledHeaders | Fault::StalledBody => Err(self.silence().await),
            other => {
                befall(&self.server, other);
                // Faults that break all connections break this one, too.
                if self.connections.is_cancelled() { Err(self.silence().await) } else { Ok(()) }
            }
        }
    }

    /// Waits for a time, unless connections end first.
    async fn wait(&self, time: Duration) -> io::Result<()> {
        tokio::select! {
            biased;
            () = sleep(time) => Ok(()),
            error = self.silence() => Err(error),
        }
    }

    /// Breaks the connection. On a socket, the socket reports the error: a response, even a failed
    /// one, could arrive before the reset.
    async fn broken(&self, in_process: io::ErrorKind) -> io::Error {
        match &self.connection {
            None => in_process.into(),
            Some(connection) => {
                connection.reset();
                self.silence().await
            }
        }
    }

    /// Waits until all connections end.
    async fn silence(&self) -> io::Error {
        self.connections.cancelled().await;
        io::ErrorKind::ConnectionReset.into()
    }
}

/// Applies a fault of the server as a whole.
pub(crate) fn befall(server: &ApiServer, fault: &Fault) {
    match fault {
        Fault::Compact => server.store().compact(u64::MAX),
        Fault::DropWatches => server.drop_watches(),
        Fault::Restart => server.restart(),
        Fault::Rollback { snapshot, silent: true } => server.restore_silently(snapshot),
        Fault::Rollback { snapshot, silent: false } => server.restore(snapshot),
        Fault::Down(time) => go_down(server, *time),
        _ => {}
    }
}

/// Refuses connections for a time.
fn go_down(server: &ApiServer, time: Duration) {
    server.refuse_connections();
    let shared = Arc::downgrade(&server.shared);
    tokio::spawn(async move {
        sleep(time).await;
        if let Some(shared) = shared.upgrade() {
            ApiServer { shared }.accept_connections();
        }
    });
}

/// Returns the `Status` of Kubernetes for a code.
fn status_of(code: StatusCode, retry_after: Option<&HeaderValue>) -> Status {
    let status = Status::of_code(code);
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    match seconds {
        Some(seconds) => status.retry_after(seconds),
        None => status,
    }
}

fn status_answer(
    code: StatusCode,
    retry_after: Option<&HeaderValue>,
    codec: Codec,
) -> Response<Body> {
    let mut response = failure(&status_of(code, retry_after), codec);
    if let Some(retry_after) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, retry_after.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::Empty;
    use tokio::time::timeout;
    use tower_service::Service;

    use super::*;

    /// Sends a request as a socket does, and gives up when there is no response. The effect is
    /// visible in the returned connection.
    async fn call_by_socket(fault: Fault) -> Connection {
        let server = ApiServer::start();
        server.faults().any().inject(fault);
        let connection = Connection::default();
        let mut request = Request::get("/readyz").body(Empty::new()).unwrap();
        request.extensions_mut().insert(connection.clone());
        let call = server.service_as("tester").call(request);
        assert!(timeout(Duration::from_secs(60), call).await.is_err());
        connection
    }

    /// Returns whether a future is ready.
    async fn is_done(act: impl Future) -> bool {
        timeout(Duration::ZERO, act).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn sockets_are_reset() {
        for fault in [Fault::Refused, Fault::Reset, Fault::LostAnswer] {
            let connection = call_by_socket(fault).await;
            assert!(is_done(connection.until_reset()).await);
            assert!(!is_done(connection.until_frozen()).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sockets_freeze() {
        let connection = call_by_socket(Fault::HalfOpen).await;
        assert!(is_done(connection.until_frozen()).await);
        assert!(!is_done(connection.until_reset()).await);
        let connection = call_by_socket(Fault::StalledHeaders).await;
        assert!(!is_done(connection.until_frozen()).await);
    }
}
