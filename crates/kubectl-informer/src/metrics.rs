//! `--metrics`: the metrics of a command's informers over HTTP, for Prometheus.
//!
//! # Architecture invariants
//! - Scrapes never wait for informers, and informers never wait for a scrape.
//! - On a loopback address, no web page of another host is answered.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_informer::{Metrics, SharedInformerFactory};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connect::Cluster;

/// The media type of the text that prometheus-client writes.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The number of connections that are served at the same time. Usually one server scrapes.
const CONNECTIONS_MAX: usize = 16;

/// The time limit for a request and its response. Prometheus gives up after ten seconds.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);

/// The pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that serves metrics until this is dropped.
pub(crate) struct Exporter {
    metrics: Metrics,
    address: SocketAddr,
    _task: JoinSet<()>,
}

impl Exporter {
    /// Opens the socket if there is an address. The error is a message for the user.
    pub(crate) async fn start_if(address: Option<SocketAddr>) -> Result<Option<Self>, String> {
        match address {
            Some(address) => Self::start(address).await.map(Some),
            None => Ok(None),
        }
    }

    async fn start(address: SocketAddr) -> Result<Self, String> {
        let cannot = |error| {
            format!(
                "--metrics {address}: cannot listen there: {error}\n\
                 give an address of this machine and a free port; port 0 picks one"
            )
        };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let mut registry = Registry::default();
        let metrics = Metrics::registered_in(&mut registry);
        let mut task = JoinSet::new();
        task.spawn(accept(listener, Arc::new(Endpoint { registry, address })));
        Ok(Self { metrics, address, _task: task })
    }

    /// Measures the requests of a cluster's client from now on.
    pub(crate) fn measure(&self, cluster: &mut Cluster) {
        let server = cluster.place.address.parse().unwrap_or_default();
        cluster.client = self.metrics.client(cluster.client.clone(), &server);
    }

    /// Adds the informers of a factory.
    pub(crate) fn add(&self, factory: &SharedInformerFactory) {
        self.metrics.factory(factory);
    }

    /// Returns the line that tells the user where the metrics are.
    pub(crate) fn notice(&self) -> String {
        format!("metrics: http://{}/metrics", self.address)
    }
}

/// Parses an address. Without a host, it is that of loopback.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = port.parse::<u16>();
    let loopback = matches!(host, "" | "localhost").then_some(IpAddr::from(Ipv4Addr::LOCALHOST));
    let address = match (loopback, port) {
        (Some(ip), Ok(port)) => Some(SocketAddr::new(ip, port)),
        _ => text.parse().ok(),
    };
    address.ok_or_else(|| "give an address and a port, such as 127.0.0.1:9090".to_owned())
}

async fn accept(listener: TcpListener, endpoint: Arc<Endpoint>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        let Ok((socket, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let endpoint = endpoint.clone();
        connections.spawn(async move {
            serve(socket, endpoint).await;
            drop(place);
        });
    }
}

async fn serve(socket: TcpStream, endpoint: Arc<Endpoint>) {
    let service = service_fn(move |request| {
        let response = endpoint.respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Idle connections would occupy places.
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), service);
    // A broken or slow connection concerns only its client.
    let _ = timeout(CONNECTION_TIME_MAX, connection).await;
}

/// The responses of the socket.
struct Endpoint {
    registry: Registry,
    address: SocketAddr,
}

impl Endpoint {
    fn respond<B>(&self, request: &Request<B>) -> Response<String> {
        if !is_allowed(request.headers(), request.uri(), self.address.ip()) {
            let text = "This host or origin is not allowed: use localhost or 127.0.0.1.\n";
            return refusal(StatusCode::FORBIDDEN, text);
        }
        if request.uri().path() != "/metrics" {
            return refusal(StatusCode::NOT_FOUND, "There is only /metrics here.\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = refusal(StatusCode::METHOD_NOT_ALLOWED, "Only GET is possible.\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            let text = "The metrics could not be encoded.\n";
            return refusal(StatusCode::INTERNAL_SERVER_ERROR, text);
        }
        let mut response = Response::new(text);
        response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
        response
    }
}

fn refusal(code: StatusCode, text: &str) -> Response<String> {
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Returns whether a request may be answered. A web page can make a browser send requests to loopback addresses; the name
/// by which it reaches them (DNS rebinding), or its origin, gives it away. The names of a machine that others can reach are
/// not known here.
fn is_allowed(headers: &HeaderMap, uri: &Uri, listening: IpAddr) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (uri.authority(), hosts.next()) {
        (Some(authority), None) => Some(authority.clone()),
        (None, Some(header)) => Authority::try_from(header.as_bytes()).ok(),
        (Some(authority), Some(header)) => {
            Some(authority.clone()).filter(|authority| authority.as_str() == header)
        }
        (None, None) => None,
    };
    let Some(host) = host.filter(|_| hosts.next().is_none()) else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let own = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host.as_str()))
    };
    (is_loopback || !listening.is_loopback()) && headers.get_all(ORIGIN).iter().all(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:9090";

    fn respond(listening: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut registry = Registry::default();
        Metrics::registered_in(&mut registry);
        let endpoint = Endpoint { registry, address: listening.parse().unwrap() };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        endpoint.respond(&request.body(()).unwrap()).status().as_u16()
    }

    #[test]
    fn addresses_without_a_host_are_of_loopback() {
        for (text, expected) in [
            ("127.0.0.1:9090", "127.0.0.1:9090"),
            (":0", "127.0.0.1:0"),
            ("9090", "127.0.0.1:9090"),
            ("localhost:9090", "127.0.0.1:9090"),
            ("[::1]:9090", "[::1]:9090"),
            ("0.0.0.0:9090", "0.0.0.0:9090"),
        ] {
            assert_eq!(address(text), Ok(expected.parse().unwrap()), "{text}");
        }
        for text in ["", ":", "x", "127.0.0.1", "host:9090", "127.0.0.1:99999", "::1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_metrics_are_served() {
        let host = [("host", "localhost:9090")];
        assert_eq!(respond(LOOPBACK, "GET", "/metrics", &host), 200);
        assert_eq!(respond(LOOPBACK, "HEAD", "/metrics?x=y", &host), 200);
        assert_eq!(respond(LOOPBACK, "POST", "/metrics", &host), 405);
        for path in ["/", "/metrics/", "/metricsx", "/../metrics", "//metrics"] {
            assert_eq!(respond(LOOPBACK, "GET", path, &host), 404, "{path}");
        }
    }

    #[test]
    fn other_hosts_and_origins_are_refused_on_loopback() {
        let with = |headers: &[(&str, &str)]| respond(LOOPBACK, "GET", "/metrics", headers);
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:9090", "[::1]:9090", "127.8.0.1"] {
            assert_eq!(with(&[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.nip.io", "10.0.0.1", "", "a b", "localhost@evil"] {
            assert_eq!(with(&[("host", host)]), 403, "{host}");
        }
        assert_eq!(with(&[]), 403);
        assert_eq!(with(&[("host", "localhost"), ("host", "evil.example")]), 403);
        let from = |origin| with(&[("host", "localhost:9090"), ("origin", origin)]);
        assert_eq!(from("http://localhost:9090"), 200);
        for origin in ["http://localhost:1", "http://evil.example", "null", ""] {
            assert_eq!(from(origin), 403, "{origin}");
        }
    }

    #[test]
    fn any_host_is_accepted_where_others_can_connect() {
        let with = |headers: &[(&str, &str)]| respond("10.0.0.1:9090", "GET", "/metrics", headers);
        assert_eq!(with(&[("host", "node-1.example:9090")]), 200);
        let foreign = [("host", "node-1.example:9090"), ("origin", "http://evil.example")];
        assert_eq!(with(&foreign), 403);
    }
}
