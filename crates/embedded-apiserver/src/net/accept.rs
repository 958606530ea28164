//! The listening socket: opened, closed while connections are refused, and opened again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, sleep};

use super::{Reins, wire};
use crate::connection::Connection;
use crate::limits::CONNECTIONS_MAX;

/// Connections that the operating system holds until they are accepted.
const BACKLOG: u32 = 1024;

/// Time to the next try when the operating system has no more sockets, or another process has taken
/// the port.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Takes the port, without listening: who connects is refused, and nobody else is given the port.
pub(super) fn hold(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier listener that wait for their last packets do not hold the port. On
    // Windows the same option would let two servers listen on it.
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
        // Connections that were not accepted yet are reset by this.
        drop(listener);
        listener = reopen(reins, addr).await;
    }
}

/// Opens the socket again, when connections are let in again.
async fn reopen(reins: &Reins, addr: SocketAddr) -> TcpListener {
    let mut accepting = reins.shared.accepting.subscribe();
    let mut held = hold(addr);
    // The sender lives as long as the server, which is ours too.
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
    // Nobody closes the semaphore.
    while let Ok(permit) = Arc::clone(permits).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => spawn(reins, stream, permit),
            // A connection that was gone before it was accepted, or no more files to open: the former
            // is of no interest, the latter would be back at once.
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
