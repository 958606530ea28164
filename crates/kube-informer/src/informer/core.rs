//! The untyped informer: without a `K`, so that it is compiled once.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use kube_core::ApiResource;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failures::Failures;
use super::observed::{Observed, OnError, PartObserver};
use crate::error::Cause;
use crate::indexer::{Alive, Store};
use crate::measure::{Histogram, PROCESSING_SECONDS, Stopwatch};
use crate::processor::Processor;
use crate::reflector::{Reflector, Settings};
use crate::snapshot::Origin;
use crate::wait::{Progress, Watched};
use crate::{
    Delta, DeltaFifo, Error, InformerStatus, ListWatch, Lister, ResourceVersion, Result, State,
};

pub(crate) struct Core {
    name: Arc<str>,
    /// One source, or one for each of several namespaces.
    sources: Vec<Arc<dyn ListWatch>>,
    pub(crate) store: Arc<Store>,
    pub(crate) processor: Arc<Processor>,
    pub(super) observed: Arc<Observed>,
    failures: Failures,
    /// The queues between the reflectors and the writer, once the informer runs.
    queues: Mutex<Vec<DeltaFifo>>,
    /// How long it takes to write queued changes and distribute them to the handlers.
    pub(crate) processing: Histogram,
    versions: watch::Sender<ResourceVersion>,
    pub(super) tuning: Tuning,
    started: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Rarely changed settings.
#[derive(Clone, Default)]
pub(crate) struct Tuning {
    pub(crate) reflector: Settings,
    pub(crate) seed: Option<u64>,
    /// The number of objects that a dictionary is trained on, instead of the default.
    pub(crate) train_on: Option<usize>,
    /// The resource, if known.
    pub(crate) resource: Option<Arc<ApiResource>>,
    /// The origin of the objects, if it is a single one that can be snapshotted.
    pub(crate) origin: Option<Arc<Origin>>,
    /// The snapshot to start from.
    pub(crate) warm_start: Option<PathBuf>,
}

/// The task of an informer. However the task ends, even by a shutdown of its runtime, the informer ends with
/// it.
struct Running(Arc<Core>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop.cancel();
        self.0.ended();
    }
}

impl Core {
    pub(crate) fn new(source: Arc<dyn ListWatch>, tuning: Tuning) -> (Arc<Self>, Arc<Alive>) {
        Self::on(source.name().into(), vec![source], Store::new(), tuning)
    }

    /// Creates an informer for several namespaces, each with its own source.
    pub(crate) fn of_namespaces(
        name: Arc<str>,
        sources: Vec<(Arc<str>, Arc<dyn ListWatch>)>,
        tuning: Tuning,
    ) -> (Arc<Self>, Arc<Alive>) {
        let (namespaces, sources): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
        Self::on(name, sources, Store::of_namespaces(&namespaces), tuning)
    }

    fn on(
        name: Arc<str>,
        sources: Vec<Arc<dyn ListWatch>>,
        store: Arc<Store>,
        tuning: Tuning,
    ) -> (Arc<Self>, Arc<Alive>) {
        let processor = Processor::new(store.clone());
        let stop = CancellationToken::new();
        let core = Arc::new(Self {
            name,
            observed: Arc::new(Observed::new(sources.len())),
            sources,
            store,
            processor,
            failures: Failures::default(),
            queues: Mutex::default(),
            processing: Histogram::new(PROCESSING_SECONDS),
            versions: watch::Sender::new(ResourceVersion::default()),
            tuning,
            started: AtomicBool::new(false),
            stop: stop.clone(),
            tasks: TaskTracker::new(),
        });
        let watched: Arc<dyn Watched> = core.clone();
        core.processor.set_watched(Arc::downgrade(&watched));
        (core, Alive::new(move || stop.cancel()))
    }

    /// Calls these with every error for as long as other code holds them.
    pub(crate) fn observe_errors(&self, on_error: &[OnError]) {
        self.observed.observe_errors(on_error);
    }

    /// Runs the informer on the current runtime. Calling this again has no effect.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.stop.is_cancelled() || self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let runtime = Handle::current();
        self.observed.progress.send_modify(|progress| progress.started = true);
        self.processor.start(&runtime, &self.tasks, self.stop.child_token());
        let running = Running(self.clone());
        self.tasks.spawn_on(async move { running.0.run().await }, &runtime);
        self.tasks.close();
    }

    async fn run(&self) {
        let mut reflecting = JoinSet::new();
        let queues: Vec<_> =
            (0..self.sources.len()).map(|part| self.reflect(part, &mut reflecting)).collect();
        self.queues.lock().clone_from(&queues);
        tokio::select! {
            biased;
            // Without a stop, reflectors end only if a source panics.
            _ = reflecting.join_next() => {
                if !self.stop.is_cancelled() {
                    tracing::error!(informer = %self.name, "the source of the informer panicked");
                }
            }
            () = self.process(&queues) => {}
        }
        self.stop.cancel();
        while reflecting.join_next().await.is_some() {}
    }

    /// Notifies everything that waits that the informer has ended.
    fn ended(&self) {
        let queues = std::mem::take(&mut *self.queues.lock());
        drop(queues);
        self.processor.stop();
        self.observed.stopped();
    }

    /// Mirrors a source into a queue.
    fn reflect(&self, part: usize, reflecting: &mut JoinSet<DeltaFifo>) -> DeltaFifo {
        // The queue's view of the cache must not keep the informer running.
        let queue = DeltaFifo::in_order(Lister::new(self.store.clone(), None));
        let observer = PartObserver { observed: self.observed.clone(), part };
        let mut reflector = Reflector::shared(self.sources[part].clone(), queue.clone())
            .settings(self.tuning.reflector.clone())
            .observer(Arc::new(observer));
        if let Some(seed) = self.tuning.seed {
            reflector = reflector.seed(seed.wrapping_add(part as u64));
        }
        if let Some(path) = self.tuning.warm_start.clone() {
            let origin = self.tuning.origin.clone();
            reflector = reflector
                .begin_with(async move { origin.ok_or_else(Error::no_snapshot)?.load(path).await });
        }
        let stop = self.stop.clone();
        reflecting.spawn(async move { reflector.run_until(stop.cancelled()).await });
        queue
    }

    /// Runs the only writer of the cache.
    async fn process(&self, queues: &[DeltaFifo]) {
        let mut turn = 0;
        // Created once rather than for each change: creating and dropping them takes locks.
        let mut stopped = pin!(self.stop.cancelled());
        let mut resync_due = pin!(self.resync_due());
        loop {
            tokio::select! {
                biased;
                () = &mut stopped => return,
                // Before the branch that may always be ready.
                () = &mut resync_due => {
                    self.processor.resync(Instant::now());
                    resync_due.set(self.resync_due());
                }
                (part, deltas) = self.next(queues, turn) => {
                    turn = part + 1;
                    self.apply(part, deltas);
                }
            }
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Waits for changes, from the queue whose turn it is or the next one that has any.
    async fn next(&self, queues: &[DeltaFifo], turn: usize) -> (usize, Vec<Delta>) {
        self.processor.ready().await;
        poll_fn(|context| next(queues, turn, context)).await
    }

    /// Writes changes, and distributes them to every handler. The cache is always at least as new as the
    /// events that a handler has received.
    fn apply(&self, part: usize, deltas: Vec<Delta>) {
        let took = Stopwatch::start();
        self.failures.note(part, &deltas);
        self.processor.write(part, deltas);
        self.observed.applied(part);
        self.progressed();
        took.record(&self.processing);
    }

    /// Waits until a handler is due for a resync.
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

    fn progressed(&self) {
        let (synced, version) = self.store.progress();
        self.observed
            .progress
            .send_if_modified(|progress| std::mem::replace(&mut progress.synced, synced) != synced);
        self.versions.send_if_modified(|known| {
            let changed = *known != version;
            *known = version;
            changed
        });
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
        // If the informer was never started, no task will do this.
        if !self.started.swap(true, Ordering::SeqCst) {
            self.ended();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) async fn shutdown(&self) {
        self.stop();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns all tasks of the informer, including those of callbacks.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Waits until the informer has been stopped or dropped. Does not keep it running.
    pub(crate) fn until_stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut progress = self.observed.progress.subscribe();
        async move { _ = progress.wait_for(|progress| progress.stopped).await }
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

    /// Writes the content of the cache to a file.
    pub(crate) async fn snapshot(&self, path: &Path, with_secrets: bool) -> Result<()> {
        let origin = self.tuning.origin.as_ref().ok_or_else(Error::no_snapshot)?;
        let refused = |why: &str| Err(Error::new(Cause::Snapshot, format!("{}: {why}", self.name)));
        if origin.is_of_secrets() && !with_secrets {
            return refused(
                "secrets are not put into a file unless that is asked for: snapshot_with_secrets",
            );
        }
        if !self.store.has_synced() {
            return refused("there is nothing to take a snapshot of before it has synced");
        }
        let content = self.store.snapshot();
        // Otherwise the next run would lack these objects too, without an error that says so.
        let failed = self.failures.len();
        if failed > 0 {
            return refused(&format!(
                "{failed} objects could not be kept, and a snapshot would lack them"
            ));
        }
        if content.1.is_empty() {
            return refused("the server gives no versions that a watch could resume from");
        }
        origin.save(path, content).await
    }

    /// Returns the number of changes that wait to be written.
    fn queued(&self) -> usize {
        self.queues.lock().iter().map(DeltaFifo::len).sum()
    }

    pub(crate) fn resource(&self) -> Option<&ApiResource> {
        self.tuning.resource.as_deref()
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn reflections(&self) -> &super::reflections::Reflections {
        &self.observed.reflections
    }

    pub(crate) fn failed(&self) -> Vec<Error> {
        self.failures.list()
    }

    pub(crate) async fn wait_for_version(&self, version: ResourceVersion) -> Result<()> {
        if version.is_empty() {
            return Err(Error::incomparable_version(&version, &self.store.resource_version()));
        }
        let mut versions = self.versions.subscribe();
        let mut progress = self.observed.progress.subscribe();
        loop {
            let stopped = progress.borrow_and_update().stopped;
            versions.mark_unchanged();
            // In this order: once synced, the store has its version.
            let (synced, at) = (self.store.has_synced(), self.store.resource_version());
            match at.partial_cmp(&version) {
                Some(order) if order.is_ge() => return Ok(()),
                None if synced => return Err(Error::incomparable_version(&version, &at)),
                _ if stopped => return Err(Error::stopped()),
                _ => {}
            }
            tokio::select! {
                biased;
                _ = versions.changed() => {}
                _ = progress.changed() => {}
            }
        }
    }
}

/// Returns the changes of the first queue that has any, starting with the one whose turn it is.
fn next(queues: &[DeltaFifo], turn: usize, context: &mut Context<'_>) -> Poll<(usize, Vec<Delta>)> {
    for part in (turn..turn + queues.len()).map(|place| place % queues.len()) {
        if let Poll::Ready(Some(popped)) = queues[part].poll_pop_batch(context) {
            return Poll::Ready((part, popped.deltas));
        }
    }
    Poll::Pending
}

impl Watched for Core {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn status(&self) -> InformerStatus {
        // Read first: inside the literal, the state would stay locked until the last field is read.
        let state = self.observed.state.borrow().clone();
        InformerStatus {
            name: self.name.clone(),
            state,
            since: self.observed.since(),
            synced: self.store.has_synced(),
            live: self.is_live(),
            staleness: self.staleness(),
            objects: self.store.len(),
            received: self.observed.received(),
            failed: self.failures.len(),
            bytes: self.store.memory(),
            index_panics: self.store.index_panics(),
            resource_version: self.store.resource_version(),
            last_error: self.observed.last_error(),
            queued: self.queued(),
            lag: self.observed.lag(),
            silence_limit: self.observed.silence_limit(),
            requests: self.observed.requests(),
        }
    }

    fn progress(&self) -> watch::Receiver<Progress> {
        self.observed.progress.subscribe()
    }
}
