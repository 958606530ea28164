//! A TLS proxy in front of a plain server, which offers the protocols that a test wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use embedded_apiserver::Listening;
use kube::Config;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

pub(crate) const HTTP1: &str = "http/1.1";
pub(crate) const HTTP2: &str = "h2";

pub(crate) struct Front {
    address: SocketAddr,
    certificate: Vec<u8>,
    agreed: Arc<Mutex<Vec<Option<String>>>>,
    _tasks: JoinSet<()>,
}

impl Front {
    /// Starts it with a certificate for that host.
    pub(crate) async fn start(server: SocketAddr, offered: &[&str], host: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new([host.to_owned()]).unwrap().self_signed(&key).unwrap();
        let certificate = certificate.der().clone();
        let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
        tls.alpn_protocols = offered.iter().map(|offered| offered.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let agreed = Arc::new(Mutex::new(Vec::new()));
        let noted = agreed.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connected = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (acceptor, noted) = (acceptor.clone(), noted.clone());
                connected.spawn(async move {
                    // Some clients reject the certificate.
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let agreed = client.get_ref().1.alpn_protocol();
                    let agreed = agreed.map(|agreed| String::from_utf8(agreed.to_vec()).unwrap());
                    noted.lock().unwrap().push(agreed);
                    let mut server = TcpStream::connect(server).await.unwrap();
                    // Either side may close it in any way.
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, certificate: certificate.to_vec(), agreed, _tasks: tasks }
    }

    /// Returns a configuration that trusts it.
    pub(crate) async fn config(&self, behind: &Listening) -> Config {
        let mut config = crate::config(behind, &format!("https://{}", self.address)).await;
        config.root_cert = Some(vec![self.certificate.clone()]);
        config
    }

    /// Returns the protocol of each connection, in order.
    pub(crate) fn agreed(&self) -> Vec<Option<String>> {
        self.agreed.lock().unwrap().clone()
    }
}
