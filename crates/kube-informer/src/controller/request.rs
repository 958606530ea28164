//! The request that a reconciler receives, and the result that it returns.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::finalizer::{finalize, finalizer};
use crate::wire::Api;
use crate::{
    BoxError, ConsistencyStore, Error, Finalizer, Kind, Object, ObjectKey, ResourceVersion,
    SharedInformer, Untyped,
};

/// The object that a reconciler should look at.
#[non_exhaustive]
pub struct Request<K = Untyped> {
    /// The key of the object.
    pub key: ObjectKey,
    /// The object in the cache; `None` if it has been deleted.
    pub object: Option<Object<K>>,
    /// The number of consecutive failures of this key.
    pub failures: u32,
    writes: Arc<ConsistencyStore>,
    /// The informer of the main kind; `None` only in a test of a reconciler.
    main: Option<SharedInformer>,
}

impl<K> Request<K> {
    pub(super) fn new(
        key: ObjectKey,
        object: Option<Object<K>>,
        failures: u32,
        writes: Arc<ConsistencyStore>,
        main: Option<SharedInformer>,
    ) -> Self {
        Self { key, object, failures, writes, main }
    }

    /// Creates a request for an object, to test a reconciler.
    pub fn of(object: Object<K>) -> Self {
        Self::new(object.key().clone(), Some(object), 0, Arc::default(), None)
    }

    /// Creates a request for a deleted object, to test a reconciler.
    pub fn gone(key: ObjectKey) -> Self {
        Self::new(key, None, 0, Arc::default(), None)
    }

    /// Records that an object which `informer` caches was written for this key, and has this version. The key
    /// is not reconciled again before that cache includes the write: a controller that reads an older cache
    /// would create what it has just created.
    ///
    /// kube's `Api` returns the object that it has written, with its version. Without a version,
    /// the call has no effect.
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

    /// Reconciles an object that needs cleanup before it is removed: [`finalizer`](fn@crate::finalizer) for the object of
    /// this request, with the same guarantees and errors. Returns `None` if there is nothing to do, because the
    /// object is gone or its cleanup is complete.
    ///
    /// Adding and removing the finalizer are writes for this key, as if passed to [`wrote`](Self::wrote). A cleanup
    /// that has succeeded is therefore not repeated because of a stale cache, unless the process restarts or the
    /// cache stays stale for longer than [`consistency_timeout`](crate::Controller::consistency_timeout).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::Api;
    /// # use kube_informer::{Action, Finalizer, Request};
    /// async fn reconcile(
    ///     request: &Request<ConfigMap>,
    ///     api: &Api<ConfigMap>,
    /// ) -> anyhow::Result<Action> {
    ///     let action = request.finalizer(api, "example.com/volumes", async |state| match state {
    ///         Finalizer::Apply(map) => make_volume(&map).await,
    ///         Finalizer::Cleanup(map) => remove_volume_if_there_is_one(&map).await,
    ///     });
    ///     Ok(action.await?.unwrap_or(Action::await_change()))
    /// }
    /// # async fn make_volume(_: &kube_informer::Object<ConfigMap>) -> anyhow::Result<Action> {
    /// #     Ok(Action::await_change())
    /// # }
    /// # use make_volume as remove_volume_if_there_is_one;
    /// ```
    pub async fn finalizer<T, E, F>(
        &self,
        api: &Api<K>,
        name: &str,
        reconcile: impl FnOnce(Finalizer<K>) -> F,
    ) -> Result<Option<T>, E>
    where
        K: Kind + Clone,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let Some(object) = &self.object else { return Ok(None) };
        let Some(main) = &self.main else { return finalizer(api, object, name, reconcile).await };
        let added = |version: &ResourceVersion| self.wrote(main, Some(version));
        let done = finalize(api, object, name, added, reconcile).await?;
        if done.is_some() && object.deletion_timestamp().is_some() {
            self.writes.removed_finalizer(&self.key, main, object, name);
        }
        Ok(done)
    }

    pub(super) fn cast<T>(self) -> Request<T> {
        let object = self.object.map(Object::cast);
        Request::new(self.key, object, self.failures, self.writes, self.main)
    }
}

impl<K> Clone for Request<K> {
    fn clone(&self) -> Self {
        let (key, object) = (self.key.clone(), self.object.clone());
        Self::new(key, object, self.failures, self.writes.clone(), self.main.clone())
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
    /// Waits for the next change.
    pub fn await_change() -> Self {
        Self(None)
    }

    /// Reconciles the object again after this time, even if nothing changes.
    pub fn requeue(after: Duration) -> Self {
        Self(Some(after))
    }
}

/// Brings the world to the state that an object asks for. Implement `async fn reconcile`; async
/// functions and closures are reconcilers too.
///
/// A reconciler may be called for an object that needs nothing, more than once for the same change, and after a
/// restart in the middle of earlier work. It should look at the current state and do what is missing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reconcile `{K}`",
    note = "implement `Reconciler<{K}>`, or pass an `async fn(Request<{K}>) -> Result<Action, E>`"
)]
pub trait Reconciler<K>: Send + Sync + 'static {
    /// The error type: `anyhow::Error`, `kube::Error`, or the program's own. Errors are logged and counted, and
    /// the key is retried unless the error contains a [`Terminal`].
    type Error: Into<BoxError> + Send;

    /// Reconciles one object. Never runs twice at the same time for one key.
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

/// An error that no retry can fix, such as a spec that cannot be satisfied: it is reported and counted, and the
/// key waits for a change.
///
/// It is recognised as the error itself or as one of its sources, so it may be wrapped in context.
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
    /// Wraps an error, or a text.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }

    /// Returns whether an error is, or is caused by, a `Terminal`.
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
