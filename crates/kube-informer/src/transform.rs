//! What is kept of an object, and how.

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

/// How an informer keeps objects.
///
/// Whatever it is, [`decode`](Object::decode), [`decode_as`](Object::decode_as), [`field`](Object::field),
/// indexes, selectors and transforms give the same.
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
    /// As compressed bytes, read when asked for. A pod of 7 KB takes about 0.9 KB, and reading it about 2 µs
    /// more than if it were [`Plain`](Self::Plain).
    ///
    /// The dictionary for that is trained on the informer's own objects: the first 128 with 512 KB of text,
    /// again after some thousands, and when they have become different. An informer with fewer objects has
    /// none and leaves them plain. Bodies that compress badly stay plain, too.
    #[default]
    Packed,
    /// As bytes as they came, for objects whose fields are read all the time.
    Plain,
    /// As typed structs beside the compressed bytes, for programs that scan all objects all the time. Takes
    /// about 38 KB for such a pod.
    Decoded,
}

/// What is done to an object before it is kept. Part of what makes two informers the same one.
///
/// It is done once for every object that arrives, before anybody sees it, also to one whose delete
/// arrives. It is not done again to what is in the cache: not for a resync, and not for a delete
/// that was missed.
///
/// What is read from an object afterwards, its labels and its owner included, is what the transform has made of
/// it: selectors, indexes and handlers see the same object as [`decode`](crate::Object::decode). Only key, uid
/// and resourceVersion always are those that the server sent, so that no transform can confuse the cache. One
/// that changes or drops the name does so in what is decoded, and nowhere else.
///
/// An object whose transform fails or panics is not kept, and reported as unreadable.
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

/// What `keep_fields` always keeps: what the header is made of, and what decoding needs. Whatever drops
/// something of it may change the header.
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
    /// Leaves out these fields; the bytes are cut, nothing is decoded.
    pub fn drop_fields<P: Into<FieldPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths: Vec<FieldPath> = paths.into_iter().map(Into::into).collect();
        if paths.is_empty() {
            return Self::default();
        }
        let changes_header = paths.iter().any(is_of_header);
        Self { steps: vec![Step::Drop(paths)], changes_header }
    }

    /// Keeps only these fields, and `apiVersion`, `kind` and of the metadata what [`Object`] says
    /// itself; the bytes are cut, nothing is decoded.
    ///
    /// [`Object`]: crate::Object
    pub fn keep_fields<P: Into<FieldPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        Self { steps: vec![Step::Keep(paths)], changes_header: false }
    }

    /// Decodes, changes and packs again: the dear one.
    pub fn map<K>(change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        Self::try_map(move |object| {
            change(object);
            Ok::<_, BoxError>(())
        })
    }

    /// [`map`](Self::map) with a change that can fail.
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
            serde_json::to_vec(&object)
                .map_err(|error| failed("made what cannot be written", &position(&error)))
        };
        Self { steps: vec![Step::Map(Arc::new(step))], changes_header: true }
    }

    /// [`map`](Self::map) over JSON, for objects of any kind.
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

    /// First this, then that.
    pub fn then(mut self, next: Transform) -> Self {
        self.steps.extend(next.steps);
        self.changes_header |= next.changes_header;
        self
    }

    /// Nothing is done.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The object as an informer with this transform keeps it: for tests of a transform, and for sources and
    /// stores of one's own. The error names the object and says why it cannot be transformed.
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

    /// Whether it has a function that the other has not: only clones of it are equal to it then.
    pub(crate) fn has_function_beyond(&self, other: &Transform) -> bool {
        let has = |map: &Arc<Map>| {
            other
                .steps
                .iter()
                .any(|step| matches!(step, Step::Map(other) if Arc::ptr_eq(map, other)))
        };
        self.steps.iter().any(|step| matches!(step, Step::Map(map) if !has(map)))
    }

    /// Describes its steps, so that two transforms can be compared; `None` if it has a function.
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

    /// What is wrong with its paths, so that this need not be found out with each object.
    pub(crate) fn check(&self) -> Result<()> {
        for step in &self.steps {
            if let Step::Drop(paths) | Step::Keep(paths) = step {
                paths.iter().try_for_each(FieldPath::check)?;
            }
        }
        Ok(())
    }

    /// Whether labels, owner and the rest of the header may be others afterwards.
    pub(crate) fn changes_header(&self) -> bool {
        self.changes_header
    }

    /// The body of an object as it is to be kept. The error says why it cannot be.
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

/// Whether a path leads to something of the header, or into it.
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

/// What a function of somebody else makes of it, whatever that function does.
fn contained(map: &Map, json: &[u8]) -> Result<Vec<u8>> {
    // It got nothing that it could leave half changed but what is its own.
    catch_unwind(AssertUnwindSafe(|| map(json)))
        .unwrap_or_else(|_| Err(Error::invalid("the transform panicked")))
}

/// Equal if they do the same, as far as can be seen: a function is only equal to itself.
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
