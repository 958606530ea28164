//! `SharedInformerFactory`: one informer for each resource, scope, selectors and way to keep it.

use std::any::TypeId;
use std::fmt::{self, Display};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use futures_util::future::join_all;
use kube_core::{ApiResource, ClusterResourceScope, DynamicObject, PartialObjectMeta};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::indexer::Alive;
use crate::informer::{Core, Identity, OnError, Options, Sharing, decoder};
use crate::list_watch::{Client, KubeListWatch};
use crate::wait::Watched;
use crate::{
    ErrorReport, FieldPath, InformerBuilder, InformerStatus, Kind, ListWatch, SharedInformer,
    StaticKind, Storage, Transform, WaitForSync,
};

/// Makes informers and shares them. Cheap to clone.
///
/// Whoever asks for the same resource in the same namespace, with the same selectors, transform and
/// storage gets the same informer, with one watch; typed and dynamic ones share it too. Handlers,
/// resync periods and error observers are everybody's own.
#[derive(Clone)]
pub struct SharedInformerFactory(Arc<Shared>);

struct Shared {
    client: Client,
    defaults: Options,
    /// For informers that are made after the factory was started.
    on_error: Vec<OnError>,
    state: Mutex<State>,
    stop: CancellationToken,
}

struct State {
    informers: Vec<(Identity, SharedInformer)>,
    started: bool,
    stop_on: Option<BoxFuture<'static, ()>>,
}

impl SharedInformerFactory {
    /// A factory with the default options: all namespaces, no resync.
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// A factory with other defaults.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder { client, options: Options::default(), stop_on: None }
    }

    /// The informer of a kind, with the factory's defaults.
    pub fn informer<K: StaticKind>(&self) -> SharedInformer<K> {
        self.builder_for::<K>().build()
    }

    /// The informer of a kind's metadata alone: the server leaves out the rest.
    pub fn metadata<K: StaticKind>(&self) -> SharedInformer<PartialObjectMeta<K>> {
        self.builder_for::<PartialObjectMeta<K>>().build()
    }

    /// The informer of a kind that is known at run time only. Shares its watch with typed ones.
    pub fn dynamic(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        self.builder_with::<DynamicObject>(resource).build()
    }

    /// An informer with options of its own.
    pub fn builder_for<K: StaticKind>(&self) -> InformerBuilder<K> {
        self.builder_with(&())
    }

    /// The same for kinds that need a value to know what they are (`DynamicObject`,
    /// `kube::core::Object`).
    pub fn builder_with<K: Kind>(&self, kind: &K::DynamicType) -> InformerBuilder<K> {
        let mut options = self.0.defaults.clone();
        options.identity.resource = Some(ApiResource::erase::<K>(kind));
        options.identity.cluster_scoped =
            TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        options.identity.metadata_only = K::metadata_api();
        options.decoder = Some(decoder::<K>());
        InformerBuilder::from_factory(self.0.clone(), options)
    }

    /// Starts all informers, on the current Tokio runtime. Those that are asked for later start at
    /// once.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        let mut state = self.0.state.lock();
        state.started = true;
        if let Some(stop_on) = state.stop_on.take() {
            let factory = Arc::downgrade(&self.0);
            let stopped = self.0.stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = stopped.cancelled() => {}
                    () = stop_on => if let Some(shared) = factory.upgrade() { shared.stop() },
                }
            });
        }
        for (_, informer) in &state.informers {
            informer.start();
        }
    }

    /// Waits until the first list of every informer is in its cache. It always ends: see
    /// [`WaitForSync`].
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::new(self.0.cores().into_iter().map(|core| core as Arc<dyn Watched>))
    }

    /// Every informer at a glance.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.0.cores().iter().map(|core| core.status()).collect()
    }

    /// Asks everything to stop, and returns at once. Nothing can be started after that.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Stops everything and waits until the last task and the last callback have ended.
    pub async fn shutdown(&self) {
        self.0.stop();
        join_all(self.0.cores().iter().map(|core| core.shutdown())).await;
    }
}

impl Sharing for Shared {
    fn informer(&self, options: &Options) -> SharedInformer {
        let mut state = self.state.lock();
        state.informers.retain(|(_, informer)| !informer.is_stopped());
        let shared = state.informers.iter().find(|(identity, _)| *identity == options.identity);
        if let Some((_, informer)) = shared {
            return informer.clone();
        }
        let (core, alive) = self.core(options);
        for on_error in &self.on_error {
            core.add_on_error(on_error.clone());
        }
        let informer = SharedInformer::new(core, alive, None);
        if self.stop.is_cancelled() {
            informer.stop();
        } else if state.started {
            informer.start();
        }
        state.informers.push((options.identity.clone(), informer.clone()));
        informer
    }
}

impl Shared {
    fn core(&self, options: &Options) -> (Arc<Core>, Arc<Alive>) {
        let source = self.source(options);
        let tuning = options.tuning.clone();
        match &*options.identity.namespaces {
            [] => Core::new(Arc::new(source), tuning),
            [namespace] => Core::new(Arc::new(source.namespace(namespace)), tuning),
            several => {
                let name = format!("{} in {}", source.name(), several.join(", "));
                let part = |namespace: &String| {
                    let source: Arc<dyn ListWatch> = Arc::new(source.clone().namespace(namespace));
                    (namespace.as_str().into(), source)
                };
                Core::of_namespaces(name.into(), several.iter().map(part).collect(), tuning)
            }
        }
    }

    fn source(&self, options: &Options) -> KubeListWatch {
        let identity = &options.identity;
        let resource = identity.resource.as_ref().expect("set by builder_with");
        let source = KubeListWatch::new(self.client.clone(), resource)
            .labels(&identity.labels)
            .fields(&identity.fields)
            .packer(Arc::new(options.packer()));
        if identity.metadata_only { source.metadata_only() } else { source }
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        self.state.lock().informers.iter().map(|(_, informer)| informer.core().clone()).collect()
    }

    fn stop(&self) {
        self.stop.cancel();
        self.cores().iter().for_each(|core| core.stop());
    }
}

impl Drop for Shared {
    /// What waits for the end waits no longer; informers that others hold go on.
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.cores().iter().map(|core| core.name().clone()).collect();
        f.debug_struct("SharedInformerFactory").field("informers", &names).finish_non_exhaustive()
    }
}

/// A factory to be.
#[must_use = "nothing is made until build"]
pub struct FactoryBuilder {
    client: Client,
    options: Options,
    stop_on: Option<BoxFuture<'static, ()>>,
}

impl FactoryBuilder {
    /// Only objects of this namespace, for kinds that have namespaces; an empty name is all namespaces.
    pub fn namespace(self, namespace: impl AsRef<str>) -> Self {
        self.namespaces([namespace])
    }

    /// Only objects of these namespaces, for kinds that have namespaces; see
    /// [`InformerBuilder::namespaces`].
    pub fn namespaces<N: AsRef<str>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.options.identity.set_namespaces(namespaces);
        self
    }

    /// Only objects with these labels.
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.options.identity.labels = selector.to_string();
        self
    }

    /// Only objects with these fields.
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.options.identity.fields = selector.to_string();
        self
    }

    /// The resync period of handlers that do not ask for one of their own; none without this.
    pub fn resync(mut self, period: Duration) -> Self {
        self.options.resync = Some(period);
        self
    }

    /// How objects are kept.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.options.identity.storage = storage;
        self
    }

    /// What is done to all objects before they are kept.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.options.identity.transform = transform;
        self
    }

    /// Leaves out these fields of all objects.
    pub fn drop_fields<P: Into<FieldPath>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        self.transform(Transform::drop_fields(paths))
    }

    /// Told of every error of every informer, and of what is done about it.
    pub fn on_error(mut self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
        self.options.on_error.push(Arc::new(report));
        self
    }

    /// Where the informers' randomness comes from, for tests that must run the same way again.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.tuning.seed = Some(seed);
        self
    }

    /// Stops everything when this is ready: `tokio::signal::ctrl_c()`, `token.cancelled_owned()`.
    pub fn stop_on(mut self, stop: impl Future + Send + 'static) -> Self {
        self.stop_on = Some(stop.map(|_| ()).boxed());
        self
    }

    /// The factory. Nothing runs until `start`.
    pub fn build(mut self) -> SharedInformerFactory {
        let on_error = std::mem::take(&mut self.options.on_error);
        let state = State { informers: Vec::new(), started: false, stop_on: self.stop_on };
        SharedInformerFactory(Arc::new(Shared {
            client: self.client,
            defaults: self.options,
            on_error,
            state: Mutex::new(state),
            stop: CancellationToken::new(),
        }))
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").finish_non_exhaustive()
    }
}
