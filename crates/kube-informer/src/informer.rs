//! `SharedInformer`: pops deltas, writes the indexer, notifies.

mod builder;
mod core;
mod failures;
mod observed;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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

/// A cache of one resource that any number of handlers and listers share. Cheap to clone.
///
/// It runs from [`start`](Self::start) until it is stopped, or until nothing is left that could
/// notice: no factory that could give it out again, no informer handle, no lister or index, no handler, no
/// stream.
pub struct SharedInformer<K = Untyped> {
    core: Arc<Core>,
    alive: Arc<Alive>,
    /// Of handlers registered through this handle: resync is theirs, not the informer's.
    resync: Option<Duration>,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> SharedInformer<K> {
    pub(crate) fn new(core: Arc<Core>, alive: Arc<Alive>, resync: Option<Duration>) -> Self {
        Self { core, alive, resync, kind: PhantomData }
    }

    /// Builds an informer without a factory, on a source of the program's own.
    ///
    /// What is listed is up to the source: namespaces and selectors are those of, for example, a
    /// [`KubeListWatch`](crate::KubeListWatch), and the builder has none.
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

    /// Reads the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.core.store.clone(), self.keep())
    }

    /// Adds a handler with the default options. Whenever it comes, it first sees all that is there.
    #[track_caller]
    pub fn add_event_handler(&self, handler: impl EventHandler<K>) -> Registration {
        self.handler().register(handler)
    }

    /// Adds a handler: options, then closures or a stream.
    pub fn handler(&self) -> HandlerBuilder<K> {
        HandlerBuilder::new(self.core.processor.clone(), self.keep(), self.resync)
    }

    /// The events as a stream.
    #[track_caller]
    pub fn events(&self) -> EventStream<K> {
        self.handler().stream()
    }

    /// An index by the value of a label. Asking twice gives the same index.
    pub fn index_by_label(&self, label: &str) -> Index<K> {
        Index::label(&self.core.store, self.keep(), label)
    }

    /// An index by a field (`"spec.nodeName"`, `"spec.containers[*].image"`), read from the bytes.
    /// Asking twice gives the same index. A path that cannot be read is an error.
    pub fn index_by_field(&self, path: impl Into<FieldPath>) -> Result<Index<K>> {
        Index::field(&self.core.store, self.keep(), path.into())
    }

    /// An index by the uid of the controller that owns the object.
    pub fn index_by_controller(&self) -> Index<K> {
        Index::controller(&self.core.store, self.keep())
    }

    /// An index by any function that gives an `Option`, an array or a `Vec` of values, owned ones.
    ///
    /// A name that another index has is an error. The index goes with the last handle of it.
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

    /// Writes the cache into a file, for the next run of the program to
    /// [begin with](InformerBuilder::warm_start): objects, version, and what they are of.
    ///
    /// The file replaces one that is there in one step, and only its owner may read it. It has everything that
    /// the cache has, as text: Secrets are refused, see [`snapshot_with_secrets`](Self::snapshot_with_secrets).
    /// Which cluster this is, is told by the namespace `kube-system`: that takes the permission to get it.
    ///
    /// Files are large: take a snapshot now and then, and at the end, not after each event. One that is too old
    /// for the server to resume from (about five minutes, on kube-apiserver with its defaults) is of no use.
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

    /// The same, Secrets included: anyone who can read the file can read their values.
    pub async fn snapshot_with_secrets(&self, path: impl AsRef<Path>) -> Result<()> {
        self.core.snapshot(path.as_ref(), true).await
    }

    /// Starts it, on the current Tokio runtime. Once is enough, twice does no harm; after a stop it
    /// does nothing.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        self.core.start();
    }

    /// Starts it, waits until `stop` is ready or it was stopped otherwise, and
    /// [shuts it down](Self::shutdown).
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn run(&self, stop: impl Future) {
        self.start();
        tokio::select! {
            biased;
            _ = stop => {}
            () = self.core.until_stopped() => {}
        }
        self.shutdown().await;
    }

    /// Asks it to stop, for everybody who shares it; the factory makes a new one when asked again.
    pub fn stop(&self) {
        self.core.stop();
    }

    /// Stops it and waits until its tasks and callbacks have ended.
    pub async fn shutdown(&self) {
        self.core.shutdown().await;
    }

    /// Whether it has been stopped, or was never needed any more.
    pub fn is_stopped(&self) -> bool {
        self.core.is_stopped()
    }

    /// Whether the first list is in the cache. Stays true; see [`is_live`](Self::is_live) for now.
    pub fn has_synced(&self) -> bool {
        self.core.store.has_synced()
    }

    /// Waits until the first list is in the cache. It always ends: see [`WaitForSync`].
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::new([self.core.clone() as _])
    }

    /// Plural, group and version, scope and selectors, as text.
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        self.core.states().borrow().clone()
    }

    /// What it is doing, and every change of it.
    pub fn watch_state(&self) -> watch::Receiver<State> {
        self.core.states()
    }

    /// Whether a watch is up and was heard lately.
    pub fn is_live(&self) -> bool {
        self.core.is_live()
    }

    /// How long ago the server last confirmed that the cache is up to date; `None` before that.
    /// Under a minute while all is well: bookmarks come that often.
    pub fn staleness(&self) -> Option<Duration> {
        self.core.staleness()
    }

    /// All of the above and more.
    pub fn status(&self) -> InformerStatus {
        self.core.status()
    }

    /// The version that the cache is at.
    pub fn resource_version(&self) -> ResourceVersion {
        self.core.store.resource_version()
    }

    /// Waits until the cache is at least at this version: to read what one has written.
    ///
    /// Fails when the informer stops, and at once if the version
    /// [cannot be compared](Error::is_incomparable_version) with the cache's, which would never be known to
    /// have reached it. There is no timeout: `tokio::time::timeout` gives one.
    pub async fn wait_for_version(&self, version: impl Into<ResourceVersion>) -> Result<()> {
        self.core.wait_for_version(version.into()).await
    }

    /// Objects that could not be kept (a transform failed, no metadata), with the reason; their key,
    /// where it could be read, is [`Error::key`].
    pub fn failed(&self) -> Vec<Error> {
        self.core.failed()
    }

    /// The same informer with objects that decode as another type, such as a smaller struct.
    pub fn cast<T: 'static>(self) -> SharedInformer<T> {
        SharedInformer::new(self.core, self.alive, self.resync)
    }

    /// The same with observers of errors, which last as long as this handle and what comes from it.
    pub(crate) fn observed_by(self, on_error: Vec<OnError>) -> Self {
        if on_error.is_empty() {
            return self;
        }
        self.core.observe_errors(&on_error);
        self.ending_with(move || drop(on_error))
    }

    /// The same, with something to be done when this handle and everything that comes from it are gone.
    pub(crate) fn ending_with(self, end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { alive: self.alive.and(end), ..self }
    }

    pub(crate) fn with_resync(self, resync: Option<Duration>) -> Self {
        Self { resync, ..self }
    }

    /// Whether the other handle is one on the same cache.
    pub(crate) fn is_same<T>(&self, other: &SharedInformer<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn alive(&self) -> &Arc<Alive> {
        &self.alive
    }

    /// What whoever has it keeps running.
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
