//! The server on a socket: HTTP/1.1 and HTTP/2, over TLS by default.
//!
//! # Architecture invariants
//! - Only loopback addresses are bound, unless remote access is allowed explicitly.
//! - Every task runs on the listener's tracker. When the tracker is empty, nothing is left running.
//! - A connection ends in one of two ways: gracefully, by the means of HTTP, or broken. The peer of
//!   a broken connection sees a reset, as if the process had died.

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
mod websocket;
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

/// The options of a socket. See [`ApiServer::listener`].
#[derive(Debug, Clone)]
pub struct Listener {
    server: ApiServer,
    plain: bool,
    remote: bool,
    identity: Option<Identity>,
}

/// A socket on which the server listens. Dropping it breaks its connections;
/// [`shutdown`](Self::shutdown) ends them gracefully.
pub struct Listening {
    addr: SocketAddr,
    /// `None` for plain HTTP.
    certificates: Option<Certificates>,
    token: String,
    reins: Arc<Reins>,
}

/// State that is shared by the tasks of a listener.
struct Reins {
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    host_rule: HostRule,
    /// Ends everything gracefully.
    closing: CancellationToken,
    /// Ends everything immediately.
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ApiServer {
    /// Listens on a loopback address, with TLS. Port 0 picks a free port.
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

    /// Configures a socket, for options that [`listen`](Self::listen) does not offer.
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
    /// Serves HTTP without TLS. client-go, and therefore kubectl, sends no token over plain HTTP:
    /// use [`Builder::anonymous`](crate::Builder::anonymous) to accept its requests.
    ///
    /// Requests that a web page could have made a browser send receive a 403. On a loopback
    /// address, these are requests to a host other than `localhost` or a loopback address. On any
    /// address, these are requests with the `Origin` of another host.
    pub fn plain(mut self, plain: bool) -> Self {
        self.plain = plain;
        self
    }

    /// Lets [`bind`](Self::bind) use an address that other machines can reach.
    pub fn allow_remote(mut self, remote: bool) -> Self {
        self.remote = remote;
        self
    }

    /// Uses the certificate of an earlier run, which clients already trust. If it does not suit the
    /// address or has expired, new certificates are generated. The token is an option of the
    /// server: see [`Builder::token`](crate::Builder::token).
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Opens the socket and serves requests. Requires a tokio runtime.
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
    /// The first line of every generated kubeconfig. It marks files that may be replaced.
    pub const KUBECONFIG_MARK: &str = kubeconfig::MARK;

    /// Returns the socket's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL for clients on this machine.
    pub fn url(&self) -> String {
        let ip = match self.addr.ip() {
            // Clients cannot connect to the unspecified address.
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(ip, self.addr.port()))
    }

    /// Returns the certificate, in PEM, of the CA that signed the server's certificate, or `None`
    /// for plain HTTP.
    pub fn ca_pem(&self) -> Option<&str> {
        self.certificates.as_ref().map(|certificates| certificates.ca_pem.as_str())
    }

    /// Returns a kubeconfig for this socket and the administrator. It contains the token and, if
    /// only this machine can reach the socket, the server's key: see [`Identity`].
    pub fn kubeconfig(&self) -> String {
        let keep = self.addr.ip().is_loopback();
        let versions_end = self.reins.shared.store.revision().saturating_add(VERSIONS_RESERVED);
        kubeconfig::text(&self.url(), self.certificates.as_ref(), keep, &self.token, versions_end)
    }

    /// Writes [`kubeconfig`](Self::kubeconfig) to a file that only its owner may read, replacing an
    /// existing one. The directory must exist.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> io::Result<()> {
        kubeconfig::write(path.as_ref(), &self.kubeconfig())
    }

    /// Stops listening. Watches end as if they had timed out, and other requests get a short time
    /// to finish. When this returns, nothing is left running.
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
