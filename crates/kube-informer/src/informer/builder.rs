//! What an informer may be told before it is made.

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
    /// How long nothing may come of a list; the source's default otherwise.
    pub(crate) list_timeout: Option<Duration>,
    /// Whether the server may send protobuf; the source's default otherwise.
    pub(crate) protobuf: Option<bool>,
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

/// All that the core is given of `K`.
pub(crate) fn decoder<K: DeserializeOwned + Send + Sync + 'static>() -> (TypeId, Decoder) {
    (TypeId::of::<K>(), |json| Ok(Arc::new(decode::<K>(json)?)))
}

/// The methods for every informer, and for all informers of a factory.
macro_rules! options {
    ($self:ident => $options:expr) => {
        /// The resync period of handlers that do not ask for one of their own; none without this.
        pub fn resync(mut $self, period: Duration) -> Self {
            $options.resync = Some(period);
            $self
        }

        /// Changes objects before they are kept. Several transforms are done one after the other, those
        /// of the factory first.
        pub fn transform(mut $self, transform: Transform) -> Self {
            let before = std::mem::take(&mut $options.identity.transform);
            $options.identity.transform = before.then(transform);
            $self
        }

        /// Leaves out these fields, as a further [`transform`](Self::transform).
        pub fn drop_fields<P: Into<FieldPath>>($self, paths: impl IntoIterator<Item = P>) -> Self {
            $self.transform(Transform::drop_fields(paths))
        }

        /// Calls this with every error, and with what is done about it. Several observers are all
        /// called.
        ///
        /// The observers of a factory are those of all its informers. One that is given for an informer
        /// lasts as long as the handle that is built, its clones, and the listers, indexes, handlers and
        /// streams that come from them, however many others share the informer.
        pub fn on_error(mut $self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
            $options.on_error.push(Arc::new(report));
            $self
        }

        /// Seeds the informer's randomness (jitter, watch timeouts): the same seed, the same run.
        pub fn seed(mut $self, seed: u64) -> Self {
            $options.tuning.seed = Some(seed);
            $self
        }

        /// Trains the dictionary of packed bodies on this many objects, however small: for tests, whose
        /// caches would be too small to pack.
        #[doc(hidden)]
        pub fn train_on(mut $self, objects: usize) -> Self {
            $options.tuning.train_on = Some(objects);
            $self
        }

        settings!($self => $options.tuning.reflector);
    };
}

/// The methods for what is asked of an API server: sources of the program's own have none of this.
macro_rules! request_options {
    ($self:ident => $options:expr) => {
        /// Only objects with these labels, chosen by the server: a string, or any selector type.
        pub fn labels(mut $self, selector: impl Display) -> Self {
            $options.identity.labels = selector.to_string();
            $self
        }

        /// Only objects with these fields, chosen by the server: `"spec.nodeName=worker-1"`.
        pub fn fields(mut $self, selector: impl Display) -> Self {
            $options.identity.fields = selector.to_string();
            $self
        }

        /// Keeps `metadata.managedFields`, which are left out otherwise: they are half of many objects,
        /// and hardly ever read.
        pub fn keep_managed_fields(mut $self) -> Self {
            $options.identity.keep_managed_fields = true;
            $self
        }

        /// How long nothing may come of a list before it is given up; see
        /// [`KubeListWatch::list_timeout`](crate::KubeListWatch::list_timeout).
        pub fn list_timeout(mut $self, silence_max: Duration) -> Self {
            $options.list_timeout = Some(silence_max);
            $self
        }

        /// Whether the server may send protobuf, which it may by default; see
        /// [`KubeListWatch::protobuf`](crate::KubeListWatch::protobuf).
        pub fn protobuf(mut $self, protobuf: bool) -> Self {
            $options.protobuf = Some(protobuf);
            $self
        }
    };
}
pub(crate) use {options, request_options};

/// Of an [`InformerBuilder`]: the informer comes from a factory, which lists and watches an API server.
#[derive(Debug)]
pub enum FromFactory {}

/// Of an [`InformerBuilder`]: the informer lists and watches a source of the program's own. What to list
/// is up to that source, so that such a builder has no namespaces and selectors.
#[derive(Debug)]
pub enum FromSource {}

type Make = dyn FnOnce(&Options) -> SharedInformer + Send + Sync;

/// Builds an informer. Options that are not set come from the factory.
///
/// `O` says where the informer comes from, and so which options there are: [`FromFactory`] or
/// [`FromSource`].
///
/// An informer of a factory is shared by all who ask for the same. Resync periods and error observers are
/// each caller's own; how the server is asked (`page_size`, `streaming_lists`, `watch_timeout`, `backoff`,
/// `list_timeout`, `protobuf`, `seed`) is as the first caller says.
#[must_use = "nothing is made until build"]
pub struct InformerBuilder<K = Untyped, O = FromFactory> {
    make: Box<Make>,
    options: Options,
    kind: PhantomData<fn() -> (K, O)>,
}

impl<K: 'static, O> InformerBuilder<K, O> {
    options!(self => self.options);

    /// The informer: the one that the factory has for exactly this, or a new one.
    pub fn build(mut self) -> SharedInformer<K> {
        self.options.settle();
        if let Err(error) = self.options.identity.transform.check() {
            // There is nobody to give it to; every object will be reported with it.
            tracing::error!("no object can be kept, the transform is wrong: {error}");
        }
        let informer = (self.make)(&self.options).observed_by(self.options.on_error);
        informer.with_resync(self.options.resync).cast()
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static, O> InformerBuilder<K, O> {
    /// How objects are kept.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.options.identity.storage = storage;
        self.options.decoder = Some(decoder::<K>());
        self
    }

    /// Changes every object before it is kept, as a further [`transform`](Self::transform). It is decoded
    /// and packed again for that.
    ///
    /// A closure is equal to no other, so that no other request shares the informer. The factory does not
    /// keep it running: it ends with the last handle, lister, index, handler and stream. To share it, give
    /// clones of one [`Transform`] to [`transform`](Self::transform).
    pub fn map(self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize,
    {
        self.transform(Transform::map(change))
    }
}

/// On a source of the program's own.
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

/// From a factory.
impl<K: 'static> InformerBuilder<K> {
    /// `make` gives the informer that there is for exactly this, or a new one.
    pub(crate) fn from_factory(
        options: Options,
        make: impl FnOnce(&Options) -> SharedInformer + Send + Sync + 'static,
    ) -> Self {
        Self { make: Box::new(make), options, kind: PhantomData }
    }

    request_options!(self => self.options);

    /// All namespaces, whatever the factory says.
    pub fn all_namespaces(mut self) -> Self {
        self.options.identity.namespaces.clear();
        self
    }

    /// Begins with the [snapshot](SharedInformer::snapshot) of an earlier run in place of a list: the cache has
    /// its objects at once, handlers see them as initial adds, and the watch goes on from its version.
    ///
    /// If there is no file, everything is listed. So it is if the file is damaged, or of another cluster,
    /// resource, namespace, selector or transform; if the server does not have the version any more; or if it has
    /// been restored from a backup. The first line of the log and [`on_error`](Self::on_error) say why.
    ///
    /// Until the watch has caught up the cache is as old as the snapshot: [`SharedInformer::is_live`] and
    /// [`SharedInformer::staleness`] say so. Informers of several namespaces always list.
    pub fn warm_start(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.tuning.warm_start = Some(path.into());
        self
    }

    /// The scope of a dynamic kind, as discovery gave it: kinds without namespaces do not heed the
    /// factory's.
    pub fn scope(mut self, scope: &Scope) -> Self {
        self.options.identity.cluster_scoped = *scope == Scope::Cluster;
        self
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

impl<K, O> fmt::Debug for InformerBuilder<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.options.identity.resource.as_ref().map(|resource| &resource.plural);
        f.debug_struct("InformerBuilder").field("resource", &resource).finish_non_exhaustive()
    }
}
