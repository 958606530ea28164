//! Connections as the configuration asks for them: TCP, proxies, TLS.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_core::future::BoxFuture;
use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::builderstates::WantsProtocols1;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use kube_client::client::{ConfigExt, RustlsTlsError};
use kube_client::{Config, Error, Result};
use percent_encoding::percent_decode_str;
use tokio::time::timeout;
use tower_service::Service;

use super::pool::{ANSWER_WAIT_MAX, Dial, QUIET_MAX};
use crate::BoxError;

/// Number of unanswered TCP probes that end a connection. Together they take as long as the response to a ping
/// may.
const PROBES: u32 = 3;

/// HTTP/1 connections, with the configured timeouts.
pub(super) type Timed = TimeoutConnector<HttpsConnector<Net>>;

/// Connectors for each protocol.
pub(super) struct Connectors {
    pub(super) http1: Timed,
    /// `None` without TLS.
    pub(super) http2: Option<Dial>,
}

impl Connectors {
    pub(super) fn new(config: &Config) -> Result<Self> {
        let net = Net::new(config)?;
        let tls = config.rustls_client_config()?;
        let over_tls = || {
            let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone());
            with_server_name(builder.https_or_http(), config.tls_server_name.as_deref())
        };
        let mut http1 =
            TimeoutConnector::new(over_tls()?.enable_http1().wrap_connector(net.clone()));
        http1.set_connect_timeout(config.connect_timeout);
        http1.set_read_timeout(config.read_timeout);
        http1.set_write_timeout(config.write_timeout);
        http1.set_reset_reader_on_write(config.reset_reader_on_write);
        let http2 = if config.cluster_url.scheme() == Some(&Scheme::HTTPS) {
            Some(dial(over_tls()?.enable_all_versions().wrap_connector(net), config))
        } else {
            None
        };
        Ok(Self { http1, http2 })
    }
}

/// Sets the name that the certificate must have, if it is not the host's.
fn with_server_name(
    https: HttpsConnectorBuilder<WantsProtocols1>,
    name: Option<&str>,
) -> Result<HttpsConnectorBuilder<WantsProtocols1>> {
    let Some(name) = name else { return Ok(https) };
    let name = name.to_owned().try_into().map_err(RustlsTlsError::InvalidServerName);
    let resolver = FixedServerNameResolver::new(name.map_err(Error::RustlsTls)?);
    Ok(https.with_server_name_resolver(resolver))
}

fn dial(https: HttpsConnector<Net>, config: &Config) -> Dial {
    let (server, wait) = (config.cluster_url.clone(), config.connect_timeout);
    Box::new(move || {
        let connecting = connected(https.clone(), server.clone());
        Box::pin(async move {
            let stream = match wait {
                Some(wait) => timeout(wait, connecting)
                    .await
                    .map_err(|elapsed| io::Error::new(io::ErrorKind::TimedOut, elapsed))??,
                None => connecting.await?,
            };
            let agreed = stream.connected().is_negotiated_h2();
            Ok(agreed.then(|| Box::new(stream) as _))
        })
    })
}

async fn connected<C>(mut connector: C, uri: Uri) -> Result<C::Response, BoxError>
where
    C: Service<Uri>,
    C::Error: Into<BoxError>,
{
    poll_fn(|cx| connector.poll_ready(cx)).await.map_err(Into::into)?;
    connector.call(uri).await.map_err(Into::into)
}

/// The route to the server, direct or through a proxy. A single type, so that the code above is compiled once.
#[derive(Clone)]
pub(super) struct Net(Arc<dyn Fn(Uri) -> Connecting + Send + Sync>);

type Connecting = BoxFuture<'static, Result<Stream, BoxError>>;

impl Net {
    fn new(config: &Config) -> Result<Self> {
        let tcp = tcp();
        let Some(proxy) = &config.proxy_url else { return Ok(Self::over(tcp)) };
        match proxy.scheme_str() {
            Some("socks5") => Ok(Self::over(SocksV5::new(proxy.clone(), tcp))),
            Some("http") => Ok(Self::over(tunnel(proxy, tcp))),
            Some("https") => {
                let tls = config.rustls_https_connector_with_connector(tcp)?;
                Ok(Self::over(tunnel(proxy, tls)))
            }
            _ => Err(Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) }),
        }
    }

    fn over<C>(connector: C) -> Self
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Socket,
        C::Error: Into<BoxError>,
        C::Future: Send,
    {
        Self(Arc::new(move |uri| {
            let connecting = connected(connector.clone(), uri);
            Box::pin(async move { Ok(Stream(Box::new(connecting.await?))) })
        }))
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(QUIET_MAX));
    tcp.set_keepalive_interval(Some(ANSWER_WAIT_MAX / PROBES));
    tcp.set_keepalive_retries(Some(PROBES));
    tcp
}

/// Connects through an HTTP proxy, with the credentials in its address.
fn tunnel<C>(proxy: &Uri, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let user = proxy.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    let Some((user, _)) = user else { return tunnel };
    let user = percent_decode_str(user).collect::<Vec<u8>>();
    let header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(user)));
    match header {
        Ok(header) => tunnel.with_auth(header),
        Err(_) => tunnel,
    }
}

impl Service<Uri> for Net {
    type Response = Stream;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        (self.0)(uri)
    }
}

/// A connection, as connectors return it.
trait Socket: Read + Write + Connection + Send + Unpin + 'static {}
impl<S: Read + Write + Connection + Send + Unpin + 'static> Socket for S {}

/// A connection over any route.
pub(super) struct Stream(Box<dyn Socket>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
