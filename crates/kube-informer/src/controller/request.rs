//! The request that a reconciler receives, and the result that it returns.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    BoxError, ConsistencyStore, Object, ObjectKey, ResourceVersion, SharedInformer, Untyped,
};

/// Which object a reconciler is to look at.
#[non_exhaustive]
pub struct Request<K = Untyped> {
    /// The key of the object.
    pub key: ObjectKey,
    /// The object as the cache has it now; `None` when it is gone.
    pub object: Option<Object<K>>,
    /// How often this key has failed in a row.
    pub failures: u32,
    writes: Arc<ConsistencyStore>,
}

impl<K> Request<K> {
    pub(super) fn new(
        key: ObjectKey,
        object: Option<Object<K>>,
        failures: u32,
        writes: Arc<ConsistencyStore>,
    ) -> Self {
        Self { key, object, failures, writes }
    }

    /// A request about an object, to test a reconciler with.
    pub fn of(object: Object<K>) -> Self {
        Self::new(object.key().clone(), Some(object), 0, Arc::default())
    }

    /// A request about an object that is gone, to test a reconciler with.
    pub fn gone(key: ObjectKey) -> Self {
        Self::new(key, None, 0, Arc::default())
    }

    /// Says that something was written for this key, which this informer caches and which is at this
    /// version. The key is not reconciled again before that cache has it: a controller that reads an
    /// older one creates what it has just created.
    ///
    /// kube's `Api` returns what it has written, with its version. Without a version
    /// there is nothing to wait for.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kube::Api;
    /// # use kube_informer::{Action, Request, SharedInformer};
    /// async fn reconcile(
    ///     request: &Request<ConfigMap>,
    ///     api: &Api<Secret>,
    ///     secrets: &SharedInformer<Secret>,
    ///     secret: &Secret,
    /// ) -> kube::Result<Action> {
    ///     let created = api.create(&Default::default(), secret).await?;
    ///     request.wrote(secrets, created.metadata.resource_version);
    ///     Ok(Action::await_change())
    /// }
    /// ```
    pub fn wrote<T: 'static>(
        &self,
        informer: &SharedInformer<T>,
        version: Option<impl Into<ResourceVersion>>,
    ) {
        if let Some(version) = version {
            self.writes.wrote_at(&self.key, informer, version);
        }
    }

    pub(super) fn cast<T>(self) -> Request<T> {
        Request::new(self.key, self.object.map(Object::cast), self.failures, self.writes)
    }
}

impl<K> Clone for Request<K> {
    fn clone(&self) -> Self {
        let (key, object) = (self.key.clone(), self.object.clone());
        Self::new(key, object, self.failures, self.writes.clone())
    }
}

impl<K> fmt::Debug for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.key)
            .field("object", &self.object)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// The next step after a successful reconcile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action(pub(super) Option<Duration>);

impl Action {
    /// Nothing, until something changes.
    pub fn await_change() -> Self {
        Self(None)
    }

    /// Reconciles it again after this time, also when nothing changes.
    pub fn requeue(after: Duration) -> Self {
        Self(Some(after))
    }
}

/// Brings the world to where an object wants it. Write `async fn reconcile`; async functions and
/// closures are reconcilers too.
///
/// It may be called with an object that is as it should be, more than once for one change, and after a
/// restart in the middle of what it did before. It looks at what is there, and does what is missing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reconcile `{K}`",
    note = "implement `Reconciler<{K}>`, or pass an `async fn(Request<{K}>) -> Result<Action, E>`"
)]
pub trait Reconciler<K>: Send + Sync + 'static {
    /// `anyhow::Error`, `kube::Error`, or the program's own. It is logged and counted, and the key is
    /// retried, unless there is a [`Terminal`] in it.
    type Error: Into<BoxError> + Send;

    /// Looks at one object. Never runs twice at the same time for one key.
    fn reconcile(
        &self,
        request: Request<K>,
    ) -> impl Future<Output = Result<Action, Self::Error>> + Send;
}

impl<K, F, R, E> Reconciler<K> for F
where
    F: Fn(Request<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send,
    E: Into<BoxError> + Send,
{
    type Error = E;

    fn reconcile(&self, request: Request<K>) -> impl Future<Output = Result<Action, E>> + Send {
        self(request)
    }
}

/// An error that no retry helps against, such as a spec that cannot be met: it is reported and counted,
/// and the key waits for a change.
///
/// It is recognised as the error itself or as a source of it, so that a context around it does no harm.
///
/// ```
/// use kube_informer::controller::Terminal;
///
/// fn check(replicas: i32) -> anyhow::Result<()> {
///     if replicas < 0 {
///         return Err(Terminal::new("spec.replicas is negative").into());
///     }
///     Ok(())
/// }
/// assert_eq!(check(-1).unwrap_err().to_string(), "spec.replicas is negative");
/// ```
#[derive(Debug)]
pub struct Terminal(BoxError);

impl Terminal {
    /// An error, or a text, that is final.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }

    /// Whether there is one in an error.
    pub(super) fn is_in(error: &(dyn StdError + 'static)) -> bool {
        let mut causes = std::iter::successors(Some(error), |&error| error.source());
        causes.any(<dyn StdError>::is::<Self>)
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Terminal {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
