//! `SharedInformerFactory`: one informer for each resource, scope, selectors and way to keep it.

mod made;

use std::any::TypeId;
use std::fmt::{self, Display};
use std::future::Future;
use std::sync::Arc;
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

/// Makes informers and shares them. Cheap to clone.
///
/// Requests for the same resource in the same namespaces, with the same selectors, transform and storage
/// are given the same informer, with one watch; typed and dynamic ones share it too. Handlers, resync
/// periods and error observers are each caller's own.
///
/// The factory keeps its informers running, because they can be asked for again. An informer with a
/// closure of its own ([`InformerBuilder::map`]) cannot, and runs for as long as something else holds it.
#[derive(Clone)]
pub struct SharedInformerFactory(Arc<Shared>);

struct Shared {
    client: Client,
    defaults: Options,
    /// Of every informer.
    on_error: Vec<OnError>,
    made: Arc<Made>,
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
        let factory = self.0.clone();
        InformerBuilder::from_factory(options, move |options| factory.informer(options))
    }

    /// Starts all informers, on the current Tokio runtime. Those that are asked for later start at
    /// once.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        self.0.made.start();
    }

    /// Starts all informers, waits until `stop` is ready or the factory was stopped otherwise, and
    /// [shuts down](Self::shutdown): the last line of a `main`.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn run(&self, stop: impl Future) {
        self.start();
        tokio::select! {
            biased;
            _ = stop => {}
            () = self.0.made.closed() => {}
        }
        self.shutdown().await;
    }

    /// Waits until the first list of every informer is in its cache. It always ends: see
    /// [`WaitForSync`].
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::new(self.0.made.cores().into_iter().map(|core| core as Arc<dyn Watched>))
    }

    /// Every informer at a glance.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.0.made.cores().iter().map(|core| core.status()).collect()
    }

    /// Asks everything to stop, and returns at once. Nothing can be started after that.
    pub fn stop(&self) {
        self.0.made.stop();
    }

    /// Stops everything and waits until the last task and the last callback have ended, also of informers
    /// that were stopped before and replaced by others.
    pub async fn shutdown(&self) {
        self.0.made.shutdown().await;
    }
}

impl Shared {
    /// The informer that there is for exactly this, or a new one.
    fn informer(&self, options: &Options) -> SharedInformer {
        // An informer that cannot be asked for again is not kept for those who ask.
        let own = options.identity.transform.has_function_beyond(&self.defaults.identity.transform);
        self.made.get_or_make(&options.identity, !own, || {
            let (core, alive) = self.core(options);
            SharedInformer::new(core, alive, None).observed_by(self.on_error.clone())
        })
    }

    fn core(&self, options: &Options) -> (Arc<Core>, Arc<Alive>) {
        let source = self.source(options);
        let tuning = options.tuning.clone();
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
    /// Informers that others hold go on.
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

/// Builds a factory. What is set here holds for all informers that it makes, unless theirs is set.
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

    request_options!(self => self.options);
    options!(self => self.options);

    /// How objects are kept.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.options.identity.storage = storage;
        self
    }

    /// Stops everything when this is ready: `tokio::signal::ctrl_c()`, `token.cancelled_owned()`.
    ///
    /// It is waited for from [`start`](SharedInformerFactory::start) on, for as long as anything of the
    /// factory runs: also when the factory is gone and others hold its informers.
    pub fn stop_on(mut self, stop: impl Future + Send + 'static) -> Self {
        self.stop_on = Some(stop.map(|_| ()).boxed());
        self
    }

    /// The factory. Nothing runs until `start`.
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
