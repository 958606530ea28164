//! The managers of an object's fields, kept apart from its line.
//!
//! On a real server every object shows its managers in `managedFields`, which can be as large as the rest. Here the
//! objects that most tests and controllers write do not pay for that. The creator of an object owns all of it but the
//! status, which one pointer says, and still does after it has updated the object and others have written the status.
//! The fields are computed when they are needed. After other writes the managers are kept beside the line. Once a
//! manager has applied a configuration, the line has them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::apply::{Author, Managers, Set, Tracked, Type, UPDATERS_MAX, Versions};
use crate::kinds::{Resource, events};

/// The managers of an object's fields.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The object shows them itself, or there are none.
    Shown,
    /// The author of the object's creation owns all fields.
    Creator(Arc<Author>),
    /// The same, after updates by the creator, and after writes to the status.
    Since(Arc<Since>),
    /// The JSON of `managedFields`.
    Apart(Arc<str>),
}

/// The writes since an object's creation that have left all fields but those of the status to its creator.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Since {
    creator: Arc<Author>,
    /// The time of the creator's last update, if there was one.
    updated: Option<Box<str>>,
    /// The JSON of the managers of the status.
    status: Box<str>,
}

/// A change of a stored object.
pub(crate) struct Write<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) tracked: Tracked<'a>,
    pub(crate) old: &'a Map<String, Value>,
    pub(crate) new: &'a Map<String, Value>,
    pub(crate) author: &'a Author,
    pub(crate) now: &'a str,
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
            Self::Creator(author) => created(resource, object, author, None),
            Self::Since(since) => {
                let updated = since.updated.as_deref();
                let mut managers = created(resource, object, &since.creator, updated);
                managers.0.extend(read(&since.status).0);
                managers
            }
            Self::Apart(json) => read(json),
        }
    }

    /// Returns the managers after a write that leaves everything but the status to the creator, which takes a fraction
    /// of the work of other writes: most are of this sort. Returns `None` for those.
    pub(crate) fn after(&self, write: &Write<'_>) -> Option<Self> {
        let (creator, updated, status) = match self {
            Self::Creator(author) => (author, None, "[]"),
            Self::Since(since) => (&since.creator, since.updated.as_deref(), &*since.status),
            Self::Shown | Self::Apart(_) => return None,
        };
        // A creator of nothing has no entry that could stay, and the fields of events depend on the group.
        let spec = write.new.get("spec").and_then(Value::as_object);
        let is_plain = spec.is_some_and(|spec| !spec.is_empty())
            && has_status(write.resource)
            && write.author.api_version == creator.api_version
            && write.resource.group != events::GROUP;
        let subresource = &*write.author.subresource;
        let (updated, status) = match subresource {
            _ if !is_plain => return None,
            "status" if is_same_but_for_status(write.old, write.new) => {
                let managers = read(status);
                // With the creator there would be more than an object keeps.
                if managers.0.len() + 2 > UPDATERS_MAX {
                    return None;
                }
                let tracked = &write.tracked;
                let after = tracked.update(write.old, write.new, managers, write.author, write.now);
                (updated, Cow::Owned(after.to_json()))
            }
            "" if write.author == &**creator && !has_fields_of_server(write.resource) => {
                let owns_more = write.tracked.adds_or_modifies(write.old, write.new);
                (if owns_more { Some(write.now) } else { updated }, Cow::Borrowed(status))
            }
            _ => return None,
        };
        Some(Self::Since(Arc::new(Since {
            creator: Arc::clone(creator),
            updated: updated.map(Into::into),
            status: status.into(),
        })))
    }

    /// Returns the same managers for an object that the server changes itself: they do not own the changes.
    pub(crate) fn settled(&self, resource: &Resource, object: &Map<String, Value>) -> Self {
        match self {
            Self::Creator(_) | Self::Since(_) => {
                Self::Apart(self.managers(resource, object).to_json().into())
            }
            Self::Shown | Self::Apart(_) => self.clone(),
        }
    }
}

/// Reads managers that were kept as JSON.
fn read(json: &str) -> Managers {
    let entries: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    Managers::from_json(&entries).unwrap_or_default()
}

fn is_same_but_for_status(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let rest =
        |object: &'_ Map<String, Value>| object.len() - usize::from(object.contains_key("status"));
    rest(old) == rest(new)
        && old.iter().all(|(name, value)| name == "status" || new.get(name) == Some(value))
}

/// Returns the manager of an object that owns everything but what the server sets.
fn created(
    resource: &Resource,
    object: &Map<String, Value>,
    author: &Author,
    updated: Option<&str>,
) -> Managers {
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
    let now = updated.or(metadata.and_then(Value::as_str)).unwrap_or_default();
    tracked.update(&Map::new(), &converted, Managers::default(), author, now)
}

/// Returns the fields of a new object that the server sets, or resets, so that its creator does not own them.
fn set_at_creation(resource: &Resource) -> Set {
    let mut fields: Vec<&[&str]> =
        vec![&["metadata", "deletionTimestamp"], &["metadata", "deletionGracePeriodSeconds"]];
    if has_status(resource) {
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

/// Returns whether a new object has no status of its creator's.
fn has_status(resource: &Resource) -> bool {
    resource.status || matches!((&*resource.group, &*resource.plural), ("", "pods" | "namespaces"))
}

/// Returns whether the server sets fields of new objects that a client may set later.
fn has_fields_of_server(resource: &Resource) -> bool {
    matches!((&*resource.group, &*resource.plural), ("", "namespaces" | "services"))
}
