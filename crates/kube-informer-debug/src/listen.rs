//! A socket for the page, for programs that have no web server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};
use tower_service::Service as _;

use crate::DebugPage;
use crate::pulse::LATE_MAX;

/// The number of connections that are served at the same time. A page has one for its messages, and few others.
const CONNECTIONS_MAX: usize = 64;

/// The time that a client has for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// The pause after a connection could not be accepted, for example because there are too many files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A page that is served on a socket, until this is dropped.
pub struct Listening {
    page: DebugPage,
    address: SocketAddr,
    #[expect(dead_code, reason = "held, not read: the task ends with it")]
    task: JoinSet<()>,
}

impl DebugPage {
    /// Serves the page on a socket of its own. Port 0 picks a free port; [`Listening::url`] is what a person opens.
    ///
    /// Only loopback addresses are accepted, because there is no TLS.
    ///
    /// ```
    /// # use embedded_apiserver::ApiServer;
    /// # use kube_informer::SharedInformerFactory;
    /// use kube_informer_debug::DebugPage;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// # let factory = SharedInformerFactory::new(ApiServer::start().client());
    /// let page = DebugPage::new(&factory).listen("127.0.0.1:0").await?;
    /// println!("debug page: {}", page.url()); // http://127.0.0.1:41233/?token=…
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the address is not a loopback address, or the socket cannot be opened.
    pub async fn listen(self, address: impl ToSocketAddrs) -> io::Result<Listening> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
        if let Some(other) = addresses.iter().find(|address| !address.ip().is_loopback()) {
            let text = format!(
                "{other} is not a loopback address: mount the page in a server with TLS instead"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let listener = TcpListener::bind(&*addresses).await?;
        let address = listener.local_addr()?;
        let mut task = JoinSet::new();
        task.spawn(accept(listener, self.clone()));
        Ok(Listening { page: self, address, task })
    }
}

impl Listening {
    /// Returns the address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the page, with its token.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.page.path_and_token())
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, page: DebugPage) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let page = page.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| page.clone().call(request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
            // An error is the end of a connection, which is the client's business.
            let _ = http.serve_connection(TokioIo::new(Impatient::new(socket)), service).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A socket that fails if the other side takes nothing for too long.
struct Impatient {
    socket: TcpStream,
    /// The time at which a write that waits fails.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(socket: TcpStream) -> Self {
        Self { socket, deadline: None }
    }

    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + LATE_MAX)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.limited(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
