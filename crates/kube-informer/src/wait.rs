//! Waiting until informers and handlers are synced; a wait never hangs.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::future::try_join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{InformerStatus, State};

/// Default limit for the time without progress before a wait gives up.
///
/// Longer than any retry takes with its pause (30 s at most), and than a server is down while it is replaced.
/// controller-runtime gives its caches 2 minutes too, but for the whole list.
pub(crate) const WAIT_PROGRESS_MAX: Duration = Duration::from_secs(120);

/// The progress of an informer.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) started: bool,
    /// Whether the first list is in the cache. Stays true.
    pub(crate) synced: bool,
    pub(crate) stopped: bool,
    /// Grows with every item that arrives; retries without any do not count.
    pub(crate) received: u64,
}

/// An informer whose sync can be awaited.
pub(crate) trait Watched: Send + Sync {
    fn name(&self) -> &Arc<str>;
    fn status(&self) -> InformerStatus;
    fn progress(&self) -> watch::Receiver<Progress>;
}

/// The progress of a handler with its initial list. It changes only once, from `Pending`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) enum HandlerSync {
    #[default]
    Pending,
    Synced,
    Removed,
    Stopped,
}

/// A handler whose sync can be awaited.
pub(crate) trait WatchedHandler: Send + Sync {
    fn name(&self) -> Arc<str>;
    /// Returns the number of events in its backlog.
    fn waiting(&self) -> usize;
    /// Returns a number that grows with every event that it has processed.
    fn delivered(&self) -> u64;
    fn sync(&self) -> watch::Receiver<HandlerSync>;
}

/// A future that waits until informers or handlers are synced.
///
/// It always completes: with an error at once if an informer was never started or has been stopped,
/// and with an error after 2 minutes without progress. A slow list is waited for.
#[must_use = "nothing waits until this is awaited"]
pub struct WaitForSync {
    targets: Vec<Target>,
    timeout: Option<Duration>,
    progress: Duration,
}

struct Target {
    /// `None` if the informer is gone.
    informer: Option<Arc<dyn Watched>>,
    handler: Option<Arc<dyn WatchedHandler>>,
}

impl WaitForSync {
    pub(crate) fn new(informers: impl IntoIterator<Item = Arc<dyn Watched>>) -> Self {
        let target = |informer| Target { informer: Some(informer), handler: None };
        Self::of(informers.into_iter().map(target).collect())
    }

    pub(crate) fn of_handler(
        informer: Option<Arc<dyn Watched>>,
        handler: Arc<dyn WatchedHandler>,
    ) -> Self {
        Self::of(vec![Target { informer, handler: Some(handler) }])
    }

    fn of(targets: Vec<Target>) -> Self {
        Self { targets, timeout: None, progress: WAIT_PROGRESS_MAX }
    }

    /// Also waits for everything that the other future waits for.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.targets.extend(other.targets);
        self
    }

    /// Gives up after this time.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Gives up after this time without progress, instead of 2 minutes: big clusters are slow, not
    /// stuck. `Duration::MAX` waits indefinitely.
    pub fn progress_timeout(mut self, limit: Duration) -> Self {
        self.progress = limit;
        self
    }

    async fn wait(&self) -> Result<(), NotSyncedReason> {
        let all = try_join_all(self.targets.iter().map(|target| target.synced(self.progress)));
        match self.timeout {
            None => all.await.map(drop),
            Some(limit) => match timeout(limit, all).await {
                Ok(result) => result.map(drop),
                Err(_) => Err(NotSyncedReason::TimedOut(limit)),
            },
        }
    }

    fn not_synced(&self, reason: NotSyncedReason) -> NotSynced {
        // Several handlers may wait for the same informer.
        let mut informers: Vec<&Arc<dyn Watched>> = Vec::new();
        for informer in self.targets.iter().filter_map(|target| target.informer.as_ref()) {
            if !informers.iter().any(|known| Arc::ptr_eq(known, informer)) {
                informers.push(informer);
            }
        }
        let handlers = self.targets.iter().filter_map(|target| target.handler.as_ref());
        let pending = handlers.filter(|handler| *handler.sync().borrow() != HandlerSync::Synced);
        NotSynced {
            reason,
            informers: informers.into_iter().map(|informer| informer.status()).collect(),
            handlers: pending.map(|handler| (handler.name(), handler.waiting())).collect(),
        }
    }
}

impl IntoFuture for WaitForSync {
    type Output = Result<(), NotSynced>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.wait().await.map_err(|reason| self.not_synced(reason)) })
    }
}

impl fmt::Debug for WaitForSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForSync")
            .field("targets", &self.targets.len())
            .field("timeout", &self.timeout)
            .field("progress_timeout", &self.progress)
            .finish()
    }
}

impl Target {
    async fn synced(&self, limit: Duration) -> Result<(), NotSyncedReason> {
        let Some(handler) = &self.handler else { return self.informer_synced(limit).await };
        if *handler.sync().borrow() == HandlerSync::Synced {
            return Ok(());
        }
        // Until the informer is synced, a handler can only be removed; its own clock starts
        // afterwards.
        tokio::select! {
            biased;
            reason = handler_ended(&**handler) => return Err(reason),
            result = self.informer_synced(limit) => result?,
        }
        handler_synced(&**handler, limit).await
    }

    async fn informer_synced(&self, limit: Duration) -> Result<(), NotSyncedReason> {
        let Some(informer) = &self.informer else { return Err(NotSyncedReason::Stopped) };
        let mut progress = informer.progress();
        let (mut received, mut since) = (0, Instant::now());
        loop {
            let now = *progress.borrow_and_update();
            // An informer that has synced counts as synced, even if it has been stopped since.
            match now {
                Progress { synced: true, .. } => return Ok(()),
                Progress { stopped: true, .. } => return Err(NotSyncedReason::Stopped),
                Progress { started: false, .. } => return Err(NotSyncedReason::NotStarted),
                _ => {}
            }
            if now.received != received {
                (received, since) = (now.received, Instant::now());
            }
            tokio::select! {
                biased;
                changed = progress.changed() => changed.map_err(|_| NotSyncedReason::Stopped)?,
                () = elapsed(since, limit) => return Err(NotSyncedReason::NoProgress(limit)),
            }
        }
    }
}

async fn handler_ended(handler: &dyn WatchedHandler) -> NotSyncedReason {
    let mut sync = handler.sync();
    let ended = |sync: &HandlerSync| matches!(sync, HandlerSync::Removed | HandlerSync::Stopped);
    match sync.wait_for(ended).await.as_deref() {
        Ok(HandlerSync::Removed) => NotSyncedReason::HandlerRemoved,
        _ => NotSyncedReason::Stopped,
    }
}

async fn handler_synced(
    handler: &dyn WatchedHandler,
    limit: Duration,
) -> Result<(), NotSyncedReason> {
    let mut sync = handler.sync();
    let (mut delivered, mut since) = (handler.delivered(), Instant::now());
    loop {
        match *sync.borrow_and_update() {
            HandlerSync::Synced => return Ok(()),
            HandlerSync::Removed => return Err(NotSyncedReason::HandlerRemoved),
            HandlerSync::Stopped => return Err(NotSyncedReason::Stopped),
            HandlerSync::Pending => {}
        }
        tokio::select! {
            biased;
            changed = sync.changed() => changed.map_err(|_| NotSyncedReason::Stopped)?,
            () = elapsed(since, limit) => {
                // A handler counts its events but does not notify waiters, so this polls.
                let now = handler.delivered();
                if now == delivered {
                    return Err(NotSyncedReason::NoProgress(limit));
                }
                (delivered, since) = (now, Instant::now());
            }
        }
    }
}

/// Never completes if the deadline is out of range.
async fn elapsed(since: Instant, limit: Duration) {
    match since.checked_add(limit) {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// The error of a wait for sync. Its message says what each informer is stuck on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotSynced {
    /// Why the wait ended.
    pub reason: NotSyncedReason,
    /// All informers that were waited for, including those that have synced.
    pub informers: Vec<InformerStatus>,
    /// Handlers that have not finished their initial list, with the number of events in their
    /// backlog.
    handlers: Vec<(Arc<str>, usize)>,
}

/// The reason why a wait for sync failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotSyncedReason {
    /// An informer has not been started, so the wait would never end.
    NotStarted,
    /// An informer has been stopped.
    Stopped,
    /// The handler has been removed.
    HandlerRemoved,
    /// There was no progress for this long.
    NoProgress(Duration),
    /// It took longer than this.
    TimedOut(Duration),
}

impl fmt::Display for NotSyncedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("an informer has not been started: call start() first"),
            Self::Stopped => f.write_str("an informer has been stopped"),
            Self::HandlerRemoved => f.write_str("the handler has been removed"),
            Self::NoProgress(limit) => write!(f, "nothing arrived for {limit:?}"),
            Self::TimedOut(limit) => write!(f, "it took longer than {limit:?}"),
        }
    }
}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not synced: {}", self.reason)?;
        let mut pending: Vec<_> = self.informers.iter().filter(|status| !status.synced).collect();
        pending.sort_by(|a, b| a.name.cmp(&b.name));
        for status in pending {
            write!(f, "; {} is {}", status.name, status.state)?;
            match (&status.state, &status.last_error) {
                // Its text already includes the reason.
                (State::BackingOff { .. }, _) | (_, None) => {}
                (_, Some(error)) => write!(f, ", its last error was: {error}")?,
            }
        }
        for (name, waiting) in &self.handlers {
            write!(
                f,
                "; handler {name} has not finished its initial list, {waiting} events are queued"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for NotSynced {}

#[cfg(test)]
mod tests;
