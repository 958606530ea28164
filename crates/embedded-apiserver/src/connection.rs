//! A handle to the connection of a request, for faults that affect connections.

use tokio_util::sync::CancellationToken;

/// A connection. The socket's task adds it to the extensions of each request and acts on it. An
/// in-process request has none, and simulates the effect.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    reset: CancellationToken,
    freeze: CancellationToken,
}

impl Connection {
    /// Breaks the connection: the peer sees a reset.
    pub(crate) fn reset(&self) {
        self.reset.cancel();
    }

    /// Returns whether the connection was broken.
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.is_cancelled()
    }

    /// Makes the connection silent in both directions, without ending it.
    pub(crate) fn freeze(&self) {
        self.freeze.cancel();
    }

    /// Waits for [`reset`](Self::reset).
    pub(crate) async fn until_reset(&self) {
        self.reset.cancelled().await;
    }

    /// Waits for [`freeze`](Self::freeze).
    pub(crate) async fn until_frozen(&self) {
        self.freeze.cancelled().await;
    }
}
