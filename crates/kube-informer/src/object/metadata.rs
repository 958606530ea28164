//! Metadata that is asked for now and then: read from the bytes, and not part of the header.

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

/// Metadata beyond the header. Each call looks it up in the bytes of the object, without decoding
/// the rest, so that a transform which drops a field drops it here as well. A field that is not of
/// its type, which no API server sends, counts as absent; [`decode`](Object::decode) says what is
/// wrong with it.
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
    /// The time at which the server created the object.
    pub fn creation_timestamp(&self) -> Option<jiff::Timestamp> {
        self.kept::<Option<String>>(&CREATION)?.parse().ok()
    }

    /// The annotations. To read a single one, ask for the [`field`](Object::field)
    /// `metadata.annotations['NAME']`.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let found: BTreeMap<String, Option<String>> = self.kept(&ANNOTATIONS);
        // One that is null is empty, as for labels.
        found.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect()
    }

    /// The finalizers, in their order.
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

    /// The owners, in their order. [`controller`](Object::controller) is at hand without a look at
    /// the bytes.
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
    /// `group/version` of the owner.
    pub api_version: Cow<'a, str>,
    /// Its kind.
    pub kind: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its uid.
    pub uid: Cow<'a, str>,
    /// Whether this owner controls the object. At most one does.
    pub controller: bool,
}

impl<'a> OwnerRef<'a> {
    /// The owner that the header has.
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

/// An owner as it is written. Null is an empty text, as for the header.
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
