//! The server on a socket: HTTP/1.1 and HTTP/2, over TLS unless told otherwise.
//!
//! # Architecture invariants
//! - Loopback only, unless asked for more.
//! - Every task runs on the listener's tracker: when it is empty, nothing is left.
//! - A connection ends in one of two ways. Orderly, by HTTP's own means; or broken, and then the peer
//!   sees a reset, as it would if the process had died.

mod accept;
mod activity;
mod host;
mod identity;
mod kubeconfig;
mod orderly;
mod socket;
mod streams;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limits::{SHUTDOWN_GRACE, VERSIONS_RESERVED};
use crate::server::{ApiServer, Shared};
use host::HostRule;
use tls::Certificates;

pub use identity::Identity;

/// Options of a socket that is about to be opened: see [`ApiServer::listener`].
#[derive(Debug, Clone)]
pub struct Listener {
    server: ApiServer,
    plain: bool,
    remote: bool,
    identity: Option<Identity>,
}

/// A socket on which the server listens. Dropping it breaks its connections;
/// [`shutdown`](Self::shutdown) is the orderly way.
pub struct Listening {
    addr: SocketAddr,
    /// None for plain HTTP.
    certificates: Option<Certificates>,
    token: String,
    reins: Arc<Reins>,
}

/// What the tasks of one listener have in common.
struct Reins {
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    host_rule: HostRule,
    /// Ends everything in an orderly way.
    closing: CancellationToken,
    /// Ends everything at once.
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ApiServer {
    /// Listens on a loopback address, with TLS. Port 0 picks a free one.
    ///
    /// ```
    /// # use embedded_apiserver::ApiServer;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let server = ApiServer::start();
    /// let listening = server.listen("127.0.0.1:0").await?;
    /// assert!(listening.url().starts_with("https://127.0.0.1:"));
    /// assert!(listening.kubeconfig().contains("certificate-authority-data"));
    /// listening.shutdown().await;
    /// # Ok(()) }
    /// ```
    pub async fn listen(&self, addr: impl ToSocketAddrs) -> io::Result<Listening> {
        self.listener().bind(addr).await
    }

    /// Options for listening, where [`listen`](Self::listen) does not do.
    ///
    /// ```
    /// # use embedded_apiserver::ApiServer;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let server = ApiServer::start();
    /// let listening = server.listener().plain(true).bind("127.0.0.1:0").await?;
    /// assert!(listening.url().starts_with("http://127.0.0.1:"));
    /// # Ok(()) }
    /// ```
    pub fn listener(&self) -> Listener {
        Listener { server: self.clone(), plain: false, remote: false, identity: None }
    }
}

impl Listener {
    /// Speaks HTTP without TLS. Clients of the Go library, kubectl among them, send no token then:
    /// let them in with [`Builder::anonymous`](crate::Builder::anonymous).
    ///
    /// Requests that a web page may have made a browser send are refused with a 403: on a loopback
    /// address those to a host other than `localhost` or a loopback address, and everywhere those with
    /// the `Origin` of another host.
    pub fn plain(mut self, plain: bool) -> Self {
        self.plain = plain;
        self
    }

    /// Lets [`bind`](Self::bind) take an address that other machines can reach.
    pub fn allow_remote(mut self, remote: bool) -> Self {
        self.remote = remote;
        self
    }

    /// Shows clients the certificate that they know from an earlier run. New ones are made if they
    /// would not take it: it is of another address, or has expired. The token is the server's: give
    /// it to [`Builder::token`](crate::Builder::token).
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Opens the socket and serves on it. Needs a tokio runtime.
    pub async fn bind(self, addr: impl ToSocketAddrs) -> io::Result<Listening> {
        let mut failure = io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on");
        for addr in lookup_host(addr).await? {
            if !self.remote && !addr.ip().is_loopback() {
                let why = format!(
                    "other machines could reach {addr}: if they should, ask for it with \
                     allow_remote(true)"
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            match accept::hold(addr) {
                Ok(socket) => return self.serve(socket),
                Err(error) => failure = in_context(addr, &error),
            }
        }
        Err(failure)
    }

    fn serve(self, socket: tokio::net::TcpSocket) -> io::Result<Listening> {
        let addr = socket.local_addr()?;
        let listener = accept::open(socket).map_err(|error| in_context(addr, &error))?;
        let (certificates, tls) = if self.plain {
            (None, None)
        } else {
            let kept = self.identity.and_then(|identity| identity.certificates);
            let (certificates, acceptor) = tls::certificates(kept, addr.ip())?;
            (Some(certificates), Some(acceptor))
        };
        let reins = Arc::new(Reins {
            shared: Arc::clone(&self.server.shared),
            host_rule: HostRule::of(tls.is_some(), addr.ip()),
            tls,
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        reins.tasks.spawn(accept::run(Arc::clone(&reins), addr, listener));
        Ok(Listening { addr, certificates, token: self.server.token().to_owned(), reins })
    }
}

impl Listening {
    /// How every kubeconfig of ours begins: who finds it in a file knows that it can be replaced.
    pub const KUBECONFIG_MARK: &str = kubeconfig::MARK;

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address for clients on this machine.
    pub fn url(&self) -> String {
        let ip = match self.addr.ip() {
            // "Every address" is none to connect to.
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(ip, self.addr.port()))
    }

    /// The certificate, in PEM, of the authority that signed the server's; none for plain HTTP.
    pub fn ca_pem(&self) -> Option<&str> {
        self.certificates.as_ref().map(|certificates| certificates.ca_pem.as_str())
    }

    /// A kubeconfig for this socket, as the administrator. It holds the token and, if only this
    /// machine can reach the socket, the server's key: see [`Identity`].
    pub fn kubeconfig(&self) -> String {
        let keep = self.addr.ip().is_loopback();
        let versions_end = self.reins.shared.store.revision().saturating_add(VERSIONS_RESERVED);
        kubeconfig::text(&self.url(), self.certificates.as_ref(), keep, &self.token, versions_end)
    }

    /// Writes [`kubeconfig`](Self::kubeconfig) to a file that only its owner may read, in place of
    /// what is there. The directory must exist.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> io::Result<()> {
        kubeconfig::write(path.as_ref(), &self.kubeconfig())
    }

    /// Stops listening: watches end as they do when they time out, requests get a moment to finish,
    /// and nothing is left running when this returns.
    pub async fn shutdown(self) {
        let reins = &self.reins;
        reins.closing.cancel();
        reins.tasks.close();
        if timeout(SHUTDOWN_GRACE, reins.tasks.wait()).await.is_err() {
            reins.stop.cancel();
            reins.tasks.wait().await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.reins.stop.cancel();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token and the key are secrets.
        f.debug_struct("Listening").field("url", &self.url()).finish_non_exhaustive()
    }
}

fn in_context(addr: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"))
}
