//! A proxy to the server that can be closed, while other clients still reach the server.

use std::net::Ipv4Addr;

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Forwards connections to the server while it is open.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Gate {
    pub(crate) async fn to(server: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (open, seen) = watch::channel(true);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *seen.borrow() {
                    tokio::spawn(forward(client, server, seen.clone()));
                }
            }
        });
        Ok(Self { port, open, task })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections; new ones are cut at once.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Accepts connections again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards until one side ends, or until the gate is closed or dropped.
async fn forward(mut client: TcpStream, server: u16, mut open: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else { return };
    tokio::select! {
        biased;
        _ = open.wait_for(|open| !open) => {}
        // However it ended, both sides are closed now.
        _ = copy_bidirectional(&mut client, &mut server) => {}
    }
}
