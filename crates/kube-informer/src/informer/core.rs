//! The informer itself: no `K` anywhere, compiled once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failures::Failures;
use super::observed::{Observed, OnError};
use crate::indexer::Store;
use crate::processor::{Joining, Processor};
use crate::reflector::{Observer, Reflector};
use crate::wait::{Progress, Watched};
use crate::{DeltaFifo, Error, InformerStatus, ListWatch, Lister, ResourceVersion, Result, State};

pub(crate) struct Core {
    name: Arc<str>,
    source: Arc<dyn ListWatch>,
    pub(crate) store: Arc<Store>,
    pub(crate) processor: Arc<Processor>,
    pub(super) observed: Arc<Observed>,
    pub(super) failures: Failures,
    versions: watch::Sender<ResourceVersion>,
    pub(super) tuning: Tuning,
    started: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What seldom anybody sets.
#[derive(Clone, Default)]
pub(crate) struct Tuning {
    pub(crate) page_size: Option<u32>,
    pub(crate) seed: Option<u64>,
}

/// Held by everybody who could notice that the informer runs: handles, listers, indexes, handlers
/// and streams. With the last one it ends.
pub(crate) struct Alive(CancellationToken);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Core {
    pub(crate) fn new(source: Arc<dyn ListWatch>, tuning: Tuning) -> (Arc<Self>, Arc<Alive>) {
        let store = Store::new();
        let joining = store.clone();
        let processor = Processor::new(Box::new(move || Joining {
            objects: joining.snapshot().0,
            synced: joining.has_synced(),
        }));
        let stop = CancellationToken::new();
        let core = Arc::new(Self {
            name: source.name().into(),
            source,
            store,
            processor,
            observed: Arc::new(Observed::new()),
            failures: Failures::default(),
            versions: watch::Sender::new(ResourceVersion::default()),
            tuning,
            started: AtomicBool::new(false),
            stop: stop.clone(),
            tasks: TaskTracker::new(),
        });
        let watched: Arc<dyn Watched> = core.clone();
        core.processor.set_watched(Arc::downgrade(&watched));
        (core, Arc::new(Alive(stop)))
    }

    pub(crate) fn add_on_error(&self, on_error: OnError) {
        self.observed.add_on_error(on_error);
    }

    /// Runs it on the current runtime. Once is enough, twice does no harm.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.stop.is_cancelled() || self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let runtime = Handle::current();
        self.observed.progress.send_modify(|progress| progress.started = true);
        self.processor.start(&runtime, &self.tasks, self.stop.child_token());
        let core = self.clone();
        self.tasks.spawn_on(async move { core.run().await }, &runtime);
        self.tasks.close();
    }

    async fn run(self: Arc<Self>) {
        // The queue's view of what is known must not keep the informer running.
        let queue = DeltaFifo::in_order(Lister::new(self.store.clone(), None));
        let mut reflector = Reflector::shared(self.source.clone(), queue.clone())
            .observer(self.observed.clone() as Arc<dyn Observer>);
        if let Some(objects) = self.tuning.page_size {
            reflector = reflector.page_size(objects);
        }
        if let Some(seed) = self.tuning.seed {
            reflector = reflector.seed(seed);
        }
        let stop = self.stop.clone();
        let mut reflecting =
            tokio::spawn(async move { reflector.run_until(stop.cancelled()).await });
        tokio::select! {
            biased;
            // It ends before it is told to only where the source panics.
            _ = &mut reflecting => {
                if !self.stop.is_cancelled() {
                    tracing::error!(informer = %self.name, "the source of the informer panicked");
                }
            }
            () = self.process(&queue) => {
                let _ = reflecting.await;
            }
        }
        self.stop.cancel();
        self.processor.stop();
        self.observed.state(&State::Stopped);
        self.observed.progress.send_modify(|progress| progress.stopped = true);
    }

    /// The one writer of the cache.
    async fn process(&self, queue: &DeltaFifo) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                deltas = queue.pop_batch() => match deltas {
                    Some(deltas) => self.apply(deltas),
                    None => return,
                },
                () = self.resync_due() => self.processor.resync(Instant::now()),
            }
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Ready when some handler is due for a resync.
    async fn resync_due(&self) {
        loop {
            let changed = self.processor.resync_changed().notified();
            match self.processor.resync_due() {
                Some(due) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(due) => return,
                },
                None => changed.await,
            }
        }
    }

    pub(super) fn synced(&self) {
        self.observed
            .progress
            .send_if_modified(|progress| !std::mem::replace(&mut progress.synced, true));
    }

    pub(super) fn version_changed(&self) {
        let version = self.store.resource_version();
        self.versions.send_if_modified(|known| {
            let changed = *known != version;
            *known = version;
            changed
        });
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn states(&self) -> watch::Receiver<State> {
        self.observed.state.subscribe()
    }

    pub(crate) fn is_live(&self) -> bool {
        !self.is_stopped() && self.observed.is_live()
    }

    pub(crate) fn staleness(&self) -> Option<Duration> {
        self.observed.staleness()
    }

    pub(crate) fn failed(&self) -> Vec<Error> {
        self.failures.list()
    }

    pub(crate) async fn wait_for_version(&self, version: ResourceVersion) -> Result<()> {
        let mut versions = self.versions.subscribe();
        let mut progress = self.observed.progress.subscribe();
        tokio::select! {
            biased;
            reached = versions.wait_for(|at| *at >= version) => match reached {
                Ok(_) => Ok(()),
                Err(_) => Err(Error::stopped()),
            },
            _ = progress.wait_for(|progress| progress.stopped) => Err(Error::stopped()),
        }
    }
}

impl Watched for Core {
    fn status(&self) -> InformerStatus {
        InformerStatus {
            name: self.name.clone(),
            state: self.observed.state.borrow().clone(),
            since: self.observed.since(),
            synced: self.store.has_synced(),
            live: self.is_live(),
            staleness: self.staleness(),
            objects: self.store.len(),
            failed: self.failures.len(),
            bytes: self.store.memory(),
            index_panics: self.store.index_panics(),
            resource_version: self.store.resource_version(),
            last_error: self.observed.last_error(),
        }
    }

    fn progress(&self) -> watch::Receiver<Progress> {
        self.observed.progress.subscribe()
    }
}
