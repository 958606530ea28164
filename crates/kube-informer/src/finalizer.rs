//! Finalizers: cleaning up before an object is removed, despite restarts.

use std::fmt;
use std::future::Future;

use serde_json::{Value, json};

use crate::error::Cause;
use crate::selector::is_qualified_name;
use crate::wire::{Api, Endpoint, Patch};
use crate::{Error, Kind, Object, ResourceVersion, Result};

/// Number of attempts to patch finalizers, each made from the newest state. An attempt fails only if another
/// writer of finalizers was faster, and an object has few of those.
const TRIES_MAX: usize = 5;

/// The task that [`finalizer`] gives to a reconciler.
#[derive(Clone, Debug)]
pub enum Finalizer<K> {
    /// The object has the finalizer. Bring the world in line with it.
    ///
    /// If the finalizer has just been added, this is the object in the server's response: newer than the cached
    /// one, and not transformed.
    Apply(Object<K>),
    /// The object is being deleted. Remove everything that was created for it. When this succeeds,
    /// the finalizer is removed and the object is not reconciled again.
    Cleanup(Object<K>),
}

/// Reconciles an object that needs cleanup before it is removed.
///
/// An object with finalizers is not removed when it is deleted: it is only marked, until its finalizers are
/// gone. `finalizer` adds the finalizer `name` before it calls `reconcile` with [`Finalizer::Apply`] for the
/// first time, and removes it after `reconcile` has succeeded with [`Finalizer::Cleanup`].
///
/// | object | has the finalizer | what is done |
/// | --- | --- | --- |
/// | live | no | the finalizer is added, then `Apply` |
/// | live | yes | `Apply` |
/// | being deleted | yes | `Cleanup`, then the finalizer is removed |
/// | being deleted | no | nothing: the result is `None` |
///
/// The object comes from a cache and may be stale. The `api` may cover all namespaces. The informer
/// must not drop `metadata.finalizers` with a transform.
///
/// In a [`Controller`](crate::Controller), use [`Request::finalizer`](crate::Request::finalizer), which also keeps
/// the key from being reconciled on a cache that does not include the change of the finalizer yet.
///
/// # What is guaranteed
///
/// If `Apply` was ever started for an object, `Cleanup` succeeds before the server removes the object, unless
/// another writer removes the finalizer. This holds wherever the process is killed or the future is dropped,
/// because every step depends only on the state of the object.
///
/// - Both may run **more than once**, even after they have succeeded: the process may end before it
///   notices, or the cache may be stale. Both must be idempotent.
/// - `Cleanup` may run without an `Apply` before it, because the finalizer is added before `Apply` runs.
/// - The finalizers of other controllers are left alone: each patch tests that the list is the one that it was
///   made for. If it is not, the object is read again (which needs the verb `get`), and `Cleanup` is not
///   repeated.
/// - No finalizer is added to an object that is being deleted.
///
/// kube-apiserver itself [may lose](https://github.com/kubernetes/kubernetes/issues/110521) a finalizer that is
/// added at the very moment at which the object is deleted.
///
/// # Errors
///
/// Errors of `reconcile` are passed on. The others are converted from [`Error`]:
///
/// - [`is_conflict`](Error::is_conflict): the object was deleted or replaced before the finalizer could be
///   added. Retry once the cache has the new state.
/// - [`is_invalid`](Error::is_invalid): the name is not a domain, a slash and a name, or the `api` is for
///   another resource.
/// - Any other error of a request. It is not an error if the object is gone when its finalizer is to be
///   removed.
///
/// # Examples
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client};
/// use kube_informer::{Finalizer, Object, finalizer};
///
/// async fn reconcile(client: Client, map: &Object<ConfigMap>) -> anyhow::Result<()> {
///     let api = Api::all(client);
///     finalizer(&api, map, "example.com/volumes", async |state| match state {
///         Finalizer::Apply(map) => make_volume(&map).await,
///         Finalizer::Cleanup(map) => remove_volume_if_there_is_one(&map).await,
///     })
///     .await?;
///     Ok(())
/// }
/// # async fn make_volume(_: &Object<ConfigMap>) -> anyhow::Result<()> { Ok(()) }
/// # async fn remove_volume_if_there_is_one(_: &Object<ConfigMap>) -> anyhow::Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// # let server = embedded_apiserver::ApiServer::start();
/// # let read = || Object::from_json(
/// #     server.get("configmaps", "default", "data").unwrap().to_string());
/// # server.create(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
/// #     "metadata": {"name": "data", "namespace": "default"}})).unwrap();
/// # reconcile(server.client(), &read()?).await?;
/// # assert!(read()?.cast::<ConfigMap>().has_finalizer("example.com/volumes"));
/// # server.delete("configmaps", "default", "data").unwrap();
/// # reconcile(server.client(), &read()?).await?;
/// # assert!(server.get("configmaps", "default", "data").is_none());
/// # Ok(())
/// # }
/// ```
pub async fn finalizer<K, T, E, F>(
    api: &Api<K>,
    object: &Object<K>,
    name: &str,
    reconcile: impl FnOnce(Finalizer<K>) -> F,
) -> Result<Option<T>, E>
where
    K: Kind + Clone,
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    finalize(api, object, name, |_| {}, reconcile).await
}

/// Does what [`finalizer`] does. If the finalizer is added, passes the new version of the object to `added`.
pub(crate) async fn finalize<K, T, E, F>(
    api: &Api<K>,
    object: &Object<K>,
    name: &str,
    added: impl FnOnce(&ResourceVersion),
    reconcile: impl FnOnce(Finalizer<K>) -> F,
) -> Result<Option<T>, E>
where
    K: Kind + Clone,
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    check(name)?;
    let entry = Entry { endpoint: Endpoint::of(api, object)?, object, name };
    match (object.deletion_timestamp().is_some(), object.has_finalizer(name)) {
        (false, true) => reconcile(Finalizer::Apply(object.clone())).await.map(Some),
        (false, false) => {
            let object = entry.add().await.map_err(|error| entry.failed("added to", &error))?;
            added(object.resource_version());
            reconcile(Finalizer::Apply(object)).await.map(Some)
        }
        (true, true) => {
            let done = reconcile(Finalizer::Cleanup(object.clone())).await?;
            entry.remove().await.map_err(|error| entry.failed("removed from", &error))?;
            Ok(Some(done))
        }
        (true, false) => Ok(None),
    }
}

fn check(name: &str) -> Result<()> {
    if name.contains('/') && is_qualified_name(name) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{name:?} is not a valid finalizer: expected a domain, a slash and a name, as in example.com/volumes"
    )))
}

/// One finalizer of one object.
struct Entry<'a, K> {
    endpoint: Endpoint,
    object: &'a Object<K>,
    name: &'a str,
}

impl<K> Entry<'_, K> {
    /// Adds the finalizer, and returns the object with it.
    async fn add(&self) -> Result<Object<K>> {
        let mut seen = self.object.clone();
        for _ in 0..TRIES_MAX {
            let patch = Patch::Json(addition(&seen, self.name));
            match self.endpoint.patch(self.object.name(), &patch).await {
                Ok(written) => return Ok(written.cast()),
                Err(error) if error.is_not_found() => return Err(stale("it is gone")),
                Err(error) if met_a_change(&error) => {}
                Err(error) => return Err(error),
            }
            seen = self.read_again().await?.ok_or_else(|| stale("it is gone"))?;
            if seen.deletion_timestamp().is_some() {
                return Err(stale("it is being deleted"));
            }
            if seen.has_finalizer(self.name) {
                return Ok(seen);
            }
        }
        Err(stale("its finalizers keep changing"))
    }

    async fn remove(&self) -> Result<()> {
        let mut seen = self.object.clone();
        for _ in 0..TRIES_MAX {
            let patch = Patch::Json(removal(&seen, self.name));
            match self.endpoint.patch(self.object.name(), &patch).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if met_a_change(&error) => {}
                Err(error) => return Err(error),
            }
            // Cleanup is done, and a deletion cannot be undone: only the list is read again.
            match self.read_again().await? {
                Some(newer) if newer.has_finalizer(self.name) => seen = newer,
                _ => return Ok(()),
            }
        }
        Err(stale("its finalizers keep changing"))
    }

    /// Returns the newest state; `None` if the object is gone, even if another has its name by now.
    async fn read_again(&self) -> Result<Option<Object<K>>> {
        match self.endpoint.get(self.object.name()).await {
            Ok(newest) => {
                Ok(Some(newest.cast()).filter(|new: &Object<K>| new.uid() == self.object.uid()))
            }
            Err(error) if error.is_not_found() => Ok(None),
            // Without that permission, the cache will eventually have the newer state.
            Err(error) if error.is_forbidden() => Err(stale("its finalizers have changed")),
            Err(error) => Err(error),
        }
    }

    fn failed(&self, done: impl fmt::Display, error: &Error) -> Error {
        let what = format!("the finalizer {} cannot be {done} {}", self.name, self.object.key());
        error.within(what)
    }
}

/// Returns the patch that adds a finalizer to the list that was seen, and to no other: a server
/// does not reject duplicate entries.
fn addition<K>(seen: &Object<K>, name: &str) -> Value {
    let finalizers = seen.finalizers();
    let mut operations = same_object(seen);
    if finalizers.is_empty() {
        // For the server, testing for null is testing that the list is absent.
        operations.push(json!({"op": "test", "path": "/metadata/finalizers", "value": null}));
        operations.push(json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}));
    } else {
        operations.push(json!({"op": "test", "path": "/metadata/finalizers", "value": finalizers}));
        operations.push(json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}));
    }
    operations.into()
}

/// Returns the patch that removes every entry of that name, each after a test that it is still in the same
/// place.
fn removal<K>(seen: &Object<K>, name: &str) -> Value {
    let mut operations = same_object(seen);
    // From the end, so that the remaining indices stay valid.
    for (at, _) in seen.finalizers().iter().enumerate().rev().filter(|(_, found)| *found == name) {
        let path = format!("/metadata/finalizers/{at}");
        operations.push(json!({"op": "test", "path": path, "value": name}));
        operations.push(json!({"op": "remove", "path": path}));
    }
    operations.into()
}

/// Tests that the name still belongs to the same object.
fn same_object<K>(seen: &Object<K>) -> Vec<Value> {
    if seen.uid().is_empty() {
        return vec![];
    }
    vec![json!({"op": "test", "path": "/metadata/uid", "value": seen.uid()})]
}

/// Returns whether a patch was refused because the object is not as it was seen: a test failed, or it is being
/// deleted by now, when finalizers can no longer be added. A 422 that names other fields is about those.
fn met_a_change(error: &Error) -> bool {
    if error.is_conflict() {
        return true;
    }
    let Some(status) = error.status().filter(|status| status.code == 422) else { return false };
    let mut causes = status.details.iter().flat_map(|details| &details.causes).peekable();
    causes.peek().is_none() || causes.any(|cause| cause.field == "metadata.finalizers")
}

fn stale(why: &str) -> Error {
    Error::new(
        Cause::Conflict,
        format!("{why}, and the cache does not include that yet: retry later"),
    )
}

#[cfg(test)]
mod tests;
