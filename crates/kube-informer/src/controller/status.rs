//! The status of a running controller, and the handle that reads it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::measure::{Count, Histogram, RECONCILE_SECONDS};
use crate::workqueue::QueueStatus;
use crate::{ConsistencyStore, WorkQueue};

/// Observes and stops a controller while it [runs](crate::Controller::run). Cheap to clone.
#[derive(Clone)]
pub struct ControllerHandle(Arc<Shared>);

impl ControllerHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Returns a summary of the controller's state.
    pub fn status(&self) -> ControllerStatus {
        self.0.status()
    }

    /// Returns the queue, to add keys from elsewhere.
    pub fn queue(&self) -> &WorkQueue {
        &self.0.queue
    }

    /// Reads the controller for metrics for as long as it exists.
    #[cfg(feature = "metrics")]
    pub(crate) fn reader<R>(
        &self,
        read: impl Fn(ControllerStatus, &Histogram) -> R + Send + Sync + 'static,
    ) -> impl Fn() -> Option<R> + Send + Sync + 'static {
        let shared = Arc::downgrade(&self.0);
        move || {
            let shared = shared.upgrade()?;
            Some(read(shared.status(), &shared.reconcile_time))
        }
    }

    /// Stops the controller, as [`stop_on`](crate::Controller::stop_on) does.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }
}

impl fmt::Debug for ControllerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControllerHandle").field(&self.status()).finish()
    }
}

/// A summary of a controller, for readiness probes and debug pages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The controller's name.
    pub name: Arc<str>,
    /// Its current phase.
    pub phase: Phase,
    /// Number of keys that can be reconciled concurrently; `queue.running` says how many are at the
    /// moment.
    pub workers: usize,
    /// Numbers of keys that are ready, delayed and running, and the longest-running key.
    pub queue: QueueStatus,
    /// Number of successful reconciles.
    pub succeeded: u64,
    /// Number of them that asked to be called again after a time.
    pub requeued: u64,
    /// Number of failed reconciles of any kind.
    pub failed: u64,
    /// Number of them that returned a [`Terminal`](super::Terminal) error.
    pub terminal: u64,
    /// Number of them that panicked.
    pub panicked: u64,
    /// Number of them that timed out.
    pub timed_out: u64,
    /// Number of times that a key had to wait because a cache did not include a write for it.
    pub waited_for_cache: u64,
    /// Number of times that this took too long, so that the key was reconciled anyway.
    pub behind: u64,
}

/// The phases of a controller's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// Not started.
    Idle,
    /// Waiting until its caches have synced.
    Syncing,
    /// Waiting until this process leads. Its caches have synced, and its queue fills.
    Standby,
    /// Reconciling.
    Running,
    /// Stopped permanently.
    Stopped,
}

impl Phase {
    const ALL: [Self; 5] = [Self::Idle, Self::Syncing, Self::Standby, Self::Running, Self::Stopped];
}

/// State shared by the handle and the loop.
pub(super) struct Shared {
    name: OnceLock<Arc<str>>,
    default_name: Arc<str>,
    pub(super) queue: WorkQueue,
    pub(super) stop: CancellationToken,
    pub(super) writes: Arc<ConsistencyStore>,
    pub(super) workers: AtomicUsize,
    phase: AtomicUsize,
    pub(super) counts: Counts,
    pub(super) reconcile_time: Histogram,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) succeeded: Count,
    pub(super) requeued: Count,
    pub(super) failed: Count,
    pub(super) terminal: Count,
    pub(super) panicked: Count,
    pub(super) timed_out: Count,
    pub(super) waited_for_cache: Count,
    pub(super) behind: Count,
}

impl Shared {
    pub(super) fn new(default_name: &str) -> Self {
        Self {
            name: OnceLock::new(),
            default_name: default_name.into(),
            queue: WorkQueue::undecided(),
            stop: CancellationToken::new(),
            writes: Arc::default(),
            workers: AtomicUsize::new(0),
            phase: AtomicUsize::new(0),
            counts: Counts::default(),
            reconcile_time: Histogram::new(RECONCILE_SECONDS),
        }
    }

    pub(super) fn set_name(&self, name: &str) {
        let _ = self.name.set(name.into());
    }

    pub(super) fn name(&self) -> Arc<str> {
        self.name.get().unwrap_or(&self.default_name).clone()
    }

    /// Returns the name of the handlers that fill its queue.
    pub(super) fn handler_name(&self) -> String {
        format!("controller {}", self.name())
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as usize, Ordering::Relaxed);
    }

    fn status(&self) -> ControllerStatus {
        let counts = &self.counts;
        ControllerStatus {
            name: self.name(),
            phase: Phase::ALL[self.phase.load(Ordering::Relaxed)],
            workers: self.workers.load(Ordering::Relaxed),
            queue: self.queue.status(),
            succeeded: counts.succeeded.get(),
            requeued: counts.requeued.get(),
            failed: counts.failed.get(),
            terminal: counts.terminal.get(),
            panicked: counts.panicked.get(),
            timed_out: counts.timed_out.get(),
            waited_for_cache: counts.waited_for_cache.get(),
            behind: counts.behind.get(),
        }
    }
}
