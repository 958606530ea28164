//! How objects are changed and stored before they enter a cache.

mod cut;

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BoxError;
use crate::object::{Packer, Step as PathStep, position, problem};
use crate::{Error, FieldPath, Object, Result};

/// How an informer stores objects.
///
/// The choice affects only memory and speed: [`decode`](Object::decode), [`decode_as`](Object::decode_as),
/// [`field`](Object::field), indexes, selectors and transforms return the same results.
///
/// ```
/// # use embedded_apiserver::ApiServer;
/// # use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::{SharedInformerFactory, Storage};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> kube_informer::Result<()> {
/// # let client = ApiServer::start().client();
/// // A million pods that are hardly ever read, and some nodes that are read all the time.
/// let factory = SharedInformerFactory::new(client);
/// let pods = factory.informer::<Pod>();
/// let nodes = factory.builder_for::<k8s_openapi::api::core::v1::Node>();
/// let nodes = nodes.storage(Storage::Decoded).build();
/// # let _ = (pods, nodes); Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Storage {
    /// As compressed bytes, decoded on demand. A 7 KB pod takes about 0.9 KB, and reading it takes about 2 µs
    /// longer than with [`Plain`](Self::Plain).
    ///
    /// The compression dictionary is trained on the informer's own objects: on the first 128 with 512 KB of
    /// text, again after some thousands, and when the objects have changed in nature. An informer with fewer
    /// objects has no dictionary and stores them uncompressed. Bodies that compress badly stay uncompressed
    /// too.
    #[default]
    Packed,
    /// As uncompressed bytes, for objects whose fields are read all the time.
    Plain,
    /// As typed structs beside the compressed bytes, for programs that scan all objects all the time. Such a
    /// pod takes about 38 KB.
    Decoded,
}

/// A change made to every object before it is cached. Informers with different transforms are not
/// shared.
///
/// It is applied once to every object that arrives, deleted ones included, before any reader or
/// handler sees it. It is not applied again to objects in the cache: neither for a resync nor for a
/// missed delete.
///
/// Everything that is read from an object afterwards, labels and owner included, reflects the transform:
/// selectors, indexes and handlers see the same object as [`decode`](crate::Object::decode). Only key, uid and
/// resourceVersion are always those that the server sent, so that no transform can confuse the cache. A
/// transform that changes or drops the name affects only the decoded object.
///
/// An object whose transform fails or panics is not cached, and is reported as unreadable.
///
/// ```
/// use kube_informer::Transform;
///
/// // What takes most of the memory and is seldom read.
/// let lean = Transform::drop_fields([
///     "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
///     "spec.containers[*].env",
///     "status.containerStatuses",
/// ]);
/// assert_eq!(lean, lean.clone().then(Transform::default()));
/// ```
#[derive(Clone, Default)]
pub struct Transform {
    steps: Vec<Step>,
    changes_header: bool,
}

#[derive(Clone)]
enum Step {
    Drop(Vec<FieldPath>),
    Keep(Vec<FieldPath>),
    Map(Arc<Map>),
}
type Map = dyn Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync;

/// Fields that `keep_fields` always keeps: those of the header, and those that decoding needs. A transform that
/// drops one of them may change the header.
static HEADER: LazyLock<Vec<FieldPath>> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "labels",
        "ownerReferences",
    ];
    let metadata = metadata.map(|field| FieldPath::from(format!("metadata.{field}")));
    ["apiVersion", "kind"].map(FieldPath::from).into_iter().chain(metadata).collect()
});

impl Transform {
    /// Drops these fields. The bytes are cut without decoding the object.
    pub fn drop_fields<P: Into<FieldPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths: Vec<FieldPath> = paths.into_iter().map(Into::into).collect();
        if paths.is_empty() {
            return Self::default();
        }
        let changes_header = paths.iter().any(is_of_header);
        Self { steps: vec![Step::Drop(paths)], changes_header }
    }

    /// Keeps only these fields, `apiVersion`, `kind`, and the metadata that [`Object`] has methods
    /// for. The bytes are cut without decoding the object.
    ///
    /// [`Object`]: crate::Object
    pub fn keep_fields<P: Into<FieldPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        Self { steps: vec![Step::Keep(paths)], changes_header: false }
    }

    /// Decodes the object, changes it and encodes it again: the expensive option.
    pub fn map<K>(change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        Self::try_map(move |object| {
            change(object);
            Ok::<_, BoxError>(())
        })
    }

    /// Like [`map`](Self::map), with a function that can fail.
    pub fn try_map<K, E>(change: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
        E: Into<BoxError>,
    {
        let step = move |body: &[u8]| -> Result<Vec<u8>> {
            let failed = |what: &str, why: &dyn fmt::Display| {
                Error::invalid(format!("the transform {what}: {why}"))
            };
            let mut object: K = serde_json::from_slice(body)
                .map_err(|error| failed("cannot decode it", &problem::<K>(body, "", &error)))?;
            change(&mut object).map_err(|error| {
                let error = error.into();
                failed("failed", &error).caused_by(error)
            })?;
            serde_json::to_vec(&object).map_err(|error| {
                failed("produced an object that cannot be encoded", &position(&error))
            })
        };
        Self { steps: vec![Step::Map(Arc::new(step))], changes_header: true }
    }

    /// Like [`map`](Self::map) on JSON, for objects of any kind.
    ///
    /// ```
    /// use kube_informer::Transform;
    ///
    /// let redact = Transform::json(|secret| {
    ///     if let Some(data) = secret.get_mut("data").and_then(|data| data.as_object_mut()) {
    ///         data.values_mut().for_each(|value| *value = "".into());
    ///     }
    /// });
    /// # let _ = redact;
    /// ```
    pub fn json(change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static) -> Self {
        Self::map(change)
    }

    /// Applies another transform after this one.
    pub fn then(mut self, next: Transform) -> Self {
        self.steps.extend(next.steps);
        self.changes_header |= next.changes_header;
        self
    }

    /// Returns whether the transform leaves objects unchanged.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the object as an informer with this transform stores it: for tests of a transform, and for
    /// custom sources and stores. The error names the object and says why it cannot be transformed.
    ///
    /// ```
    /// use kube_informer::{Object, Transform};
    ///
    /// let lean = Transform::drop_fields(["status"]).then(Transform::json(|pod| {
    ///     pod["metadata"]["labels"]["team"] = "web".into();
    /// }));
    /// let json = r#"{"metadata": {"name": "a", "labels": {"app": "shop"}}, "status": {"phase": "Running"}}"#;
    /// let pod: Object = Object::from_json(json)?;
    /// let kept = lean.apply(&pod)?;
    /// assert_eq!(kept.field::<String>("status.phase")?, None);
    /// assert_eq!(kept.labels().get("team"), Some("web"));
    /// assert_eq!(pod.labels().get("team"), None);
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn apply<K>(&self, object: &Object<K>) -> Result<Object<K>> {
        if self.is_empty() {
            return Ok(object.clone());
        }
        Packer::plain().transform(self, object).map(Object::cast)
    }

    /// Returns whether this has a function that the other does not have: then only its clones are
    /// equal to it.
    pub(crate) fn has_function_beyond(&self, other: &Transform) -> bool {
        let has = |map: &Arc<Map>| {
            other
                .steps
                .iter()
                .any(|step| matches!(step, Step::Map(other) if Arc::ptr_eq(map, other)))
        };
        self.steps.iter().any(|step| matches!(step, Step::Map(map) if !has(map)))
    }

    /// Describes the steps, so that two transforms can be compared; `None` if one of them is a
    /// function.
    pub(crate) fn text(&self) -> Option<String> {
        let step = |step: &Step| {
            let (what, paths) = match step {
                Step::Drop(paths) => ("drop", paths),
                Step::Keep(paths) => ("keep", paths),
                Step::Map(_) => return None,
            };
            let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
            Some(format!("{what} {}", paths.join(", ")))
        };
        let steps: Option<Vec<_>> = self.steps.iter().map(step).collect();
        Some(steps?.join("; "))
    }

    /// Checks all paths once, so that mistakes are found before the first object arrives.
    pub(crate) fn check(&self) -> Result<()> {
        for step in &self.steps {
            if let Step::Drop(paths) | Step::Keep(paths) = step {
                paths.iter().try_for_each(FieldPath::check)?;
            }
        }
        Ok(())
    }

    /// Returns whether the transform may change labels, owner or other parts of the header.
    pub(crate) fn changes_header(&self) -> bool {
        self.changes_header
    }

    /// Returns the body to store. The error says why the object cannot be stored.
    pub(crate) fn apply_to_json<'a>(&self, json: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>> {
        self.steps.iter().try_fold(json, |json, step| {
            let changed = match step {
                Step::Drop(paths) => cut::without(&json, paths)?,
                Step::Keep(paths) => cut::only(&json, paths.iter().chain(&*HEADER))?,
                Step::Map(map) => Some(contained(&**map, &json)?),
            };
            Ok(changed.map_or(json, Cow::Owned))
        })
    }
}

/// Returns whether a path leads to a part of the header, or into one.
fn is_of_header(path: &FieldPath) -> bool {
    let Ok(steps) = path.steps() else { return false };
    HEADER.iter().filter_map(|header| header.steps().ok()).any(|header| {
        steps.iter().zip(header).all(|(step, header)| match (step, header) {
            (PathStep::Key(name) | PathStep::Either(name, _), PathStep::Key(header)) => {
                name == header
            }
            (PathStep::Every, _) => true,
            _ => false,
        })
    })
}

/// Calls a function of the program, and turns a panic into an error.
fn contained(map: &Map, json: &[u8]) -> Result<Vec<u8>> {
    // The function gets a shared slice: after a panic, only its own state can be inconsistent.
    catch_unwind(AssertUnwindSafe(|| map(json)))
        .unwrap_or_else(|_| Err(Error::invalid("the transform panicked")))
}

/// Equal if they have the same steps; a function is equal only to its own clones.
impl PartialEq for Transform {
    fn eq(&self, other: &Self) -> bool {
        let same = |(ours, theirs): (&Step, &Step)| match (ours, theirs) {
            (Step::Drop(ours), Step::Drop(theirs)) | (Step::Keep(ours), Step::Keep(theirs)) => {
                ours == theirs
            }
            (Step::Map(ours), Step::Map(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        };
        self.steps.len() == other.steps.len() && self.steps.iter().zip(&other.steps).all(same)
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |step: &Step| match step {
            Step::Drop(paths) => format!("drop {paths:?}"),
            Step::Keep(paths) => format!("keep {paths:?}"),
            Step::Map(_) => "map".to_owned(),
        };
        f.debug_list().entries(self.steps.iter().map(step)).finish()
    }
}

#[cfg(test)]
mod tests;
