//! Informers, a work queue and workers: a reconcile loop.
//!
//! A controller reconciles the objects of one kind: it looks at one of them, and at whatever else its
//! caches have, and brings the world to where the object wants it. It is told *which* object to look at,
//! never what happened to it, so that nothing is missed when several things happen at once, or when it was
//! not running.
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
//! - Nothing is reconciled before all caches that the controller uses are synced.
//! - A key is never reconciled twice at the same time, however many workers there are.
//! - A change is never missed: whatever comes while a key is being reconciled has it reconciled once more.
//! - A reconcile that fails, panics or takes too long is retried, each time after a longer pause, while
//!   other keys go on.
//! - A reconcile does not begin before the caches have what this controller [wrote](Request::wrote) for
//!   the same key. Something written that is deleted before any cache has seen it, which no event tells, is
//!   noticed too: the key is reconciled once more after ten seconds.
//!
//! Informers are shared: ten controllers of one kind cost one list and one watch. With
//! [leader election](Controller::leader_election) keys are reconciled only while this process leads; the caches
//! are filled before that.

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

/// How long what runs when the controller is stopped may take to finish.
const GRACEFUL_STOP: Duration = Duration::from_secs(30);

/// How long a key waits until the caches have what was written for it. Caches are behind for as long as
/// a watch takes to come back; longer than this, it is better to work with what there is.
const CONSISTENCY_TIMEOUT: Duration = Duration::from_secs(30);

/// A reconcile loop to be. See the [module](self).
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
    /// Reconciles every object of this informer: when it is there, when it changes, when it is gone.
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

    /// A name for logs, status and metrics; that of the informer otherwise. The first name stays.
    pub fn name(self, name: &str) -> Self {
        self.shared.set_name(name);
        self
    }

    /// Only the events of the main kind that this lets pass.
    pub fn when(mut self, predicate: Predicate<K>) -> Self {
        self.predicate = Some(match self.predicate.take() {
            None => predicate,
            Some(before) => before.and(predicate),
        });
        self
    }

    /// Also when something changes that an object of the main kind owns (`controller: true`).
    pub fn owns<T: 'static>(self, informer: &SharedInformer<T>) -> Self {
        self.owns_when(informer, Predicate::new(|_| true))
    }

    /// The same for the events that a predicate lets pass.
    pub fn owns_when<T: 'static>(
        self,
        informer: &SharedInformer<T>,
        predicate: Predicate<T>,
    ) -> Self {
        let owners = self.informer.lister();
        self.watches_when(informer, predicate, move |object| owner_key(object, &owners))
    }

    /// Also when an object changes that concerns objects of the main kind: the function says which.
    ///
    /// It is asked about the former state of an object too, and should do no more than look something
    /// up: every event goes through it.
    pub fn watches<T: 'static, Keys: IntoIterator<Item = ObjectKey>>(
        self,
        informer: &SharedInformer<T>,
        concerns: impl Fn(&Object<T>) -> Keys + Send + Sync + 'static,
    ) -> Self {
        self.watches_when(informer, Predicate::new(|_| true), concerns)
    }

    /// The same for the events that a predicate lets pass.
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

    /// Waits for this cache too before anything is reconciled, because reconciles read it. Nothing is
    /// reconciled because of it.
    pub fn needs<T: 'static>(mut self, informer: &SharedInformer<T>) -> Self {
        if !self.caches.iter().any(|known| known.is_same(informer)) {
            self.caches.push(informer.clone().cast());
        }
        self
    }

    /// How many keys are reconciled at the same time; 1 without this, as in controller-runtime.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// How long a reconcile may take. One that takes longer is dropped where it waits, and retried.
    /// Without this there is no limit.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// How keys that fail wait: from 5 ms, twice as long each time, up to 1,000 s without this. The
    /// first limiter stays.
    pub fn rate_limiter(self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.shared.queue.decide(limiter);
        self
    }

    /// How long the first lists may take altogether before [`run`](Self::run) gives up. Without this it
    /// does so after 2 minutes in which nothing arrives.
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.options.sync_timeout = Some(limit);
        self
    }

    /// How long a key may wait until the caches have what was [written](Request::wrote) for it, 30 s
    /// without this. When that is over it is reported, and the key is reconciled all the same.
    pub fn consistency_timeout(mut self, limit: Duration) -> Self {
        self.options.consistency_timeout = limit;
        self
    }

    /// Told of every reconcile that fails, panics, takes too long, or runs on a cache that is behind.
    pub fn on_error(
        mut self,
        report: impl Fn(&ObjectKey, &BoxError) + Send + Sync + 'static,
    ) -> Self {
        self.options.on_error.push(Box::new(report));
        self
    }

    /// Stops when this is ready: no reconcile begins after that, and those that run are
    /// [given time](Self::graceful_stop) to finish. Keys that are still queued are
    /// dropped: the next instance lists everything again.
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

    /// How long reconciles that run may take to finish when the controller is stopped, 30 s without this.
    /// Those that take longer are dropped where they wait.
    pub fn graceful_stop(mut self, limit: Duration) -> Self {
        self.options.graceful_stop = limit;
        self
    }

    /// Reconciles only while this candidate leads.
    ///
    /// The caches are filled, and the queue with them, before that: a new leader begins at once. When
    /// leadership is lost, reconciles that run are dropped before another candidate can lead, and the
    /// controller waits until it leads again. When it is stopped it finishes what runs, and then releases the
    /// lease.
    ///
    /// Controllers that are given clones of one elector lead together: the lease is released when the last
    /// of them has stopped. See [fencing](crate::leader_election#fencing) for what this cannot prevent.
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

    /// The queue, to add keys from elsewhere.
    pub fn queue(&self) -> &WorkQueue {
        &self.shared.queue
    }

    /// To look at the controller, and to stop it, while it runs.
    pub fn handle(&self) -> ControllerHandle {
        ControllerHandle::new(self.shared.clone())
    }

    /// Starts the informers that it uses, waits until they are synced, and reconciles until it is
    /// stopped, or one of the informers is.
    ///
    /// Dropping the future stops it at once: reconciles that run are dropped where they wait.
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
