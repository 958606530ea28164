//! Waiting until informers and handlers are synced, without ever waiting for nothing.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::future::try_join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{InformerStatus, State};

/// How long nothing may arrive before a wait gives up, unless it is told otherwise.
///
/// Longer than a retry takes with any pause in between (30 s at most), and than a server is down
/// while it is replaced. controller-runtime gives its caches 2 minutes too, but for all of the list.
pub(crate) const WAIT_PROGRESS_MAX: Duration = Duration::from_secs(120);

/// How far an informer has come.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) started: bool,
    /// The first list is in the cache. Stays true.
    pub(crate) synced: bool,
    pub(crate) stopped: bool,
    /// Grows with everything that arrives; retries that bring nothing do not count.
    pub(crate) received: u64,
}

/// An informer that can be waited for.
pub(crate) trait Watched: Send + Sync {
    fn name(&self) -> &Arc<str>;
    fn status(&self) -> InformerStatus;
    fn progress(&self) -> watch::Receiver<Progress>;
}

/// How far a handler has come with its initial list. Only ever leaves `Pending`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) enum HandlerSync {
    #[default]
    Pending,
    Synced,
    Removed,
    Stopped,
}

/// A handler that can be waited for.
pub(crate) trait WatchedHandler: Send + Sync {
    fn name(&self) -> Arc<str>;
    /// How many events wait for it.
    fn waiting(&self) -> usize;
    /// Grows with every event that it has been through.
    fn delivered(&self) -> u64;
    fn sync(&self) -> watch::Receiver<HandlerSync>;
}

/// Waits until everything asked for is synced; await it.
///
/// It always ends: with an error at once where something was never started or has been stopped, and
/// after 2 minutes in which nothing arrived. A list that takes its time is waited for.
#[must_use = "nothing waits until this is awaited"]
pub struct WaitForSync {
    targets: Vec<Target>,
    timeout: Option<Duration>,
    progress: Duration,
}

struct Target {
    /// None if it is gone.
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

    /// Waits for what the other waits for as well.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.targets.extend(other.targets);
        self
    }

    /// Gives up after this long.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Gives up when nothing has arrived for this long, instead of 2 minutes: big clusters are
    /// slow, not stuck. `Duration::MAX` waits for ever.
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
        // Several handlers may wait for one informer.
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
        // Until the informer is synced a handler can only be removed; its own clock starts then.
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
            // What has synced is synced, also when it has been stopped since.
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
                // A handler counts what it does and wakes nobody for it.
                let now = handler.delivered();
                if now == delivered {
                    return Err(NotSyncedReason::NoProgress(limit));
                }
                (delivered, since) = (now, Instant::now());
            }
        }
    }
}

/// Never, if that is further away than time goes.
async fn elapsed(since: Instant, limit: Duration) {
    match since.checked_add(limit) {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Not synced: given up, stopped, or never started. Says for each informer what it hangs on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotSynced {
    /// Why it is not waited for any longer.
    pub reason: NotSyncedReason,
    /// All that were waited for, the synced ones too.
    pub informers: Vec<InformerStatus>,
    /// Handlers that have not been through their initial list, and how many events wait for each.
    handlers: Vec<(Arc<str>, usize)>,
}

/// Why something is not waited for any longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotSyncedReason {
    /// An informer has not been started, so that waiting would never end.
    NotStarted,
    /// An informer has been stopped.
    Stopped,
    /// The handler has been removed.
    HandlerRemoved,
    /// Nothing arrived for this long.
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
                // Says why by itself.
                (State::BackingOff { .. }, _) | (_, None) => {}
                (_, Some(error)) => write!(f, ", its last error was: {error}")?,
            }
        }
        for (name, waiting) in &self.handlers {
            write!(f, "; handler {name} is not through its initial list, {waiting} events wait")?;
        }
        Ok(())
    }
}

impl std::error::Error for NotSynced {}

#[cfg(test)]
mod tests;
