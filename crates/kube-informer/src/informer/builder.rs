//! The options of an informer.

use std::any::TypeId;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube_core::ApiResource;
use kube_core::discovery::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Core, OnError, SharedInformer, Tuning};
use crate::list_watch::Repacked;
use crate::object::{Decoder, Packer, decode};
use crate::reflector::settings;
use crate::{ErrorReport, FieldPath, Kind, ListWatch, Storage, Transform, Untyped};

/// The cached objects and how they are stored: requests with equal identities share an informer.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Identity {
    pub(crate) resource: Option<ApiResource>,
    pub(crate) cluster_scoped: bool,
    pub(crate) metadata_only: bool,
    /// Sorted, without duplicates; empty means all namespaces. Set by `set_namespaces`.
    pub(crate) namespaces: Vec<String>,
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) keep_managed_fields: bool,
    pub(crate) transform: Transform,
    pub(crate) storage: Storage,
    /// The type, with `Storage::Decoded`.
    pub(crate) decoded_as: Option<TypeId>,
}

impl Identity {
    /// Sets the namespaces. An empty name means all of them, like client-go's `NamespaceAll`. Other names
    /// beside it would be listed twice, and then no delete could be trusted.
    pub(crate) fn set_namespaces<N: AsRef<str>>(&mut self, names: impl IntoIterator<Item = N>) {
        let mut names: Vec<_> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let all = names.first().is_some_and(String::is_empty);
        self.namespaces = if all { Vec::new() } else { names };
    }
}

/// All options of one request; only the identity decides which informer is shared.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) identity: Identity,
    pub(crate) decoder: Option<(TypeId, Decoder)>,
    pub(crate) tuning: Tuning,
    /// Limit for the silence of a list; `None` for the source's default.
    pub(crate) list_timeout: Option<Duration>,
    /// Whether the server may send protobuf; `None` for the source's default.
    pub(crate) protobuf: Option<bool>,
    pub(crate) resync: Option<Duration>,
    pub(crate) on_error: Vec<OnError>,
}

impl Options {
    /// Drops options that make no difference, so that equivalent requests share an informer: the
    /// decoded type unless objects are stored decoded, and the namespaces of a cluster-scoped kind.
    /// (For a dynamic kind, the scope may not be known.)
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.identity.cluster_scoped) {
            self.identity.namespaces.clear();
        }
        if self.identity.storage != Storage::Decoded {
            self.decoder = None;
        }
        self.identity.decoded_as = self.decoder.map(|(kind, _)| kind);
    }

    pub(crate) fn packer(&self) -> Packer {
        let packer = Packer::new(
            self.identity.transform.clone(),
            self.decoder.map(|(_, decoder)| decoder),
            self.identity.keep_managed_fields,
        );
        match (self.identity.storage, self.tuning.train_on) {
            (Storage::Plain, _) => packer.with_plain_bodies(),
            (Storage::Packed | Storage::Decoded, None) => packer,
            (Storage::Packed | Storage::Decoded, Some(objects)) => packer.train_on(objects),
        }
    }
}

/// The only code that depends on `K`: the rest of the core has no type parameter.
pub(crate) fn decoder<K: DeserializeOwned + Send + Sync + 'static>() -> (TypeId, Decoder) {
    (TypeId::of::<K>(), |json| Ok(Arc::new(decode::<K>(json)?)))
}

/// Methods of all informer builders, and of the factory's builder.
macro_rules! options {
    ($self:ident => $options:expr) => {
        /// Sets the resync period of handlers that do not set their own. There is none by default.
        pub fn resync(mut $self, period: Duration) -> Self {
            $options.resync = Some(period);
            $self
        }

        /// Changes objects before they are cached. Several transforms are applied in order, the factory's
        /// first.
        pub fn transform(mut $self, transform: Transform) -> Self {
            let before = std::mem::take(&mut $options.identity.transform);
            $options.identity.transform = before.then(transform);
            $self
        }

        /// Drops these fields, as another [`transform`](Self::transform).
        pub fn drop_fields<P: Into<FieldPath>>($self, paths: impl IntoIterator<Item = P>) -> Self {
            $self.transform(Transform::drop_fields(paths))
        }

        /// Calls a function with every error, and with the informer's reaction to it. May be called
        /// several times to add several observers.
        ///
        /// The observers of a factory apply to all its informers. An observer of a single informer lasts as
        /// long as the handle that is built, its clones, and the listers, indexes, handlers and streams derived
        /// from them, even if other handles share the informer.
        pub fn on_error(mut $self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
            $options.on_error.push(Arc::new(report));
            $self
        }

        /// Seeds the informer's randomness (jitter, watch timeouts), to make runs reproducible.
        pub fn seed(mut $self, seed: u64) -> Self {
            $options.tuning.seed = Some(seed);
            $self
        }

        /// Trains the dictionary of packed bodies on this many objects, however small: for tests, whose caches
        /// would be too small for a dictionary.
        #[doc(hidden)]
        pub fn train_on(mut $self, objects: usize) -> Self {
            $options.tuning.train_on = Some(objects);
            $self
        }

        settings!($self => $options.tuning.reflector);
    };
}

/// Methods about requests to an API server, which custom sources do not have.
macro_rules! request_options {
    ($self:ident => $options:expr) => {
        /// Restricts the cache to objects that match a label selector, evaluated by the server: a
        /// string, or any selector type.
        pub fn labels(mut $self, selector: impl Display) -> Self {
            $options.identity.labels = selector.to_string();
            $self
        }

        /// Restricts the cache to objects that match a field selector, evaluated by the server:
        /// `"spec.nodeName=worker-1"`.
        pub fn fields(mut $self, selector: impl Display) -> Self {
            $options.identity.fields = selector.to_string();
            $self
        }

        /// Keeps `metadata.managedFields`, which are dropped otherwise: they make up half of many objects, and
        /// are hardly ever read.
        pub fn keep_managed_fields(mut $self) -> Self {
            $options.identity.keep_managed_fields = true;
            $self
        }

        /// Sets how long a list may be silent before it is aborted; see
        /// [`KubeListWatch::list_timeout`](crate::KubeListWatch::list_timeout).
        pub fn list_timeout(mut $self, silence_max: Duration) -> Self {
            $options.list_timeout = Some(silence_max);
            $self
        }

        /// Sets whether the server may send protobuf, which is the default; see
        /// [`KubeListWatch::protobuf`](crate::KubeListWatch::protobuf).
        pub fn protobuf(mut $self, protobuf: bool) -> Self {
            $options.protobuf = Some(protobuf);
            $self
        }
    };
}
pub(crate) use {options, request_options};

/// Marks an [`InformerBuilder`] whose informer comes from a factory, which lists and watches an API server.
#[derive(Debug)]
pub enum FromFactory {}

/// Marks an [`InformerBuilder`] whose informer uses a custom source. The source decides what is listed, so such
/// a builder has no namespaces and selectors.
#[derive(Debug)]
pub enum FromSource {}

type Make = dyn FnOnce(&Options) -> SharedInformer + Send + Sync;

/// Builds an informer. Options that are not set come from the factory.
///
/// `O` says where the informer comes from, and therefore which options exist: [`FromFactory`] or
/// [`FromSource`].
///
/// A factory's informer is shared by all requests for the same objects. Each caller has its own resync period
/// and error observers. Of the options for requests to the server (`page_size`, `streaming_lists`,
/// `watch_timeout`, `backoff`, `list_timeout`, `protobuf`, `seed`), only the first caller's values are used.
#[must_use = "nothing is made until build"]
pub struct InformerBuilder<K = Untyped, O = FromFactory> {
    make: Box<Make>,
    options: Options,
    kind: PhantomData<fn() -> (K, O)>,
}

impl<K: 'static, O> InformerBuilder<K, O> {
    options!(self => self.options);

    /// Returns the factory's informer with this identity, or a new one.
    pub fn build(mut self) -> SharedInformer<K> {
        self.options.settle();
        if let Err(error) = self.options.identity.transform.check() {
            // There is no caller to return the error to, but every object will be reported with it.
            tracing::error!("no object can be cached because the transform is invalid: {error}");
        }
        let informer = (self.make)(&self.options).observed_by(self.options.on_error);
        informer.with_resync(self.options.resync).cast()
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static, O> InformerBuilder<K, O> {
    /// Sets how objects are stored.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.options.identity.storage = storage;
        self.options.decoder = Some(decoder::<K>());
        self
    }

    /// Changes every object before it is cached, as another [`transform`](Self::transform). The object is
    /// decoded and encoded again for that.
    ///
    /// Closures cannot be compared, so no other request shares the informer, and the factory does not keep it
    /// running: it ends with its last handle, lister, index, handler and stream. To share it, pass clones of
    /// one [`Transform`] to [`transform`](Self::transform).
    pub fn map(self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize,
    {
        self.transform(Transform::map(change))
    }
}

/// Builders with a custom source.
impl<K: 'static> InformerBuilder<K, FromSource> {
    pub(super) fn from_source(source: Arc<dyn ListWatch>) -> Self {
        let make = Box::new(|options: &Options| {
            let packer = options.packer();
            let source = if packer.needs_repack() {
                Arc::new(Repacked::new(source, Arc::new(packer))) as Arc<dyn ListWatch>
            } else {
                source
            };
            let (core, alive) = Core::new(source, options.tuning.clone());
            SharedInformer::new(core, alive, None)
        });
        Self { make, options: Options::default(), kind: PhantomData }
    }
}

/// Builders of a factory.
impl<K: 'static> InformerBuilder<K> {
    /// `make` returns the factory's informer with this identity, or a new one.
    pub(crate) fn from_factory(
        options: Options,
        make: impl FnOnce(&Options) -> SharedInformer + Send + Sync + 'static,
    ) -> Self {
        Self { make: Box::new(make), options, kind: PhantomData }
    }

    request_options!(self => self.options);

    /// Caches all namespaces, overriding the factory's setting.
    pub fn all_namespaces(mut self) -> Self {
        self.options.identity.namespaces.clear();
        self
    }

    /// Starts from the [snapshot](SharedInformer::snapshot) of an earlier run instead of a list: its objects
    /// are in the cache at once, handlers receive them as initial adds, and the watch resumes from its version.
    ///
    /// Everything is listed if there is no file; if the file is damaged, or of another cluster, resource,
    /// namespace, selector or transform; if the server no longer has the version; or if the server has been
    /// restored from a backup. The first line of the log and [`on_error`](Self::on_error) say why.
    ///
    /// Until the watch has caught up, the cache is as old as the snapshot, which [`SharedInformer::is_live`]
    /// and [`SharedInformer::staleness`] report. Informers of several namespaces always list.
    pub fn warm_start(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.tuning.warm_start = Some(path.into());
        self
    }

    /// Sets the scope of a dynamic kind, as discovery returned it: cluster-scoped kinds ignore the
    /// factory's namespaces.
    pub fn scope(mut self, scope: &Scope) -> Self {
        self.options.identity.cluster_scoped = *scope == Scope::Cluster;
        self
    }
}

impl<K: Kind> InformerBuilder<K> {
    /// Restricts the cache to a namespace; an empty name means all namespaces. Cluster-scoped kinds do not have
    /// this method.
    pub fn namespace(self, namespace: impl AsRef<str>) -> Self
    where
        K::Scope: kube_core::NamespaceScope,
    {
        self.namespaces([namespace])
    }

    /// Restricts the cache to these namespaces, behind one lister. Each has its own list and watch,
    /// so permissions for these namespaces are enough.
    ///
    /// Duplicate names count once. No name at all, or an empty one among others (as in `"a,".split(',')`),
    /// means all namespaces, with one list and one watch.
    pub fn namespaces<N: AsRef<str>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self
    where
        K::Scope: kube_core::NamespaceScope,
    {
        self.options.identity.set_namespaces(namespaces);
        self
    }
}

impl<K, O> fmt::Debug for InformerBuilder<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.options.identity.resource.as_ref().map(|resource| &resource.plural);
        f.debug_struct("InformerBuilder").field("resource", &resource).finish_non_exhaustive()
    }
}
