//! A client with few connections, which detects dead ones: HTTP/2 if the server supports it.
//!
//! Requests pass through kube's own layers (base URI, credentials, headers) and then a [`Transport`], which is
//! the only difference from `kube::Client::try_from`.
//!
//! # Architecture invariants
//! - No request waits for room on a full connection: another connection is opened.
//! - A connection carries no more requests than the server allows, and than its window has room
//!   for.

mod connect;
mod held;
mod pool;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::future::BoxFuture;
use http::header::UPGRADE;
use http::{Request, Response, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::{Body, ClientBuilder, ConfigExt};
use kube_client::{Client, Config};
use tower_service::Service;
use tracing::field::Empty;
use tracing::{Instrument, Span, debug_span};

use crate::BoxError;
use connect::{Connectors, Timed};
use held::Held;
use pool::Pool;

/// Builds a `kube::Client` that suits informers: HTTP/2 if the server supports it.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let config = kube::Config::infer().await?;
/// let factory = kube_informer::SharedInformerFactory::new(kube_informer::client(config)?);
/// # Ok(()) }
/// ```
///
/// It follows the configuration as kube's client does: credentials and their renewal, TLS, proxies,
/// impersonation, headers. It differs in how it connects, which is how client-go connects:
///
/// - Up to a hundred requests share an HTTP/2 connection, or fewer if the server allows fewer. kube's client
///   opens an HTTP/1 connection for each watch.
/// - A connection that has been silent for 30 seconds is pinged. If there is no response for another 15
///   seconds, it is closed and its watches are resumed on another one. HTTP/1 connections use TCP keepalive
///   with the same times.
/// - Responses of 429, 503 and 504 are not retried by the client, whatever [`Config::default_retry`] says: the
///   informer retries them itself, and reports them.
/// - Nothing is compressed. [`Config::read_timeout`] and [`Config::write_timeout`] apply only to HTTP/1
///   connections; HTTP/2 connections use pings instead.
///
/// It uses HTTP/1 if the server does not support HTTP/2, without TLS, and for requests that upgrade their
/// connection (`exec`, `attach`, `port-forward`).
///
/// Like `Client::try_from`, it runs the kubeconfig's credential plugin, if there is one, and must be called
/// within a Tokio runtime. It uses the same crypto provider as kube: that of kube's feature `ring` or
/// `aws-lc-rs`, or one that the program installs.
///
/// Available with the feature `client`. Informers work with any other `kube::Client` as well.
pub fn client(mut config: Config) -> kube_client::Result<Client> {
    install_crypto_provider();
    let auth = config.auth_layer()?;
    let valid_until = if auth.is_some() {
        // A plugin that returns tokens need not run again to learn that it returns no certificate.
        config.auth_info.exec = None;
        None
    } else if config.auth_info.exec.is_some() {
        // The plugin returns a certificate, whose expiry kube passes only to its own client. That client opens
        // no connection, and may have been built without proxy support.
        let mut kubes = config.clone();
        kubes.proxy_url = None;
        *Client::try_from(kubes)?.valid_until()
    } else {
        None
    };
    let builder = ClientBuilder::new(Transport::new(&config)?, config.default_namespace.as_str())
        .with_valid_until(valid_until)
        .with_layer(&config.extra_headers_layer()?);
    let base = config.base_uri_layer();
    Ok(match auth {
        Some(auth) => builder.with_layer(&auth).with_layer(&base).build(),
        None => builder.with_layer(&base).build(),
    })
}

/// Installs the crypto provider that kube's features select, which kube does only when it builds a client of
/// its own. If several are compiled in, rustls panics unless one is installed.
fn install_crypto_provider() {
    let mut config = Config::new(Uri::from_static("http://localhost"));
    // No root certificates, to avoid reading those of the system.
    config.root_cert = Some(Vec::new());
    let _ = ClientBuilder::try_from(config);
}

/// Sends requests over the protocol that the server supports.
#[derive(Clone)]
struct Transport {
    http1: legacy::Client<Timed, Body>,
    /// `None` without TLS, where the protocol cannot be negotiated.
    http2: Option<Arc<Pool>>,
}

impl Transport {
    fn new(config: &Config) -> kube_client::Result<Self> {
        let Connectors { http1, http2 } = Connectors::new(config)?;
        let http1 = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(http1);
        let http2 = http2.map(Pool::new);
        Ok(Self { http1, http2 })
    }

    async fn send(self, mut request: Request<Body>) -> Result<Response<Held>, BoxError> {
        // HTTP/2 connections cannot be upgraded.
        let pool = self.http2.filter(|_| !request.headers().contains_key(UPGRADE));
        if let Some(pool) = pool {
            while let Some(slot) = pool.slot().await? {
                match slot.send(request).await {
                    Ok(response) => return Ok(response),
                    Err(failure) => request = failure.unsent()?,
                }
            }
        }
        Ok(self.http1.request(request).await?.map(Held::free))
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Held>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let span = span(&request);
        let sent = self.clone().send(request);
        let recorded = async move {
            let response = sent.await?;
            Span::current().record("http.status_code", response.status().as_u16());
            Ok(response)
        };
        Box::pin(recorded.instrument(span))
    }
}

/// Creates the span that kube's client has for a request.
fn span(request: &Request<Body>) -> Span {
    debug_span!(
        "HTTP",
        http.method = %request.method(),
        http.url = %request.uri(),
        http.status_code = Empty,
        otel.name = request.extensions().get::<&'static str>().unwrap_or(&"HTTP"),
        otel.kind = "client",
    )
}
