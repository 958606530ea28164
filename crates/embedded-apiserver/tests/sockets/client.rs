//! Minimal HTTP clients, each with a single connection whose end the test can observe.

use std::sync::Arc;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, Listening};
use http::header::{AUTHORIZATION, HOST};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) struct Client {
    base: String,
    pub(crate) token: Option<String>,
    sender: Sender,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    /// Connects with the administrator's token.
    pub(crate) async fn new(server: &ApiServer, listening: &Listening, version: Version) -> Self {
        let tcp = TcpStream::connect(listening.addr()).await.unwrap();
        let sender = match listening.ca_pem() {
            Some(ca) => sender(encrypted(tcp, ca, version).await.unwrap(), version).await,
            None => sender(tcp, version).await,
        };
        Self { base: listening.url(), token: Some(server.token().to_owned()), sender }
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }

    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Request<Full<Bytes>> {
        let request = Request::builder().method(method);
        let request = match self.sender {
            Sender::One(_) => request.uri(path).header(HOST, "localhost"),
            Sender::Two(_) => request.uri(format!("{}{path}", self.base)),
        };
        let request = match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        };
        request.body(Full::new(body.into())).unwrap()
    }

    pub(crate) async fn get(&mut self, path: &str) -> hyper::Result<Response<Incoming>> {
        let request = self.request(Method::GET, path, Bytes::new());
        self.send(request).await
    }

    /// Sends a GET, and returns the status and the body.
    pub(crate) async fn get_whole(&mut self, path: &str) -> (StatusCode, String) {
        let response = self.get(path).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.into()).unwrap())
    }
}

pub(crate) async fn encrypted(
    tcp: TcpStream,
    ca_pem: &str,
    version: Version,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let protocol: &[u8] = if version == Version::HTTP_2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    Ok(stream)
}

async fn sender<S>(stream: S, version: Version) -> Sender
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let stream = TokioIo::new(stream);
    if version == Version::HTTP_2 {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        Sender::Two(sender)
    } else {
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Sender::One(sender)
    }
}
