//! A reconcile loop, made of informers, a work queue and workers.
//!
//! A controller reconciles the objects of one kind: it looks at one object and at anything else in its caches,
//! and brings the world to the state that the object asks for. It learns *which* object to look at, never what
//! happened to it, so nothing is missed if several things happen at once, or while the controller is not
//! running.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_informer::{Action, Controller, Request, SharedInformerFactory};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = embedded_apiserver::ApiServer::start();
//! # server.create(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
//! #     "metadata": {"name": "web", "namespace": "default"}}))?;
//! # let client = server.client();
//! let factory = SharedInformerFactory::new(client);
//! let controller = Controller::new(&factory.informer::<ConfigMap>())
//!     .owns(&factory.informer::<Deployment>())
//!     .workers(4);
//! # let handle = controller.handle();
//! # let controller = controller.stop_on(tokio::time::sleep(std::time::Duration::from_secs(1)));
//!
//! controller
//!     .run(async |request: Request<ConfigMap>| {
//!         match &request.object {
//!             Some(map) => println!("{} is at {}", map.key(), map.resource_version()),
//!             None => println!("{} is gone", request.key),
//!         }
//!         Ok::<_, kube::Error>(Action::await_change())
//!     })
//!     .await?;
//! # assert_eq!(handle.status().succeeded, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What it promises
//!
//! - Nothing is reconciled before all caches that the controller uses have synced.
//! - A key is never reconciled twice at the same time, however many workers there are.
//! - No change is missed: a change that arrives while its key is being reconciled causes another reconcile.
//! - A reconcile that fails, panics or times out is retried with a growing delay, which affects no other key.
//! - A reconcile does not start before the caches include what this controller [wrote](Request::wrote) for the
//!   same key. If what was written is deleted before any cache has seen it, no event arrives for it; the key is
//!   therefore reconciled once more after ten seconds.
//!
//! Informers are shared: ten controllers of one kind cost one list and one watch. With [leader
//! election](Controller::leader_election), keys are reconciled only while this process leads; the caches are
//! filled before that.

mod predicate;
mod request;
mod run;
mod status;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;

use crate::processor::owner_key;
use crate::workqueue::RateLimiter;
use crate::{
    BoxError, LeaderElector, NotSynced, Object, ObjectKey, Registration, SharedInformer, Untyped,
    WorkQueue,
};

pub use predicate::Predicate;
pub use request::{Action, Reconciler, Request, Terminal};
pub use status::{ControllerHandle, ControllerStatus, Phase};

use run::Loop;
use status::Shared;

/// Default time that running reconciles have to finish when the controller is stopped.
const GRACEFUL_STOP: Duration = Duration::from_secs(30);

/// Default limit for how long a key waits until the caches include what was written for it. Caches lag for as
/// long as a watch takes to recover; beyond this, it is better to work with the available state.
const CONSISTENCY_TIMEOUT: Duration = Duration::from_secs(30);

/// Builds and runs a reconcile loop. See the [module](self).
#[must_use = "nothing happens until run"]
pub struct Controller<K = Untyped> {
    informer: SharedInformer<K>,
    predicate: Option<Predicate<K>>,
    /// The other informers that it needs.
    caches: Vec<SharedInformer>,
    triggers: Vec<Trigger>,
    shared: Arc<Shared>,
    options: Options,
}

/// Registers a handler that fills the queue.
type Trigger = Box<dyn FnOnce(&WorkQueue) -> Registration + Send>;

type OnError = dyn Fn(&ObjectKey, &BoxError) + Send + Sync;

/// The settings that do not depend on the kind.
struct Options {
    workers: usize,
    timeout: Option<Duration>,
    sync_timeout: Option<Duration>,
    graceful_stop: Duration,
    consistency_timeout: Duration,
    on_error: Vec<Box<OnError>>,
    elector: Option<LeaderElector>,
    stop: BoxFuture<'static, ()>,
}

impl<K: 'static> Controller<K> {
    /// Creates a controller that reconciles every object of this informer when it is added, changed or deleted.
    pub fn new(informer: &SharedInformer<K>) -> Self {
        let options = Options {
            workers: 1,
            timeout: None,
            sync_timeout: None,
            graceful_stop: GRACEFUL_STOP,
            consistency_timeout: CONSISTENCY_TIMEOUT,
            on_error: Vec::new(),
            elector: None,
            stop: std::future::pending().boxed(),
        };
        Self {
            informer: informer.clone(),
            predicate: None,
            caches: Vec::new(),
            triggers: Vec::new(),
            shared: Arc::new(Shared::new(informer.name())),
            options,
        }
    }

    /// Sets the name for logs, status and metrics; the informer's name by default. Only the first
    /// name is used.
    pub fn name(self, name: &str) -> Self {
        self.shared.set_name(name);
        self
    }

    /// Ignores events of the main kind that the predicate rejects.
    pub fn when(mut self, predicate: Predicate<K>) -> Self {
        self.predicate = Some(match self.predicate.take() {
            None => predicate,
            Some(before) => before.and(predicate),
        });
        self
    }

    /// Also reconciles the owner (`controller: true`) of an object of this informer when that
    /// object changes.
    pub fn owns<T: 'static>(self, informer: &SharedInformer<T>) -> Self {
        self.owns_when(informer, Predicate::new(|_| true))
    }

    /// Like [`owns`](Self::owns), for events that a predicate accepts.
    pub fn owns_when<T: 'static>(
        self,
        informer: &SharedInformer<T>,
        predicate: Predicate<T>,
    ) -> Self {
        let owners = self.informer.lister();
        self.watches_when(informer, predicate, move |object| owner_key(object, &owners))
    }

    /// Also reconciles the objects of the main kind that a function returns for an object of this
    /// informer when that object changes.
    ///
    /// The function is called for the previous state of an object too. It should be quick, such as a lookup: it
    /// sees every event.
    pub fn watches<T: 'static, Keys: IntoIterator<Item = ObjectKey>>(
        self,
        informer: &SharedInformer<T>,
        concerns: impl Fn(&Object<T>) -> Keys + Send + Sync + 'static,
    ) -> Self {
        self.watches_when(informer, Predicate::new(|_| true), concerns)
    }

    /// Like [`watches`](Self::watches), for events that a predicate accepts.
    pub fn watches_when<T: 'static, Keys: IntoIterator<Item = ObjectKey>>(
        mut self,
        informer: &SharedInformer<T>,
        predicate: Predicate<T>,
        concerns: impl Fn(&Object<T>) -> Keys + Send + Sync + 'static,
    ) -> Self {
        let (handler, shared) = (informer.handler(), self.shared.clone());
        self.triggers.push(Box::new(move |queue| {
            let handler = handler.name(&shared.handler_name());
            handler.enqueue_when(queue, move |event| predicate.passes(event), concerns)
        }));
        self.needs(informer)
    }

    /// Waits for this cache too before anything is reconciled, because reconciles read it. Its events cause no
    /// reconciles.
    pub fn needs<T: 'static>(mut self, informer: &SharedInformer<T>) -> Self {
        if !self.caches.iter().any(|known| known.is_same(informer)) {
            self.caches.push(informer.clone().cast());
        }
        self
    }

    /// Sets the number of keys that are reconciled concurrently; 1 by default, as in
    /// controller-runtime.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// Sets the timeout of a reconcile. When it expires, the future is dropped and the key is
    /// retried. There is none by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// Sets the delays of failing keys; by default from 5 ms, doubling with each failure, up to
    /// 1,000 s. Only the first limiter is used.
    pub fn rate_limiter(self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.shared.queue.decide(limiter);
        self
    }

    /// Sets how long the first lists may take altogether before [`run`](Self::run) gives up. By default it does
    /// so after 2 minutes without progress.
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.options.sync_timeout = Some(limit);
        self
    }

    /// Sets how long a key may wait until the caches include what was [written](Request::wrote) for it; 30 s by
    /// default. After that it is reported, and reconciled anyway.
    pub fn consistency_timeout(mut self, limit: Duration) -> Self {
        self.options.consistency_timeout = limit;
        self
    }

    /// Calls a function for every reconcile that fails, panics, times out, or runs on a cache that lags behind.
    pub fn on_error(
        mut self,
        report: impl Fn(&ObjectKey, &BoxError) + Send + Sync + 'static,
    ) -> Self {
        self.options.on_error.push(Box::new(report));
        self
    }

    /// Stops the controller when this future completes: no new reconcile starts, and running ones
    /// are [given time](Self::graceful_stop) to finish. Keys that are still queued are dropped,
    /// because the next instance lists everything again.
    pub fn stop_on(mut self, stop: impl Future + Send + 'static) -> Self {
        let before = self.options.stop;
        self.options.stop = async move {
            tokio::select! {
                biased;
                () = before => {}
                _ = stop => {}
            }
        }
        .boxed();
        self
    }

    /// Sets how long running reconciles may take to finish when the controller is stopped; 30 s by default.
    /// After that they are dropped.
    pub fn graceful_stop(mut self, limit: Duration) -> Self {
        self.options.graceful_stop = limit;
        self
    }

    /// Reconciles only while this candidate leads.
    ///
    /// The caches and the queue are filled before that, so a new leader starts without delay. When leadership
    /// is lost, running reconciles are dropped before another candidate can lead, and the controller waits
    /// until it leads again. When the controller is stopped, it finishes running reconciles and then releases
    /// the lease.
    ///
    /// Controllers with clones of one elector lead together: the lease is released when the last of them has
    /// stopped. See [fencing](crate::leader_election#fencing) for the limits of this guarantee.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{Controller, LeaderElector, SharedInformerFactory};
    /// # fn example(client: kube::Client) -> kube_informer::Result<()> {
    /// let elector = LeaderElector::builder(client.clone(), "kube-system", "my-operator").build()?;
    /// let factory = SharedInformerFactory::new(client);
    /// let controller = Controller::new(&factory.informer::<ConfigMap>()).leader_election(&elector);
    /// # Ok(())
    /// # }
    /// ```
    pub fn leader_election(mut self, elector: &LeaderElector) -> Self {
        self.options.elector = Some(elector.clone());
        self
    }

    /// Returns the queue, to add keys from elsewhere.
    pub fn queue(&self) -> &WorkQueue {
        &self.shared.queue
    }

    /// Returns a handle to observe and stop the controller while it runs.
    pub fn handle(&self) -> ControllerHandle {
        ControllerHandle::new(self.shared.clone())
    }

    /// Starts the informers that the controller uses, waits until they have synced, and reconciles
    /// until the controller or one of the informers is stopped.
    ///
    /// Dropping the future stops it at once, and drops running reconciles.
    pub async fn run(self, reconciler: impl Reconciler<K>) -> Result<(), NotSynced> {
        let reconciler = Arc::new(reconciler);
        let reconcile = move |request: Request| -> BoxFuture<'static, _> {
            let (reconciler, request) = (reconciler.clone(), request.cast());
            async move { reconciler.reconcile(request).await.map_err(Into::into) }.boxed()
        };
        let (handler, predicate) = (self.informer.handler(), self.predicate);
        let name = self.shared.handler_name();
        let main: Trigger = Box::new(move |queue| {
            let worth = move |event: &_| predicate.as_ref().is_none_or(|is| is.passes(event));
            handler.name(&name).enqueue_when(queue, worth, |object| [object.key().clone()])
        });
        let informer = self.informer.clone().cast();
        let triggers = std::iter::once(main).chain(self.triggers).collect();
        let caches = [informer].into_iter().chain(self.caches).collect();
        Loop::new(self.shared, self.options, Arc::new(reconcile)).run(caches, triggers).await
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.shared.name())
            .field("workers", &self.options.workers)
            .finish_non_exhaustive()
    }
}
