//! `SharedInformerFactory`: one informer for each combination of resource, scope, selectors and
//! storage.

mod made;

use std::any::TypeId;
use std::fmt::{self, Display};
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use kube_core::{ApiResource, ClusterResourceScope, DynamicObject, PartialObjectMeta};

use crate::indexer::Alive;
use crate::informer::{Core, OnError, Options, Tuning, decoder, options, request_options};
use crate::list_watch::{Client, KubeListWatch};
use crate::reflector::settings;
use crate::wait::Watched;
use crate::{
    ErrorReport, FieldPath, InformerBuilder, InformerStatus, Kind, ListWatch, SharedInformer,
    StaticKind, Storage, Transform, WaitForSync,
};

use made::Made;

/// Creates informers and shares them. Cheap to clone.
///
/// Requests for the same resource in the same namespaces, with the same selectors, transform and storage, share
/// one informer and one watch, even if some are typed and others dynamic. Each caller has its own handlers,
/// resync period and error observers.
///
/// The factory keeps its informers running, because they can be requested again. An informer with its own
/// closure ([`InformerBuilder::map`]) cannot be, and runs only as long as it is in use elsewhere.
#[derive(Clone)]
pub struct SharedInformerFactory(Arc<Shared>);

struct Shared {
    client: Client,
    defaults: Options,
    /// Error observers of every informer.
    on_error: Vec<OnError>,
    made: Arc<Made>,
}

impl SharedInformerFactory {
    /// Creates a factory with the default options: all namespaces, no resync.
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Configures a factory.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder { client, options: Options::default(), stop_on: None }
    }

    /// Returns the informer of a kind, with the factory's defaults.
    pub fn informer<K: StaticKind>(&self) -> SharedInformer<K> {
        self.builder_for::<K>().build()
    }

    /// Returns the informer of a kind's metadata: the server omits the rest.
    pub fn metadata<K: StaticKind>(&self) -> SharedInformer<PartialObjectMeta<K>> {
        self.builder_for::<PartialObjectMeta<K>>().build()
    }

    /// Returns the informer of a kind that is known only at run time. It shares its watch with
    /// typed informers.
    pub fn dynamic(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        self.builder_with::<DynamicObject>(resource).build()
    }

    /// Configures an informer.
    pub fn builder_for<K: StaticKind>(&self) -> InformerBuilder<K> {
        self.builder_with(&())
    }

    /// Configures an informer of a kind that is described by a value (`DynamicObject`,
    /// `kube::core::Object`).
    pub fn builder_with<K: Kind>(&self, kind: &K::DynamicType) -> InformerBuilder<K> {
        let mut options = self.0.defaults.clone();
        options.identity.resource = Some(ApiResource::erase::<K>(kind));
        options.identity.cluster_scoped =
            TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        options.identity.metadata_only = K::metadata_api();
        options.decoder = Some(decoder::<K>());
        let factory = self.0.clone();
        InformerBuilder::from_factory(options, move |options| factory.informer(options))
    }

    /// Starts all informers on the current Tokio runtime. Informers that are created later start
    /// immediately.
    ///
    /// # Panics
    ///
    /// If called outside of a Tokio runtime.
    pub fn start(&self) {
        self.0.made.start();
    }

    /// Starts all informers, waits until `stop` completes or the factory is stopped in another way,
    /// and [shuts down](Self::shutdown): the last line of a `main`.
    ///
    /// # Panics
    ///
    /// If called outside of a Tokio runtime.
    pub async fn run(&self, stop: impl Future) {
        self.start();
        tokio::select! {
            biased;
            _ = stop => {}
            () = self.0.made.closed() => {}
        }
        self.shutdown().await;
    }

    /// Waits until the first list of every informer is in its cache. It always returns: see
    /// [`WaitForSync`].
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::new(self.0.made.cores().into_iter().map(|core| core as Arc<dyn Watched>))
    }

    /// Returns a summary of every informer.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.0.made.cores().iter().map(|core| core.status()).collect()
    }

    /// Returns every informer, in the order in which they were made. Holding one keeps it running.
    pub fn informers(&self) -> Vec<SharedInformer> {
        self.0.made.informers()
    }

    /// Returns a reference that does not keep the factory, and with it its informers, running.
    pub fn downgrade(&self) -> WeakInformerFactory {
        WeakInformerFactory(Arc::downgrade(&self.0))
    }

    /// Reads the informers for metrics for as long as the factory exists.
    #[cfg(feature = "metrics")]
    pub(crate) fn reader(&self) -> impl Fn() -> Option<Vec<Arc<Core>>> + Send + Sync + 'static {
        let factory = Arc::downgrade(&self.0);
        move || Some(factory.upgrade()?.made.cores())
    }

    /// Stops all informers, and returns at once. Nothing can be started after that.
    pub fn stop(&self) {
        self.0.made.stop();
    }

    /// Stops all informers and waits until the last task and callback have ended, including those of informers
    /// that were stopped earlier and replaced.
    pub async fn shutdown(&self) {
        self.0.made.shutdown().await;
    }
}

impl Shared {
    /// Returns the informer with this identity, or a new one.
    fn informer(&self, options: &Options) -> SharedInformer {
        // An informer that cannot be requested again is not kept running.
        let own = options.identity.transform.has_function_beyond(&self.defaults.identity.transform);
        self.made.get_or_make(&options.identity, !own, || {
            let (core, alive) = self.core(options);
            SharedInformer::new(core, alive, None).observed_by(self.on_error.clone())
        })
    }

    fn core(&self, options: &Options) -> (Arc<Core>, Arc<Alive>) {
        let source = self.source(options);
        let resource = options.identity.resource.clone().map(Arc::new);
        let tuning = Tuning { resource, ..options.tuning.clone() };
        let single = |source: KubeListWatch| {
            let origin = Some(Arc::new(source.origin()));
            Core::new(Arc::new(source), Tuning { origin, ..tuning.clone() })
        };
        match &*options.identity.namespaces {
            [] => single(source),
            [namespace] => single(source.namespace(namespace)),
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
        let source = match options.list_timeout {
            Some(silence_max) => source.list_timeout(silence_max),
            None => source,
        };
        let source = match options.protobuf {
            Some(protobuf) => source.protobuf(protobuf),
            None => source,
        };
        if identity.metadata_only { source.metadata_only() } else { source }
    }
}

impl Drop for Shared {
    /// Informers that are in use elsewhere keep running.
    fn drop(&mut self) {
        self.made.let_go();
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.made.cores().iter().map(|core| core.name().clone()).collect();
        f.debug_struct("SharedInformerFactory").field("informers", &names).finish_non_exhaustive()
    }
}

/// A reference to a factory that does not keep it running. Made by [`SharedInformerFactory::downgrade`].
#[derive(Clone)]
pub struct WeakInformerFactory(Weak<Shared>);

impl WeakInformerFactory {
    /// Returns the factory, unless it has been dropped.
    pub fn upgrade(&self) -> Option<SharedInformerFactory> {
        self.0.upgrade().map(SharedInformerFactory)
    }
}

impl fmt::Debug for WeakInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakInformerFactory").field(&self.upgrade()).finish()
    }
}

/// Builds a factory. The options apply to all its informers, unless an informer overrides them.
#[must_use = "nothing is made until build"]
pub struct FactoryBuilder {
    client: Client,
    options: Options,
    stop_on: Option<BoxFuture<'static, ()>>,
}

impl FactoryBuilder {
    /// Restricts namespaced kinds to a namespace; an empty name means all namespaces.
    pub fn namespace(self, namespace: impl AsRef<str>) -> Self {
        self.namespaces([namespace])
    }

    /// Restricts namespaced kinds to these namespaces; see [`InformerBuilder::namespaces`].
    pub fn namespaces<N: AsRef<str>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.options.identity.set_namespaces(namespaces);
        self
    }

    request_options!(self => self.options);
    options!(self => self.options);

    /// Sets how objects are stored.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.options.identity.storage = storage;
        self
    }

    /// Stops all informers when this future completes: `tokio::signal::ctrl_c()`,
    /// `token.cancelled_owned()`.
    ///
    /// It is polled from [`start`](SharedInformerFactory::start) on, as long as any informer of the factory
    /// runs, even after the factory itself has been dropped.
    pub fn stop_on(mut self, stop: impl Future + Send + 'static) -> Self {
        self.stop_on = Some(stop.map(|_| ()).boxed());
        self
    }

    /// Builds the factory. Nothing runs until `start`.
    pub fn build(mut self) -> SharedInformerFactory {
        let on_error = std::mem::take(&mut self.options.on_error);
        SharedInformerFactory(Arc::new(Shared {
            client: self.client,
            defaults: self.options,
            on_error,
            made: Arc::new(Made::new(self.stop_on)),
        }))
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").finish_non_exhaustive()
    }
}
