//! Read your own writes: records what was written, and checks whether the caches include it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::workqueue::Task;
use crate::{ObjectKey, ResourceVersion, SharedInformer};

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

/// The newest version that was written of an object that an informer caches.
struct Write {
    informer: SharedInformer,
    version: ResourceVersion,
}

/// A cache that does not include a write yet.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Behind {
    /// The name of the informer.
    pub informer: Arc<str>,
    /// The version of its cache; empty before its first list.
    pub read: ResourceVersion,
    /// The version that was written.
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
        match writes.iter_mut().find(|write| write.informer.is_same(informer)) {
            Some(write) if write.version < version => write.version = version,
            Some(_) => {}
            None => writes.push(Write { informer: informer.clone().cast(), version }),
        }
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
        let at = self.informer.resource_version();
        let behind = at.is_empty() || at < self.version;
        behind && !self.informer.is_stopped()
    }

    fn behind(&self) -> Behind {
        Behind {
            informer: self.informer.name().into(),
            read: self.informer.resource_version(),
            wrote: self.version.clone(),
        }
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
        write!(f, "the cache of {informer} is at version {read}, and version {wrote} was written")
    }
}

impl std::error::Error for Behind {}
