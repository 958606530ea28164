//! What ends the tool from outside.

use tokio::signal;

/// Ctrl-C and SIGTERM, from now on.
pub(crate) struct Stop {
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
    #[cfg(unix)]
    terminate: signal::unix::Signal,
}

#[cfg(unix)]
impl Stop {
    pub(crate) fn new() -> Result<Self, String> {
        use signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|error| format!("cannot handle signals: {error}"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Stop {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self {})
    }

    pub(crate) async fn requested(&mut self) {
        // Without signals, the process is ended by other means.
        if signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
