//! Wakes watchers in the order in which they wait.
//!
//! `tokio::sync::watch` wakes them in a random order, which would make seeded runs differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The sender. Clones wake the same watchers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signal(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicU64,
    waiting: Notify,
}

/// The receiver.
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

    /// Subscribes to future signals.
    pub(crate) fn subscribe(&self) -> Signalled {
        Signalled { shared: Arc::clone(&self.0), seen: self.0.count.load(Ordering::Acquire) }
    }
}

impl Signalled {
    /// Marks all signals so far as seen.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.shared.count.load(Ordering::Acquire);
    }

    /// Marks the receiver as signalled, even if it is not.
    pub(crate) fn mark_news(&mut self) {
        self.seen = u64::MAX;
    }

    pub(crate) fn has_news(&self) -> bool {
        self.seen != self.shared.count.load(Ordering::Acquire)
    }

    /// Waits for a signal without marking it as seen.
    pub(crate) async fn news(&self) {
        let notified = self.shared.waiting.notified();
        tokio::pin!(notified);
        // No signal is missed from here on.
        notified.as_mut().enable();
        if !self.has_news() {
            notified.await;
        }
    }
}
