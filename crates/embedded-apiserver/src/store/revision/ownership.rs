//! The managers of an object's fields, kept apart from its line.
//!
//! On a real server every object shows its managers in `managedFields`, which can be as large as the rest. Here the
//! objects that most tests and controllers write do not pay for that. If an object has only been created, its creator
//! owns all of it, which one pointer says; the fields are computed by the next write. If it has been updated, the
//! managers are kept beside the line. Once a manager has applied a configuration, the line has them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::apply::{Author, Managers, Set, Tracked, Type, Versions};
use crate::kinds::{Resource, events};

/// The managers of an object's fields.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The object shows them itself, or there are none.
    Shown,
    /// The author of the object's creation owns all fields.
    Creator(Arc<Author>),
    /// The JSON of `managedFields`.
    Apart(Arc<str>),
}

/// The versions of objects that nothing converts.
struct OneVersion;

impl Versions for OneVersion {
    fn kind(&self, _: &str) -> Option<Type<'_>> {
        None
    }

    fn convert<'v>(&'v self, _: &'v Value, _: &str) -> Option<(Cow<'v, Value>, Type<'v>)> {
        None
    }
}

impl Ownership {
    /// Returns the managers of an object of this resource. The object is in the form that the store has.
    pub(crate) fn managers(&self, resource: &Resource, object: &Map<String, Value>) -> Managers {
        match self {
            Self::Shown => {
                let metadata = object.get("metadata").and_then(Value::as_object);
                let entries = metadata.and_then(|metadata| metadata.get("managedFields"));
                let entries = entries.and_then(Value::as_array).map(Vec::as_slice);
                Managers::from_json(entries.unwrap_or_default()).unwrap_or_default()
            }
            Self::Creator(author) => created(resource, object, author),
            Self::Apart(json) => {
                let entries: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
                Managers::from_json(&entries).unwrap_or_default()
            }
        }
    }

    /// Returns the same managers for an object that the server changes itself: they do not own the changes.
    pub(crate) fn settled(&self, resource: &Resource, object: &Map<String, Value>) -> Self {
        match self {
            Self::Creator(author) => {
                Self::Apart(created(resource, object, author).to_json().into())
            }
            other => other.clone(),
        }
    }
}

/// Returns the manager of an object that has only been created.
fn created(resource: &Resource, object: &Map<String, Value>, author: &Author) -> Managers {
    let mut converted = Cow::Borrowed(object);
    let mut kind = resource.merge_type();
    if author.api_version.starts_with(events::GROUP) && resource.group != events::GROUP {
        events::from_core(converted.to_mut());
        kind =
            kube_schema::message(&author.api_version, &resource.kind).map_or(kind, Type::of_kind);
    }
    let tracked = Tracked {
        kind,
        api_version: &author.api_version,
        reset: set_at_creation(resource),
        versions: &OneVersion,
    };
    let metadata = object.get("metadata").and_then(|metadata| metadata.get("creationTimestamp"));
    let now = metadata.and_then(Value::as_str).unwrap_or_default();
    tracked.update(&Map::new(), &converted, Managers::default(), author, now)
}

/// Returns the fields of a new object that the server sets, or resets, so that its creator does not own them.
fn set_at_creation(resource: &Resource) -> Set {
    let mut fields: Vec<&[&str]> =
        vec![&["metadata", "deletionTimestamp"], &["metadata", "deletionGracePeriodSeconds"]];
    if resource.status
        || matches!((&*resource.group, &*resource.plural), ("", "pods" | "namespaces"))
    {
        fields.push(&["status"]);
    }
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => fields.push(&["spec", "finalizers"]),
        ("", "services") => {
            fields.extend([
                &["spec", "clusterIP"][..],
                &["spec", "clusterIPs"],
                &["spec", "healthCheckNodePort"],
            ]);
        }
        _ => {}
    }
    Set::of_fields(&fields)
}
