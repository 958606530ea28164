//! Signals that stop the tool.

use tokio::signal;

use crate::terminal;

/// The exit code that shells use for a program that SIGINT has ended.
#[cfg(unix)]
const INTERRUPTED: i32 = 130;

/// A receiver of Ctrl-C and SIGTERM, which listens from its creation on.
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
            // A user who presses Ctrl-C twice does not want to wait, for example for a pipe that is
            // not being read.
            again.recv().await;
            again.recv().await;
            terminal::leave();
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
        // If signals are not available, the process is ended by other means.
        if signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
