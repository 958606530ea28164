//! Tells watchers that there is something new, in the order in which they wait.
//!
//! `tokio::sync::watch` does the same in a random order, and a run with a seed would not repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The side that tells. Clones tell the same watchers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signal(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicU64,
    waiting: Notify,
}

/// The side that is told.
#[derive(Debug)]
pub(crate) struct Signalled {
    shared: Arc<Shared>,
    seen: u64,
}

impl Signal {
    pub(crate) fn send(&self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        self.0.waiting.notify_waiters();
    }

    /// Told of what comes from now on.
    pub(crate) fn subscribe(&self) -> Signalled {
        Signalled { shared: Arc::clone(&self.0), seen: self.0.count.load(Ordering::Acquire) }
    }
}

impl Signalled {
    /// What there was so far is no news any more.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.shared.count.load(Ordering::Acquire);
    }

    /// There is news, whatever there was.
    pub(crate) fn mark_news(&mut self) {
        self.seen = u64::MAX;
    }

    pub(crate) fn has_news(&self) -> bool {
        self.seen != self.shared.count.load(Ordering::Acquire)
    }

    /// Waits until there is news, and does not take note of it.
    pub(crate) async fn news(&self) {
        let notified = self.shared.waiting.notified();
        tokio::pin!(notified);
        // From here on nothing is missed.
        notified.as_mut().enable();
        if !self.has_news() {
            notified.await;
        }
    }
}
