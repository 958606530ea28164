//! What ends the tool from outside.

use tokio::signal;

/// As shells have it for a program that SIGINT has ended.
#[cfg(unix)]
const INTERRUPTED: i32 = 130;

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
        let mut again = listen(SignalKind::interrupt())?;
        tokio::spawn(async move {
            // Whoever presses Ctrl-C twice does not want to wait, for a pipe that nobody reads perhaps.
            again.recv().await;
            again.recv().await;
            std::process::exit(INTERRUPTED);
        });
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
