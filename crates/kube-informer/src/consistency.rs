//! Read your own writes: records what was written, and checks whether the caches include it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::workqueue::Task;
use crate::{Object, ObjectKey, ResourceVersion, SharedInformer};

/// Records what was written while a task was processed, and checks whether the caches include it. A
/// worker that reads a cache older than its own writes makes the same decision twice.
///
/// This is client-go's `ConsistencyStore` (1.38). A [`Controller`](crate::Controller) has one and checks it
/// before each reconcile; programs with their own work queue use it as follows.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{ObjectKey, SharedInformerFactory};
/// use kube_informer::ConsistencyStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = embedded_apiserver::ApiServer::start();
/// # let factory = SharedInformerFactory::new(server.client());
/// # let maps = factory.informer::<ConfigMap>();
/// # let api = kube::Api::<ConfigMap>::default_namespaced(server.client());
/// # let key: ObjectKey = "default/shop".parse()?;
/// # let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "shop"}}))?;
/// # factory.start();
/// # factory.wait_for_sync().await?;
/// let written = ConsistencyStore::new();
/// let created = api.create(&Default::default(), &map).await?;
/// written.wrote_at(&key, &maps, created.metadata.resource_version.unwrap_or_default());
///
/// // Later, before `key` is worked on again:
/// if let Err(behind) = written.ensure_ready(&key) {
///     println!("not yet: {behind}");
///     maps.wait_for_version(&behind.wrote).await?;
/// }
/// assert!(written.ensure_ready(&key).is_ok() && maps.lister().get(&key).is_some());
/// # Ok(())
/// # }
/// ```
pub struct ConsistencyStore<T: Task = ObjectKey>(Mutex<HashMap<T, Vec<Write>>>);

/// A write that the cache of an informer should include.
struct Write {
    informer: SharedInformer,
    sign: Sign,
}

/// How a cache shows that it includes a write.
enum Sign {
    /// The cache has reached the newest version that was written.
    Version(ResourceVersion),
    /// The cached object, if it is still the same one, lacks this finalizer. The version would not do: if the last
    /// finalizer is removed, the server deletes the object and responds with its previous version.
    FinalizerRemoved { key: ObjectKey, uid: Box<str>, finalizer: Box<str> },
}

/// A cache that does not include a write yet.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Behind {
    /// The name of the informer.
    pub informer: Arc<str>,
    /// The version of its cache; empty before its first list.
    pub read: ResourceVersion,
    /// The version that was written; empty if the write was the removal of a finalizer, whose version is not known.
    pub wrote: ResourceVersion,
}

impl<T: Task> ConsistencyStore<T> {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Records that an object that `informer` caches was written for this task, and has this version on the
    /// server. Only the newest of several versions counts.
    ///
    /// A version that is not a number is ignored, because there is no way to know when a cache has
    /// reached it.
    pub fn wrote_at<K: 'static>(
        &self,
        task: &T,
        informer: &SharedInformer<K>,
        version: impl Into<ResourceVersion>,
    ) {
        let version = version.into();
        if !version.is_ordered() {
            return;
        }
        let mut tasks = self.0.lock();
        let writes = tasks.entry(task.clone()).or_default();
        let earlier = writes.iter_mut().find_map(|write| match &mut write.sign {
            Sign::Version(earlier) if write.informer.is_same(informer) => Some(earlier),
            _ => None,
        });
        match earlier {
            Some(earlier) if *earlier < version => *earlier = version,
            Some(_) => {}
            None => {
                let sign = Sign::Version(version);
                writes.push(Write { informer: informer.clone().cast(), sign });
            }
        }
    }

    /// Records that a finalizer was removed from an object that `informer` caches and that is being deleted, so that
    /// the finalizer cannot come back.
    pub(crate) fn removed_finalizer<K>(
        &self,
        task: &T,
        informer: &SharedInformer,
        object: &Object<K>,
        finalizer: &str,
    ) {
        let (key, uid) = (object.key().clone(), object.uid().into());
        let sign = Sign::FinalizerRemoved { key, uid, finalizer: finalizer.into() };
        let write = Write { informer: informer.clone(), sign };
        self.0.lock().entry(task.clone()).or_default().push(write);
    }

    /// Checks whether all caches include what was written for this task. If so, the record is
    /// removed.
    ///
    /// A cache that has not synced yet includes nothing. A cache whose version cannot be compared,
    /// or whose informer has stopped, is not waited for.
    pub fn ensure_ready(&self, task: &T) -> Result<(), Behind> {
        let mut tasks = self.0.lock();
        let Some(writes) = tasks.get_mut(task) else { return Ok(()) };
        let reached: Vec<_> = writes.extract_if(.., |write| !write.is_behind()).collect();
        let behind = writes.first().map(Write::behind);
        let forgotten = behind.is_none().then(|| tasks.remove_entry(task));
        drop(tasks);
        // Dropping the last handle of an informer stops it, which must not happen under a lock.
        drop((reached, forgotten));
        behind.map_or(Ok(()), Err)
    }

    /// Returns whether there is a write for this task that has not been checked since.
    pub(crate) fn is_recorded(&self, task: &T) -> bool {
        self.0.lock().contains_key(task)
    }

    /// Removes the record of this task.
    pub fn clear(&self, task: &T) {
        let _writes = self.0.lock().remove_entry(task);
    }
}

impl Write {
    fn is_behind(&self) -> bool {
        let behind = match &self.sign {
            Sign::Version(version) => {
                let at = self.informer.resource_version();
                at.is_empty() || at < *version
            }
            Sign::FinalizerRemoved { key, uid, finalizer } => {
                let cached = self.informer.lister().get(key);
                cached
                    .is_some_and(|object| object.uid() == &**uid && object.has_finalizer(finalizer))
            }
        };
        behind && !self.informer.is_stopped()
    }

    fn behind(&self) -> Behind {
        let wrote = match &self.sign {
            Sign::Version(version) => version.clone(),
            Sign::FinalizerRemoved { .. } => ResourceVersion::default(),
        };
        let (informer, read) = (self.informer.name().into(), self.informer.resource_version());
        Behind { informer, read, wrote }
    }
}

impl<T: Task> Default for ConsistencyStore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Task> fmt::Debug for ConsistencyStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsistencyStore").field("tasks", &self.0.lock().len()).finish()
    }
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { informer, read, wrote } = self;
        if wrote.is_empty() {
            return write!(
                f,
                "the cache of {informer} is at version {read}, and still has a finalizer that was removed"
            );
        }
        write!(f, "the cache of {informer} is at version {read}, and version {wrote} was written")
    }
}

impl std::error::Error for Behind {}
