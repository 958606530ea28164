//! The listening socket: opened, closed while connections are refused, and reopened.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, sleep};

use super::{Reins, wire};
use crate::connection::Connection;
use crate::limits::CONNECTIONS_MAX;

/// The number of connections that the operating system queues until they are accepted.
const BACKLOG: u32 = 1024;

/// The delay before the next attempt if the operating system has run out of sockets, or another
/// process has taken the port.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Reserves the port without listening: connections are refused, and no other process can take the
/// port.
pub(super) fn hold(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier listener in TIME_WAIT do not block the port. On Windows, the same
    // option would let two servers listen on it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

pub(super) fn open(socket: TcpSocket) -> io::Result<TcpListener> {
    socket.listen(BACKLOG)
}

/// Accepts connections until the listener ends.
pub(super) async fn run(reins: Arc<Reins>, addr: SocketAddr, first: TcpListener) {
    let ended = async {
        tokio::select! {
            () = reins.closing.cancelled() => {}
            () = reins.stop.cancelled() => {}
        }
    };
    tokio::select! {
        () = ended => {}
        () = listen_and_refuse(&reins, addr, first) => {}
    }
}

async fn listen_and_refuse(reins: &Arc<Reins>, addr: SocketAddr, first: TcpListener) {
    let mut accepting = reins.shared.accepting.subscribe();
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut listener = first;
    loop {
        tokio::select! {
            biased;
            _ = accepting.wait_for(|accepting| !accepting) => {}
            () = accept(reins, &listener, &permits) => {}
        }
        // This resets connections that were not accepted yet.
        drop(listener);
        listener = reopen(reins, addr).await;
    }
}

/// Reopens the socket when connections are accepted again.
async fn reopen(reins: &Reins, addr: SocketAddr) -> TcpListener {
    let mut accepting = reins.shared.accepting.subscribe();
    let mut held = hold(addr);
    // The sender lives as long as the server, which `reins` keeps alive.
    let _ = accepting.wait_for(|accepting| *accepting).await;
    loop {
        match held.and_then(open) {
            Ok(listener) => return listener,
            Err(error) => tracing::warn!(%addr, %error, "cannot listen again yet"),
        }
        sleep(RETRY_AFTER).await;
        held = hold(addr);
    }
}

async fn accept(reins: &Arc<Reins>, listener: &TcpListener, permits: &Arc<Semaphore>) {
    // The semaphore is never closed.
    while let Ok(permit) = Arc::clone(permits).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => spawn(reins, stream, permit),
            // Either the connection was gone before it was accepted, or no file descriptors are
            // left. The former can be ignored; the latter would recur immediately.
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(RETRY_AFTER).await;
            }
        }
    }
}

fn spawn(reins: &Arc<Reins>, stream: TcpStream, permit: OwnedSemaphorePermit) {
    let served = wire::serve(Arc::clone(reins), stream, Connection::default());
    reins.tasks.spawn(async move {
        served.await;
        drop(permit);
    });
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
