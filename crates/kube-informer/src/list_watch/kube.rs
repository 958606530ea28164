//! The API server as a source, through kube's client.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::StreamExt;
use kube_client::{Api, Client};
use kube_core::ApiResource;
use tokio::time::timeout;

use super::{ListOptions, ListStream, ListWatch, WatchOptions, WatchStream};
use crate::object::Packer;
use crate::snapshot::Origin;
use crate::wire::{
    Answer, Call, Encoding, Items, ListQuery, ListReader, Target, Verb, WatchQuery, WatchReader,
    accept, failed, request, timed_out,
};
use crate::{Error, Kind, ResourceVersion, Result, StaticKind, Transform};

/// Limit for the response head of a watch. A server responds at once, or waits up to three seconds
/// until its cache has the version; the rest is for connecting and for a server under load.
const WATCH_HEAD_WAIT_MAX: Duration = Duration::from_secs(30);

/// Limit for the silence of a list, in its head or in its body, before its connection is considered dead. As
/// long as a watch may be silent, and longer than the minute after which a server gives up on a list, so that
/// its error still arrives. The duration of the whole list is not limited.
const LIST_WAIT_MAX: Duration = Duration::from_secs(75);

/// Lists and watches a resource of an API server. Factories use it for all their informers.
///
/// ```
/// use kube_informer::ListWatch;
/// use kube_informer::list_watch::KubeListWatch;
/// # use embedded_apiserver::ApiServer;
/// # use k8s_openapi::api::core::v1::Pod;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let client = ApiServer::start().client();
/// let pods = KubeListWatch::of::<Pod>(client).namespace("web").labels("app=shop");
/// assert_eq!(pods.name(), "pods in web, labels app=shop");
/// # }
/// ```
///
/// By default kube's client itself retries responses of 429, 503 and 504, up to fifteen times. An informer
/// retries them too, and reports them: to see such responses, build the client with `kube_informer::client`, or
/// with a `Config` whose `default_retry` is false.
#[derive(Clone)]
pub struct KubeListWatch {
    client: Client,
    name: String,
    target: Target,
    packer: Arc<Packer>,
    list_wait_max: Duration,
    protobuf: bool,
    /// Whether the server refused a request that offered protobuf. Shared by clones, which use the
    /// same server.
    refuses_protobuf: Arc<AtomicBool>,
    /// Path of the `Api` that this was made from, if it is not the path of a resource.
    strange_path: Option<String>,
}

impl KubeListWatch {
    /// Creates a source of all objects of a resource, in all namespaces.
    pub fn new(client: Client, resource: &ApiResource) -> Self {
        Self::with_target(client, Target::new(resource))
    }

    /// Creates a source for a kind that is known at compile time.
    pub fn of<K: StaticKind>(client: Client) -> Self {
        let listed = Self::new(client, &ApiResource::erase::<K>(&()));
        if K::metadata_api() { listed.metadata_only() } else { listed }
    }

    /// Restricts the source to a namespace; an empty name means all namespaces.
    pub fn namespace(self, namespace: impl AsRef<str>) -> Self {
        let namespace = Some(namespace.as_ref()).filter(|namespace| !namespace.is_empty());
        self.with(|target| target.namespace = namespace.map(str::to_owned))
    }

    /// Restricts the source to objects that match a label selector.
    pub fn labels(self, selector: impl fmt::Display) -> Self {
        self.with(|target| target.labels = selector.to_string())
    }

    /// Restricts the source to objects that match a field selector, if the server supports its
    /// fields.
    pub fn fields(self, selector: impl fmt::Display) -> Self {
        self.with(|target| target.fields = selector.to_string())
    }

    /// Requests only the metadata of objects.
    pub fn metadata_only(self) -> Self {
        self.with(|target| target.metadata_only = true)
    }

    /// Sets how long a list may be silent before it is aborted and retried: 75 seconds by default.
    ///
    /// A server responds, or gives up, within a minute, and then sends as fast as it can. A longer timeout is
    /// needed only if the server is configured to take longer (kube-apiserver's `--request-timeout`). The
    /// duration of a whole list is not limited.
    pub fn list_timeout(mut self, silence_max: Duration) -> Self {
        self.list_wait_max = silence_max;
        self
    }

    /// Sets whether the server may send protobuf, which is the default.
    ///
    /// Protobuf is offered for built-in kinds, and for metadata-only requests of every kind. It is smaller than
    /// JSON, and less work for the server. The content type of the response decides how it is read: a response
    /// in JSON is accepted too, and a server that refuses the offer (406) is asked for JSON from then on.
    /// Informers with a transform or with `Storage::Decoded` work on JSON, and always ask for it.
    ///
    /// A field that is newer than this library is stored but has no name: it is missing from the object as JSON
    /// or as an untyped value. Programs that show objects exactly as the server has them should turn protobuf
    /// off.
    pub fn protobuf(mut self, protobuf: bool) -> Self {
        self.protobuf = protobuf;
        self
    }

    /// Sets how objects are made from what the server sends.
    pub(crate) fn packer(mut self, packer: Arc<Packer>) -> Self {
        self.packer = packer;
        self
    }

    /// Returns the origin that snapshots of this source record.
    pub(crate) fn origin(&self) -> Origin {
        Origin::new(self.client.clone(), &self.target, self.packer.clone())
    }

    fn with_target(client: Client, target: Target) -> Self {
        let packer = Arc::new(Packer::new(Transform::default(), None, false));
        Self {
            client,
            name: target.name(),
            target,
            packer,
            list_wait_max: LIST_WAIT_MAX,
            protobuf: true,
            refuses_protobuf: Arc::default(),
            strange_path: None,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Target)) -> Self {
        change(&mut self.target);
        self.name = self.target.name();
        self
    }

    /// Returns the encoding to ask for.
    fn offered(&self) -> Encoding {
        let protobuf = self.protobuf
            && self.packer.takes_protobuf()
            && !self.refuses_protobuf.load(Ordering::Relaxed)
            && self.target.has_protobuf();
        if protobuf { Encoding::Protobuf } else { Encoding::Json }
    }

    /// Sends a request and checks the head of the response.
    async fn open(&self, verb: Verb, query: &str, wait: Duration) -> Result<(Answer, Call)> {
        if let Some(path) = &self.strange_path {
            return Err(Error::invalid(format!(
                "{path:?} is not the path of a resource: /api/VERSION/… or /apis/GROUP/VERSION/… is"
            )));
        }
        let call = Call { verb, target: Arc::new(self.target.clone()) };
        let offered = self.offered();
        let answer = match self.send(&call, query, offered, wait).await {
            Err(error) if offered == Encoding::Protobuf && is_not_acceptable(&error) => {
                self.refuses_protobuf.store(true, Ordering::Relaxed);
                self.send(&call, query, Encoding::Json, wait).await?
            }
            answer => answer?,
        };
        Ok((answer, call))
    }

    async fn send(
        &self,
        call: &Call,
        query: &str,
        offered: Encoding,
        wait: Duration,
    ) -> Result<Answer> {
        let sent = self.client.send(request(call, query, offered)?);
        let response = timeout(wait, sent).await.map_err(|_| timed_out(call, wait, false))?;
        let response = response.map_err(|error| failed(error, call))?;
        accept(response, call, offered).await
    }
}

fn is_not_acceptable(error: &Error) -> bool {
    error.status().is_some_and(|status| status.code == 406)
}

impl ListWatch for KubeListWatch {
    fn name(&self) -> &str {
        &self.name
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        Box::pin(async move {
            let query = ListQuery {
                resource_version: version(options.resource_version.as_ref()),
                limit: options.limit.unwrap_or_default(),
                continue_token: options.continue_token.as_deref().unwrap_or_default(),
            };
            let query = query.text(&self.target);
            let (answer, call) = self.open(Verb::List, &query, self.list_wait_max).await?;
            let Answer { body, encoding } = answer;
            let reader = ListReader::new(call, self.packer.clone(), encoding);
            Ok(Items::new(reader, body, Some(self.list_wait_max)).boxed())
        })
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        Box::pin(async move {
            let query = WatchQuery {
                resource_version: version(options.resource_version.as_ref()),
                send_initial_events: options.send_initial_events,
                timeout: options.timeout,
            };
            let query = query.text(&self.target);
            let (answer, call) = self.open(Verb::Watch, &query, WATCH_HEAD_WAIT_MAX).await?;
            let Answer { body, encoding } = answer;
            let reader = WatchReader::new(call, self.packer.clone(), encoding);
            // The reflector limits the silence of a watch.
            Ok(Items::new(reader, body, None).boxed())
        })
    }
}

fn version(version: Option<&ResourceVersion>) -> &str {
    version.map(ResourceVersion::as_str).unwrap_or_default()
}

/// Takes over the resource, the namespace and metadata-only from the `Api`.
impl<K: Kind> From<Api<K>> for KubeListWatch {
    fn from(api: Api<K>) -> Self {
        let path = api.resource_url().to_owned();
        let target = Target::from_path(&path, api.namespace());
        let strange_path = target.is_none().then_some(path);
        let mut target = target.unwrap_or_default();
        target.metadata_only = K::metadata_api();
        // An `Api` does not expose its dynamic type. If that is `()`, a value of it can be made
        // here.
        let nothing: &dyn Any = &();
        let known = nothing.downcast_ref::<K::DynamicType>();
        target.kind = known.map(|known| K::kind(known).into_owned());
        let name = strange_path.clone().unwrap_or_else(|| target.name());
        Self { name, strange_path, ..Self::with_target(api.into_client(), target) }
    }
}

/// Prints the name, and nothing of the client.
impl fmt::Debug for KubeListWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KubeListWatch({})", self.name)
    }
}
