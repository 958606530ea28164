//! `SharedInformer`: pops deltas, writes them to the indexer and notifies handlers.

mod builder;
mod core;
mod failures;
mod observed;
mod reflections;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube_core::ApiResource;
use tokio::sync::watch;

use crate::indexer::{Alive, KeepAlive};
use crate::wait::Watched as _;
use crate::{
    Error, EventHandler, EventStream, FieldPath, HandlerBuilder, Index, InformerStatus, ListWatch,
    Lister, Object, Registration, ResourceVersion, Result, State, Untyped, WaitForSync,
};

pub use builder::{FromFactory, FromSource, InformerBuilder};
pub(crate) use builder::{Identity, Options, decoder, options, request_options};
pub(crate) use core::{Core, Tuning};
pub(crate) use observed::OnError;

/// A cache of one resource, shared by any number of handlers and listers. Cheap to clone.
///
/// It runs from [`start`](Self::start) until it is stopped, or until nothing can observe it any more: no
/// factory that could return it again, and no informer handle, lister, index, handler or stream.
pub struct SharedInformer<K = Untyped> {
    core: Arc<Core>,
    alive: Arc<Alive>,
    /// Resync period of handlers that are registered through this handle. The informer itself has
    /// none.
    resync: Option<Duration>,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> SharedInformer<K> {
    pub(crate) fn new(core: Arc<Core>, alive: Arc<Alive>, resync: Option<Duration>) -> Self {
        Self { core, alive, resync, kind: PhantomData }
    }

    /// Builds an informer without a factory, on a custom source.
    ///
    /// The source decides what is listed: namespaces and selectors are configured there, for
    /// example on a [`KubeListWatch`](crate::KubeListWatch), and the builder has no options for
    /// them.
    ///
    /// ```compile_fail
    /// # use kube_informer::{KubeListWatch, SharedInformer};
    /// # fn built(source: KubeListWatch) {
    /// let pods: SharedInformer = SharedInformer::from_source(source).labels("app=web").build();
    /// # }
    /// ```
    ///
    /// ```
    /// # use kube_informer::{KubeListWatch, SharedInformer};
    /// # fn built(source: KubeListWatch) {
    /// let pods: SharedInformer = SharedInformer::from_source(source.labels("app=web")).build();
    /// # }
    /// ```
    pub fn from_source(source: impl ListWatch) -> InformerBuilder<K, FromSource> {
        InformerBuilder::from_source(Arc::new(source))
    }

    /// Returns a read-only view of the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.core.store.clone(), self.keep())
    }

    /// Adds a handler with the default options. However late it is added, it first receives every
    /// cached object.
    #[track_caller]
    pub fn add_event_handler(&self, handler: impl EventHandler<K>) -> Registration {
        self.handler().register(handler)
    }

    /// Configures and adds a handler: set options, then register closures or take a stream.
    pub fn handler(&self) -> HandlerBuilder<K> {
        HandlerBuilder::new(self.core.processor.clone(), self.keep(), self.resync)
    }

    /// Returns the events as a stream.
    #[track_caller]
    pub fn events(&self) -> EventStream<K> {
        self.handler().stream()
    }

    /// Returns an index by the value of a label. Calling it again returns the same index.
    pub fn index_by_label(&self, label: &str) -> Index<K> {
        Index::label(&self.core.store, self.keep(), label)
    }

    /// Returns an index by a field (`"spec.nodeName"`, `"spec.containers[*].image"`), which is read
    /// from the bytes. Calling it again returns the same index. A malformed path is an error.
    pub fn index_by_field(&self, path: impl Into<FieldPath>) -> Result<Index<K>> {
        Index::field(&self.core.store, self.keep(), path.into())
    }

    /// Returns an index by the uid of the controller that owns the object.
    pub fn index_by_controller(&self) -> Index<K> {
        Index::controller(&self.core.store, self.keep())
    }

    /// Returns an index by a function that maps an object to an `Option`, an array or a `Vec` of
    /// owned values.
    ///
    /// A name that another index has is an error. The index is removed when its last handle is
    /// dropped.
    pub fn index_by<V>(
        &self,
        name: &str,
        values: impl Fn(&Object<K>) -> V + Send + Sync + 'static,
    ) -> Result<Index<K>>
    where
        V: IntoIterator<Item: Into<Arc<str>>>,
    {
        Index::function(&self.core.store, self.keep(), name, values)
    }

    /// Writes the cache to a file, from which the next run of the program can
    /// [start](InformerBuilder::warm_start): the objects, their version, and a description of them.
    ///
    /// An existing file is replaced atomically, and only its owner may read the new one. It contains the whole
    /// cache as text, so Secrets are refused: see [`snapshot_with_secrets`](Self::snapshot_with_secrets). The
    /// cluster is identified by the namespace `kube-system`, which the program needs permission to get.
    ///
    /// Files are large: take a snapshot now and then and on shutdown, not after every event. A snapshot is
    /// useless once it is too old for the server to resume from (about five minutes, with kube-apiserver's
    /// defaults).
    ///
    /// ```
    /// # use embedded_apiserver::ApiServer;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::SharedInformerFactory;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> anyhow::Result<()> {
    /// # let client = ApiServer::start().client();
    /// # let directory = std::env::temp_dir().join(format!("kube-informer-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let path = directory.join("pods.snapshot");
    /// let factory = SharedInformerFactory::new(client);
    /// let pods = factory.builder_for::<Pod>().warm_start(&path).build();
    /// factory.start();
    /// pods.wait_for_sync().await?; // at once, from the second run on
    /// pods.snapshot(&path).await?;
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok(()) }
    /// ```
    pub async fn snapshot(&self, path: impl AsRef<Path>) -> Result<()> {
        self.core.snapshot(path.as_ref(), false).await
    }

    /// Like [`snapshot`](Self::snapshot), Secrets included: anyone who can read the file can read
    /// their values.
    pub async fn snapshot_with_secrets(&self, path: impl AsRef<Path>) -> Result<()> {
        self.core.snapshot(path.as_ref(), true).await
    }

    /// Starts the informer on the current Tokio runtime. Does nothing if it runs already, or has
    /// been stopped.
    ///
    /// # Panics
    ///
    /// If called outside of a Tokio runtime.
    pub fn start(&self) {
        self.core.start();
    }

    /// Starts the informer, waits until `stop` completes or the informer is stopped in another way,
    /// and [shuts it down](Self::shutdown).
    ///
    /// # Panics
    ///
    /// If called outside of a Tokio runtime.
    pub async fn run(&self, stop: impl Future) {
        self.start();
        tokio::select! {
            biased;
            _ = stop => {}
            () = self.core.until_stopped() => {}
        }
        self.shutdown().await;
    }

    /// Stops the informer for all its users, and returns at once. If it is requested again, the
    /// factory makes a new one.
    pub fn stop(&self) {
        self.core.stop();
    }

    /// Stops the informer and waits until its tasks and callbacks have ended.
    pub async fn shutdown(&self) {
        self.core.shutdown().await;
    }

    /// Returns whether the informer has been stopped, or has ended because nothing used it.
    pub fn is_stopped(&self) -> bool {
        self.core.is_stopped()
    }

    /// Returns whether the first list is in the cache. Once true, it stays true; see
    /// [`is_live`](Self::is_live) for the current state.
    pub fn has_synced(&self) -> bool {
        self.core.store.has_synced()
    }

    /// Waits until the first list is in the cache. It always returns: see [`WaitForSync`].
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::new([self.core.clone() as _])
    }

    /// Returns resource, scope and selectors as text.
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// Returns the current activity.
    pub fn state(&self) -> State {
        self.core.states().borrow().clone()
    }

    /// Returns a receiver of the current activity and all its changes.
    pub fn watch_state(&self) -> watch::Receiver<State> {
        self.core.states()
    }

    /// Returns whether a watch is open and has received something recently.
    pub fn is_live(&self) -> bool {
        self.core.is_live()
    }

    /// Returns the time since the server last confirmed that the cache is up to date; `None` before
    /// the first time. Normally less than a minute, the interval between bookmarks.
    pub fn staleness(&self) -> Option<Duration> {
        self.core.staleness()
    }

    /// Returns a summary of the informer's state.
    pub fn status(&self) -> InformerStatus {
        self.core.status()
    }

    /// Returns the handlers and streams that are registered now, including those of other handles.
    pub fn handlers(&self) -> Vec<Registration> {
        self.core.processor.registrations()
    }

    /// Returns the resource, unless the informer has a custom source.
    pub fn resource(&self) -> Option<&ApiResource> {
        self.core.resource()
    }

    /// Returns the version of the cache.
    pub fn resource_version(&self) -> ResourceVersion {
        self.core.store.resource_version()
    }

    /// Waits until the cache has at least this version: to read your own writes.
    ///
    /// Fails when the informer stops, and at once if the version [cannot be
    /// compared](Error::is_incomparable_version) with the cache's, because the wait would never end. There is
    /// no timeout: use `tokio::time::timeout`.
    pub async fn wait_for_version(&self, version: impl Into<ResourceVersion>) -> Result<()> {
        self.core.wait_for_version(version.into()).await
    }

    /// Returns the objects that could not be stored (a transform failed, or there is no metadata) with the
    /// reason; [`Error::key`] is the object's key, if it could be read.
    pub fn failed(&self) -> Vec<Error> {
        self.core.failed()
    }

    /// Returns a handle to the same informer whose objects decode as another type, such as a
    /// smaller struct.
    pub fn cast<T: 'static>(self) -> SharedInformer<T> {
        SharedInformer::new(self.core, self.alive, self.resync)
    }

    /// Adds observers of errors, which last as long as this handle and everything derived from it.
    pub(crate) fn observed_by(self, on_error: Vec<OnError>) -> Self {
        if on_error.is_empty() {
            return self;
        }
        self.core.observe_errors(&on_error);
        self.ending_with(move || drop(on_error))
    }

    /// Adds a function to call when this handle and everything derived from it have been dropped.
    pub(crate) fn ending_with(self, end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { alive: self.alive.and(end), ..self }
    }

    pub(crate) fn with_resync(self, resync: Option<Duration>) -> Self {
        Self { resync, ..self }
    }

    /// Returns whether the other handle refers to the same cache.
    pub(crate) fn is_same<T>(&self, other: &SharedInformer<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn alive(&self) -> &Arc<Alive> {
        &self.alive
    }

    /// Returns a guard that keeps the informer running.
    #[expect(clippy::unnecessary_wraps, reason = "stores of one's own keep nothing running")]
    fn keep(&self) -> KeepAlive {
        Some(self.alive.clone())
    }
}

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        let (core, alive) = (self.core.clone(), self.alive.clone());
        Self { core, alive, resync: self.resync, kind: PhantomData }
    }
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", self.core.name())
            .field("state", &*self.core.states().borrow())
            .finish_non_exhaustive()
    }
}
