//! The loop: waits for the caches, then runs workers that take keys and reconcile them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use futures_util::future::select_all;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::Cause;
use crate::leader_election::Leadership;
use crate::measure::Stopwatch;
use crate::{
    BoxError, Error, InProgress, Lister, NotSynced, ObjectKey, RegistrationGuard, SharedInformer,
    WorkQueue,
};

use super::status::{Phase, Shared};
use super::{Action, Options, Request, Terminal, Trigger};

/// First and longest pause before checking again whether a cache includes a write. Usually the event of that
/// write triggers a check earlier.
const CACHE_WAIT: [Duration; 2] = [Duration::from_millis(2), Duration::from_secs(1)];

/// Delay after which a key is checked again if nothing was heard of a write for it: if the object was deleted
/// before any cache saw it, no event arrives. Longer than events take.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(10);

/// A reconciler with its type erased.
pub(super) type Reconcile =
    Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Action, BoxError>> + Send + Sync>;

pub(super) struct Loop {
    shared: Arc<Shared>,
    options: Options,
    reconcile: Reconcile,
}

impl Loop {
    pub(super) fn new(shared: Arc<Shared>, options: Options, reconcile: Reconcile) -> Self {
        Self { shared, options, reconcile }
    }

    /// Runs the loop. The first of the caches is that of the main kind.
    pub(super) async fn run(
        self,
        caches: Vec<SharedInformer>,
        triggers: Vec<Trigger>,
    ) -> Result<(), NotSynced> {
        let Self { shared, options, reconcile } = self;
        let _ended = Ended(shared.clone());
        let stop = stopped(options.stop, shared.stop.clone(), &caches);
        let mut stop = pin!(stop);
        shared.enter(Phase::Syncing);
        shared.workers.store(options.workers, Ordering::Relaxed);
        let handlers = triggers.into_iter().map(|join| join(&shared.queue).remove_on_drop());
        let handlers: Vec<_> = handlers.collect();
        caches.iter().for_each(SharedInformer::start);
        let synced = synced(&caches, &handlers, options.sync_timeout);
        match until(&mut stop, synced).await {
            None => return Ok(()),
            // The handlers of an informer that is being stopped may end before the informer itself.
            Some(Err(_)) if caches.iter().any(SharedInformer::is_stopped) => return Ok(()),
            Some(synced) => synced?,
        }
        shared.enter(Phase::Standby);
        let work = Arc::new(Work {
            objects: caches[0].lister(),
            main: caches[0].clone(),
            reconcile,
            timeout: options.timeout,
            consistency_timeout: options.consistency_timeout,
            waiting: Mutex::default(),
            unconfirmed: WorkQueue::undecided(),
            on_error: options.on_error,
            shared,
        });
        let (count, graceful) = (options.workers, options.graceful_stop);
        let Some(elector) = options.elector else {
            let workers = Workers::start(&work, count, None);
            stop.await;
            workers.finish(graceful).await;
            return Ok(());
        };
        while let Some(term) = until(&mut stop, elector.acquire_together()).await {
            let workers = Workers::start(&work, count, Some(term.leadership()));
            if until(&mut stop, term.lost()).await.is_some() {
                work.shared.enter(Phase::Standby);
                tracing::warn!(controller = &*work.shared.name(), "leadership is lost");
                continue;
            }
            workers.finish(graceful).await;
            // Only the last of the controllers that lead together releases the lease.
            if let Some(term) = Arc::into_inner(term) {
                term.stop().await;
            }
            break;
        }
        Ok(())
    }
}

/// Returns the output of a future, or `None` if it is stopped first.
async fn until<T>(
    stop: &mut (impl Future<Output = ()> + Unpin),
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = stop => None,
        output = future => Some(output),
    }
}

/// Closes the queue however the loop ends.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.enter(Phase::Stopped);
        self.0.queue.shut_down();
    }
}

/// Completes when the program, the handle, or an informer has stopped.
async fn stopped(
    program: BoxFuture<'static, ()>,
    handle: CancellationToken,
    caches: &[SharedInformer],
) {
    let informers = caches.iter().map(|informer| informer.core().until_stopped().boxed());
    tokio::select! {
        biased;
        () = handle.cancelled() => {}
        () = program => {}
        _ = select_all(informers) => {}
    }
}

/// Waits for all caches and all handlers: then the queue contains every key.
async fn synced(
    caches: &[SharedInformer],
    handlers: &[RegistrationGuard],
    limit: Option<Duration>,
) -> Result<(), NotSynced> {
    let handlers = handlers.iter().map(|handler| handler.wait_for_sync());
    let all = caches.iter().map(SharedInformer::wait_for_sync).chain(handlers);
    let Some(all) = all.reduce(crate::WaitForSync::and) else { return Ok(()) };
    match limit {
        Some(limit) => all.timeout(limit).await,
        None => all.await,
    }
}

/// Running workers.
struct Workers {
    tasks: JoinSet<()>,
    take_no_more: CancellationToken,
    work: Arc<Work>,
}

impl Workers {
    /// Starts workers. Those of a leader end with its term, before another candidate can lead.
    fn start(work: &Arc<Work>, count: usize, leadership: Option<&Leadership>) -> Self {
        work.shared.enter(Phase::Running);
        let take_no_more = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(confirm(work.clone(), take_no_more.clone()));
        for _ in 0..count {
            let (worker, leadership) =
                (worker(work.clone(), take_no_more.clone()), leadership.cloned());
            tasks.spawn(async move {
                match leadership {
                    None => worker.await,
                    Some(leadership) => leadership.while_leader(worker).await.unwrap_or_default(),
                }
            });
        }
        Self { tasks, take_no_more, work: work.clone() }
    }

    /// Takes no more keys. Running reconciles may finish within some time, and are dropped after
    /// it.
    async fn finish(mut self, graceful: Duration) {
        self.take_no_more.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(graceful, all).await.is_ok() {
            return;
        }
        let status = self.work.shared.queue.status();
        tracing::warn!(
            controller = &*self.work.shared.name(),
            running = status.running,
            longest = ?status.longest_running.map(|(key, _)| key),
            "reconciles that did not finish within {graceful:?} of the stop are dropped"
        );
        self.tasks.shutdown().await;
    }
}

async fn worker(work: Arc<Work>, take_no_more: CancellationToken) {
    loop {
        let key = tokio::select! {
            biased;
            () = take_no_more.cancelled() => return,
            key = work.shared.queue.get() => key,
        };
        let Some(key) = key else { return };
        work.process(key).await;
    }
}

/// Queues keys for which something was written that no reconcile has checked since.
async fn confirm(work: Arc<Work>, take_no_more: CancellationToken) {
    loop {
        let key = tokio::select! {
            biased;
            () = take_no_more.cancelled() => return,
            key = work.unconfirmed.get() => key,
        };
        let Some(key) = key else { return };
        if work.shared.writes.is_recorded(&key) {
            work.shared.queue.add(key.clone());
        }
        key.done();
    }
}

/// State shared by all workers.
struct Work {
    shared: Arc<Shared>,
    objects: Lister,
    /// The informer of the main kind.
    main: SharedInformer,
    reconcile: Reconcile,
    timeout: Option<Duration>,
    consistency_timeout: Duration,
    /// Keys that wait until a cache includes what was written for them, with the start of the wait.
    waiting: Mutex<HashMap<ObjectKey, Instant>>,
    /// Keys for which something was written, due when its event should have arrived.
    unconfirmed: WorkQueue,
    on_error: Vec<Box<super::OnError>>,
}

/// Why a reconcile failed.
enum Failure {
    Error(BoxError),
    Panicked,
    TimedOut(Duration),
}

impl Work {
    async fn process(&self, key: InProgress) {
        if let Some(delay) = self.wait_for_cache(&key) {
            return key.put_back(delay);
        }
        let object = self.objects.get(&*key);
        let is_gone = object.is_none();
        let writes = self.shared.writes.clone();
        let main = Some(self.main.clone());
        let request = Request::new(key.clone(), object, key.failures(), writes, main);
        let took = Stopwatch::start();
        let outcome = self.attempt(request).await;
        took.record(&self.shared.reconcile_time);
        match outcome {
            Ok(Action(after)) => {
                self.shared.counts.succeeded.add();
                if self.shared.writes.is_recorded(&key) {
                    self.unconfirmed.add_after(key.clone(), UNCONFIRMED_AFTER);
                }
                if is_gone && after.is_none() {
                    self.shared.writes.clear(&key);
                }
                let Some(after) = after else { return key.done() };
                self.shared.counts.requeued.add();
                key.again_after(after);
            }
            Err(failure) => {
                if self.failed(&key, failure) {
                    key.retry();
                } else {
                    key.done();
                }
            }
        }
    }

    async fn attempt(&self, request: Request) -> Result<Action, Failure> {
        // The call itself may panic too.
        let attempt = async { (self.reconcile)(request).await };
        let attempt = AssertUnwindSafe(attempt).catch_unwind();
        let result = match self.timeout {
            None => attempt.await,
            Some(limit) => match timeout(limit, attempt).await {
                Ok(result) => result,
                Err(_) => return Err(Failure::TimedOut(limit)),
            },
        };
        result.map_err(|_| Failure::Panicked)?.map_err(Failure::Error)
    }

    /// Counts and reports a failure. Returns whether to retry.
    fn failed(&self, key: &InProgress, failure: Failure) -> bool {
        let counts = &self.shared.counts;
        counts.failed.add();
        let error = match failure {
            Failure::Error(error) => error,
            Failure::Panicked => {
                counts.panicked.add();
                "the reconciler panicked".into()
            }
            Failure::TimedOut(limit) => {
                counts.timed_out.add();
                let text = format!("the reconcile was not finished within {limit:?}");
                Error::new(Cause::Timeout, text).into()
            }
        };
        let is_terminal = Terminal::is_in(&*error);
        if is_terminal {
            counts.terminal.add();
        }
        self.report(key, &error, is_terminal);
        !is_terminal
    }

    fn report(&self, key: &InProgress, error: &BoxError, is_terminal: bool) {
        let (controller, failures) = (&*self.shared.name(), key.failures());
        if is_terminal {
            tracing::warn!(controller, %key, "reconcile failed, and will not be retried until the object changes: {error}");
        } else {
            tracing::warn!(controller, %key, failures, "reconcile failed, and will be retried: {error}");
        }
        self.tell(key, error);
    }

    fn tell(&self, key: &ObjectKey, error: &BoxError) {
        for report in &self.on_error {
            // A panic in an observer must not end the worker.
            if catch_unwind(AssertUnwindSafe(|| report(key, error))).is_err() {
                tracing::error!(controller = &*self.shared.name(), "an error observer panicked");
            }
        }
    }

    /// Returns the pause before checking again whether the caches include what was written for a key; `None` if
    /// they do, or if the wait has taken too long.
    fn wait_for_cache(&self, key: &InProgress) -> Option<Duration> {
        let Err(behind) = self.shared.writes.ensure_ready(key) else {
            self.waiting.lock().remove(&**key);
            return None;
        };
        let since = *self.waiting.lock().entry((**key).clone()).or_insert_with(Instant::now);
        if since.elapsed() < self.consistency_timeout {
            self.shared.counts.waited_for_cache.add();
            let left = self.consistency_timeout.saturating_sub(since.elapsed());
            return Some(since.elapsed().clamp(CACHE_WAIT[0], CACHE_WAIT[1]).min(left));
        }
        self.shared.counts.behind.add();
        self.shared.writes.clear(key);
        self.waiting.lock().remove(&**key);
        let limit = self.consistency_timeout;
        let text = format!("{behind}; reconciled all the same after {limit:?}");
        tracing::warn!(controller = &*self.shared.name(), %key, "{text}");
        self.tell(key, &Error::new(Cause::Timeout, text).into());
        None
    }
}
