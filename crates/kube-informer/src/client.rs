//! A client whose connections are few, and are noticed when they die: HTTP/2 where the server speaks it.
//!
//! Requests pass kube's own layers (base URI, credentials, headers) and then a [`Transport`], which is
//! all that differs from `kube::Client::try_from`.
//!
//! # Architecture invariants
//! - No request waits for a place on a connection that is full: another connection is made.
//! - A connection carries no more than the server allows, and than its window has room for.

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

/// A `kube::Client` that informers share well: over HTTP/2 where the server offers it.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let config = kube::Config::infer().await?;
/// let factory = kube_informer::SharedInformerFactory::new(kube_informer::client(config)?);
/// # Ok(()) }
/// ```
///
/// It is kube's client in everything that the configuration says: credentials and their renewal, TLS,
/// proxies, impersonation, headers. It differs in how it connects, which is as client-go does:
///
/// - Up to a hundred requests share an HTTP/2 connection, less if the server allows less. kube's client
///   opens an HTTP/1 connection for each watch.
/// - A connection on which nothing came for 30 seconds is pinged. Without an answer for 15 more it is
///   given up, and its watches are resumed on another. HTTP/1 connections have TCP keepalive with the same
///   times.
/// - Answers of 429, 503 and 504 are not retried below the informer, which does that itself and reports
///   them, whatever [`Config::default_retry`] says.
/// - Nothing is compressed. [`Config::read_timeout`] and [`Config::write_timeout`] are those of HTTP/1
///   connections; on HTTP/2 connections pings take their place.
///
/// Where a server does not offer HTTP/2, without TLS, and for requests that upgrade their connection
/// (`exec`, `attach`, `port-forward`), it speaks HTTP/1.
///
/// Like `Client::try_from` it runs the credentials plugin of a kubeconfig, if that names one, and must be
/// called within a tokio runtime. It uses the crypto provider that kube would: with the feature `ring` or
/// `aws-lc-rs` of kube, or one that the program installs.
///
/// Available with the feature `client`. Informers work with any other `kube::Client` as well.
pub fn client(mut config: Config) -> kube_client::Result<Client> {
    install_crypto_provider();
    let auth = config.auth_layer()?;
    let valid_until = if auth.is_some() {
        // A plugin that gives tokens need not be run again to learn that it gives no certificate.
        config.auth_info.exec = None;
        None
    } else if config.auth_info.exec.is_some() {
        // It gives a certificate, and kube tells only its own client when that expires. That client connects to
        // nothing, and may have been built without proxies.
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

/// Where several are compiled in, rustls panics unless one is installed. kube installs the one that its
/// features name, but only on the way to a client of its own.
fn install_crypto_provider() {
    let mut config = Config::new(Uri::from_static("http://localhost"));
    // No roots, so that those of the system are not read for nothing.
    config.root_cert = Some(Vec::new());
    let _ = ClientBuilder::try_from(config);
}

/// Sends requests, over whichever protocol the server speaks.
#[derive(Clone)]
struct Transport {
    http1: legacy::Client<Timed, Body>,
    /// None without TLS, where nothing tells what the server speaks.
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
        // HTTP/2 connections cannot be made into something else.
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

/// The span that kube's client has for a request.
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
