//! Metadata that is used less often: read from the bytes on demand, and not part of the header.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{FieldPath, Object, Owner};

static ANNOTATIONS: LazyLock<FieldPath> = LazyLock::new(|| "metadata.annotations".into());
static CREATION: LazyLock<FieldPath> = LazyLock::new(|| "metadata.creationTimestamp".into());
static FINALIZERS: LazyLock<FieldPath> = LazyLock::new(|| "metadata.finalizers".into());
static OWNERS: LazyLock<FieldPath> = LazyLock::new(|| "metadata.ownerReferences".into());

/// Metadata beyond the header. Each call reads it from the object's bytes, without decoding the rest, so a
/// field that a transform drops is absent here too. A field of the wrong type, which no API server sends,
/// counts as absent; [`decode`](Object::decode) says what is wrong with it.
///
/// ```
/// use kube_informer::Object;
///
/// let pod: Object = Object::from_json(
///     r#"{"metadata": {"name": "web-0", "creationTimestamp": "2026-03-01T12:00:00Z",
///         "annotations": {"example.com/team": "shop"}, "finalizers": ["example.com/drain"],
///         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
///                              "uid": "7d5c", "controller": true}]}}"#,
/// )?;
/// assert_eq!(pod.creation_timestamp(), Some("2026-03-01T12:00:00Z".parse()?));
/// assert_eq!(pod.annotations()["example.com/team"], "shop");
/// assert_eq!(pod.finalizers(), ["example.com/drain"]);
/// assert_eq!(pod.owner_references()[0].kind, "ReplicaSet");
/// assert_eq!(pod.owner_references().into_iter().find(|owner| owner.controller), pod.controller());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<K> Object<K> {
    /// Returns when the server created the object.
    pub fn creation_timestamp(&self) -> Option<jiff::Timestamp> {
        self.kept::<Option<String>>(&CREATION)?.parse().ok()
    }

    /// Returns the annotations. To read a single one, use the [`field`](Object::field)
    /// `metadata.annotations['NAME']`.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let found: BTreeMap<String, Option<String>> = self.kept(&ANNOTATIONS);
        // As with labels, null is empty.
        found.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect()
    }

    /// Returns the finalizers, in order.
    pub fn finalizers(&self) -> Vec<String> {
        self.kept(&FINALIZERS)
    }

    /// Returns whether the object has a finalizer of this name.
    ///
    /// ```
    /// use kube_informer::Object;
    ///
    /// let pod: Object = Object::from_json(
    ///     r#"{"metadata": {"name": "web-0", "finalizers": ["example.com/drain"]}}"#,
    /// )?;
    /// assert!(pod.has_finalizer("example.com/drain"));
    /// assert!(!pod.has_finalizer("example.com/volumes"));
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers().iter().any(|finalizer| finalizer == name)
    }

    /// Returns the owners, in order. [`controller`](Object::controller) is part of the header, and cheaper.
    pub fn owner_references(&self) -> Vec<OwnerRef<'_>> {
        self.kept::<Vec<Reference>>(&OWNERS).into_iter().map(OwnerRef::from).collect()
    }

    fn kept<T: DeserializeOwned + Default>(&self, path: &FieldPath) -> T {
        self.field(path).ok().flatten().unwrap_or_default()
    }
}

/// An owner reference.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OwnerRef<'a> {
    /// The owner's `group/version`.
    pub api_version: Cow<'a, str>,
    /// The owner's kind.
    pub kind: Cow<'a, str>,
    /// The owner's name.
    pub name: Cow<'a, str>,
    /// The owner's uid.
    pub uid: Cow<'a, str>,
    /// Whether this owner is the object's controller. At most one is.
    pub controller: bool,
}

impl<'a> OwnerRef<'a> {
    /// Returns the controller that the header has.
    pub(super) fn controller(owner: &'a Owner) -> Self {
        Self {
            api_version: Cow::Borrowed(&owner.api_version),
            kind: Cow::Borrowed(&owner.kind),
            name: Cow::Borrowed(&owner.name),
            uid: Cow::Borrowed(&owner.uid),
            controller: true,
        }
    }
}

/// An owner as it is written. As in the header, null is an empty string.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    api_version: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    controller: Value,
}

impl From<Reference> for OwnerRef<'_> {
    fn from(owner: Reference) -> Self {
        let text = |text: Option<String>| Cow::Owned(text.unwrap_or_default());
        Self {
            api_version: text(owner.api_version),
            kind: text(owner.kind),
            name: text(owner.name),
            uid: text(owner.uid),
            controller: owner.controller == true,
        }
    }
}

#[cfg(test)]
mod tests;
