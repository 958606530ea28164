//! What an informer may be told before it is made.

use std::any::TypeId;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube_core::ApiResource;
use kube_core::discovery::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Core, OnError, SharedInformer, Tuning};
use crate::list_watch::Repacked;
use crate::object::{Decoder, Packer, decode};
use crate::{ErrorReport, FieldPath, Kind, ListWatch, Storage, Transform, Untyped};

/// What is cached, and how: two requests with equal ones share an informer.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Identity {
    pub(crate) resource: Option<ApiResource>,
    pub(crate) cluster_scoped: bool,
    pub(crate) metadata_only: bool,
    /// Sorted, each once; none means all. Set by `set_namespaces`.
    pub(crate) namespaces: Vec<String>,
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) keep_managed_fields: bool,
    pub(crate) transform: Transform,
    pub(crate) storage: Storage,
    /// With `Storage::Decoded`, as which type.
    pub(crate) decoded_as: Option<TypeId>,
}

impl Identity {
    /// An empty name is all namespaces, as client-go's `NamespaceAll` is. Beside it the others would be
    /// listed twice, and of what is listed twice nothing can be deleted.
    pub(crate) fn set_namespaces<N: AsRef<str>>(&mut self, names: impl IntoIterator<Item = N>) {
        let mut names: Vec<_> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let all = names.first().is_some_and(String::is_empty);
        self.namespaces = if all { Vec::new() } else { names };
    }
}

/// What each request may have of its own, on a shared informer too.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) identity: Identity,
    pub(crate) decoder: Option<(TypeId, Decoder)>,
    pub(crate) tuning: Tuning,
    pub(crate) resync: Option<Duration>,
    pub(crate) on_error: Vec<OnError>,
}

impl Options {
    /// Leaves out what makes no difference, so that who asks for the same gets the same: as which
    /// type objects are kept decoded if they are not, and namespaces of a kind that has none. A
    /// dynamic kind does not know whether it has.
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.identity.cluster_scoped) {
            self.identity.namespaces.clear();
        }
        if self.identity.storage == Storage::Packed {
            self.decoder = None;
        }
        self.identity.decoded_as = self.decoder.map(|(kind, _)| kind);
    }

    pub(crate) fn packer(&self) -> Packer {
        Packer::new(
            self.identity.transform.clone(),
            self.decoder.map(|(_, decoder)| decoder),
            self.identity.keep_managed_fields,
        )
    }
}

/// All that the core is given of `K`.
pub(crate) fn decoder<K: DeserializeOwned + Send + Sync + 'static>() -> (TypeId, Decoder) {
    (TypeId::of::<K>(), |json| Ok(Arc::new(decode::<K>(json)?)))
}

/// Who has informers to share: the factory.
pub(crate) trait Sharing: Send + Sync {
    /// The informer that there is for exactly this, or a new one.
    fn informer(&self, options: &Options) -> SharedInformer;
}

/// Where an informer comes from.
enum Origin {
    Shared(Arc<dyn Sharing>),
    Source(Arc<dyn ListWatch>),
}

/// An informer to be; what is not said here is as the factory says.
#[must_use = "nothing is made until build"]
pub struct InformerBuilder<K = Untyped> {
    origin: Origin,
    pub(crate) options: Options,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> InformerBuilder<K> {
    pub(crate) fn from_factory(factory: Arc<dyn Sharing>, options: Options) -> Self {
        Self { origin: Origin::Shared(factory), options, kind: PhantomData }
    }

    pub(super) fn from_source(source: Arc<dyn ListWatch>) -> Self {
        Self { origin: Origin::Source(source), options: Options::default(), kind: PhantomData }
    }

    /// All namespaces, whatever the factory says.
    pub fn all_namespaces(mut self) -> Self {
        self.options.identity.namespaces.clear();
        self
    }

    /// The scope of a dynamic kind, as discovery gave it: kinds without namespaces do not heed the
    /// factory's.
    pub fn scope(mut self, scope: &Scope) -> Self {
        self.options.identity.cluster_scoped = *scope == Scope::Cluster;
        self
    }

    /// Only objects with these labels, chosen by the server: a string, or any selector type.
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.options.identity.labels = selector.to_string();
        self
    }

    /// Only objects with these fields, chosen by the server: `"spec.nodeName=worker-1"`.
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.options.identity.fields = selector.to_string();
        self
    }

    /// The resync period of handlers that do not ask for one of their own.
    pub fn resync(mut self, period: Duration) -> Self {
        self.options.resync = Some(period);
        self
    }

    /// What is done to objects before they are kept, after what the factory does.
    pub fn transform(mut self, transform: Transform) -> Self {
        let before = std::mem::take(&mut self.options.identity.transform);
        self.options.identity.transform = before.then(transform);
        self
    }

    /// Leaves out these fields.
    pub fn drop_fields<P: Into<FieldPath>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        self.transform(Transform::drop_fields(paths))
    }

    /// Keeps `metadata.managedFields`, which are left out otherwise: they are half of many objects,
    /// and hardly anybody reads them.
    pub fn keep_managed_fields(mut self) -> Self {
        self.options.identity.keep_managed_fields = true;
        self
    }

    /// Told of every error and of what is done about it. Several are all told.
    pub fn on_error(mut self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
        self.options.on_error.push(Arc::new(report));
        self
    }

    /// Objects per page of a LIST; see [`Reflector::page_size`](crate::Reflector::page_size). Heeded
    /// by who makes the informer first.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.options.tuning.reflector.set_page_size(objects);
        self
    }

    /// Where the informer's randomness comes from, for tests that must run the same way again.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.tuning.seed = Some(seed);
        self
    }

    /// The informer: the one that the factory has for exactly this, or a new one.
    pub fn build(mut self) -> SharedInformer<K> {
        self.options.settle();
        if let Err(error) = self.options.identity.transform.check() {
            // There is nobody to give it to; every object will be reported with it.
            tracing::error!("no object can be kept, the transform is wrong: {error}");
        }
        let resync = self.options.resync;
        let informer = match self.origin {
            Origin::Shared(factory) => factory.informer(&self.options),
            Origin::Source(source) => Self::on_source(source, &self.options),
        };
        for on_error in self.options.on_error {
            informer.core().add_on_error(on_error);
        }
        let SharedInformer { core, alive, .. } = informer;
        SharedInformer::new(core, alive, resync)
    }

    fn on_source(source: Arc<dyn ListWatch>, options: &Options) -> SharedInformer {
        let packer = options.packer();
        let source = if packer.needs_repack() {
            Arc::new(Repacked::new(source, Arc::new(packer))) as Arc<dyn ListWatch>
        } else {
            source
        };
        let (core, alive) = Core::new(source, options.tuning.clone());
        SharedInformer::new(core, alive, None)
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> InformerBuilder<K> {
    /// How objects are kept.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.options.identity.storage = storage;
        self.options.decoder = Some(decoder::<K>());
        self
    }

    /// Changes every object before it is kept. It is decoded and packed again for that.
    pub fn map(self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize,
    {
        self.transform(Transform::map(change))
    }
}

impl<K: Kind> InformerBuilder<K> {
    /// Only objects of this namespace; an empty name is all namespaces. Kinds without namespaces do not
    /// have this method.
    pub fn namespace(self, namespace: impl AsRef<str>) -> Self
    where
        K::Scope: kube_core::NamespaceScope,
    {
        self.namespaces([namespace])
    }

    /// Only objects of these namespaces, behind one lister: one list and one watch each, so that a
    /// permission for these is enough.
    ///
    /// A name that is given twice counts once. No name at all, or an empty one among others (which is
    /// what `"a,".split(',')` gives), is all namespaces, with one list and one watch.
    pub fn namespaces<N: AsRef<str>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self
    where
        K::Scope: kube_core::NamespaceScope,
    {
        self.options.identity.set_namespaces(namespaces);
        self
    }
}

impl<K> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.options.identity.resource.as_ref().map(|resource| &resource.plural);
        f.debug_struct("InformerBuilder").field("resource", &resource).finish_non_exhaustive()
    }
}
