//! The hold that a request has on the connection it came by, for the faults that strike connections.

use tokio_util::sync::CancellationToken;

/// One connection. A socket's task puts it into the extensions of each request and acts on it; a
/// request in process has none, and suffers the same by itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    reset: CancellationToken,
    freeze: CancellationToken,
}

impl Connection {
    /// Breaks it: the peer sees a reset.
    pub(crate) fn reset(&self) {
        self.reset.cancel();
    }

    /// Whether it was broken.
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.is_cancelled()
    }

    /// Falls silent both ways, without an end.
    pub(crate) fn freeze(&self) {
        self.freeze.cancel();
    }

    /// Until [`reset`](Self::reset).
    pub(crate) async fn until_reset(&self) {
        self.reset.cancelled().await;
    }

    /// Until [`freeze`](Self::freeze).
    pub(crate) async fn until_frozen(&self) {
        self.freeze.cancelled().await;
    }
}
