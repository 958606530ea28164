//! Validation of the values in `metadata`.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::names;
use crate::kinds::{NameRule, Resource, crd};
use crate::limits::FIELD_ERRORS_MAX;
use crate::quote::quoted;
use crate::status::{FieldError, clipped};

type Object = Map<String, Value>;

const ANNOTATION_BYTES_MAX: usize = 256 * 1024;
const IMMUTABLE: &str = "field is immutable";

/// Validates the metadata of a new object.
///
/// Kubernetes generates the name first, and then checks both the name and `generateName`; so should
/// the caller. Before that, a `generateName` alone is accepted as a name.
pub(crate) fn create(resource: &Resource, metadata: &Object) -> Vec<FieldError> {
    let mut errors = judge(resource.name_rule, resource.namespaced, metadata);
    errors.extend(bare_finalizers(resource, metadata));
    errors
}

/// Validates a change of metadata from `old` to `new`.
///
/// A client may omit some fields or send other values without an error. The caller must first set
/// them from the old object: `uid`, `creationTimestamp`, `deletionTimestamp` and
/// `deletionGracePeriodSeconds`, and also `resourceVersion` where updates may be unconditional.
pub(crate) fn update(resource: &Resource, old: &Object, new: &Object) -> Vec<FieldError> {
    // An accepted name is not validated again by the rule of its kind, which may have become
    // stricter since. The name cannot change anyway.
    let mut errors = judge(NameRule::PathSegment, resource.namespaced, new);
    errors.extend(bare_finalizers(resource, new));
    if present(old, "deletionTimestamp").is_some() {
        errors.extend(new_finalizers(old, new));
    }
    if text(new, "resourceVersion").is_empty() {
        let why = "must be specified for an update";
        errors.push(FieldError::invalid("metadata.resourceVersion", "", why));
    }
    for field in ["name", "namespace", "uid"] {
        if text(old, field) != text(new, field) {
            errors.push(immutable(field, text(new, field)));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if !same_time(text(old, field), text(new, field)) {
            errors.push(immutable(field, present(new, field).cloned()));
        }
    }
    let field = "deletionGracePeriodSeconds";
    if present(old, field) != present(new, field) {
        errors.push(immutable(field, present(new, field).cloned()));
    }
    errors
}

/// Returns the error for an update without a version, where the kind does not allow that.
///
/// It prints the version as the number that the storage parsed, unlike the check in [`update`].
pub(crate) fn version_required() -> FieldError {
    FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update")
}

fn judge(rule: NameRule, namespaced: bool, metadata: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    name(rule, metadata, &mut errors);
    namespace(namespaced, text(metadata, "namespace"), &mut errors);
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation, why));
    }
    labels(metadata, &mut errors);
    annotations(metadata, &mut errors);
    owners(metadata, &mut errors);
    finalizers(metadata, &mut errors);
    errors
}

fn name(rule: NameRule, metadata: &Object, errors: &mut Vec<FieldError>) {
    let (name, prefix) = (text(metadata, "name"), text(metadata, "generateName"));
    if !prefix.is_empty() {
        invalid("metadata.generateName", prefix, names::prefix(rule, prefix), errors);
    }
    if !name.is_empty() {
        invalid("metadata.name", name, names::name(rule, name), errors);
    } else if prefix.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    }
}

fn namespace(namespaced: bool, namespace: &str, errors: &mut Vec<FieldError>) {
    let field = "metadata.namespace";
    match (namespaced, namespace) {
        (true, "") => errors.push(FieldError::required(field, "")),
        (true, namespace) => {
            invalid(field, namespace, names::dns1123_label(namespace), errors);
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(field, "not allowed on this type")),
    }
}

fn labels(metadata: &Object, errors: &mut Vec<FieldError>) {
    for (key, value) in strings(metadata, "labels") {
        if errors.len() >= FIELD_ERRORS_MAX {
            break;
        }
        invalid("metadata.labels", key, names::qualified_name(key), errors);
        invalid("metadata.labels", value, names::label_value(value), errors);
    }
}

fn annotations(metadata: &Object, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in strings(metadata, "annotations") {
        bytes += key.len() + value.len();
        if errors.len() >= FIELD_ERRORS_MAX {
            continue;
        }
        // Unlike that of a label, the prefix of an annotation may contain capital letters.
        let wrong = names::qualified_name(&key.to_lowercase());
        invalid("metadata.annotations", key, wrong, errors);
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATION_BYTES_MAX));
    }
}

/// An owner reference as Kubernetes prints it: these fields, in this order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

impl<'a> Owner<'a> {
    /// Reads a reference. Anything but an object is an empty one, as null is in Kubernetes.
    fn of(value: &'a Value) -> Self {
        let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let flag = |field| value.get(field).and_then(Value::as_bool);
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: flag("controller"),
            block_owner_deletion: flag("blockOwnerDeletion"),
        }
    }

    /// Returns the version, or "" if the `apiVersion` is invalid.
    fn version(&self) -> &'a str {
        match self.api_version.split_once('/') {
            None => self.api_version,
            Some((_, version)) if version.contains('/') => "",
            Some((_, version)) => version,
        }
    }

    fn check(&self, errors: &mut Vec<FieldError>) {
        let field = "metadata.ownerReferences";
        if self.version().is_empty() {
            let why = "version must not be empty";
            errors.push(FieldError::invalid(format!("{field}.apiVersion"), self.api_version, why));
        }
        for (name, value) in [("kind", self.kind), ("name", self.name), ("uid", self.uid)] {
            if value.is_empty() {
                let field = format!("{field}.{name}");
                errors.push(FieldError::invalid(field, value, "must not be empty"));
            }
        }
        // Events expire, and would take the objects that they own with them.
        if matches!(self.api_version, "v1" | "/v1") && self.kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid_json(field, json(self), why));
        }
    }
}

fn owners(metadata: &Object, errors: &mut Vec<FieldError>) {
    let owners: Vec<_> = list(metadata, "ownerReferences").iter().map(Owner::of).collect();
    // For the errors, each of which shows all of them.
    let all = OnceCell::new();
    let mut controller = None;
    for owner in &owners {
        if errors.len() >= FIELD_ERRORS_MAX {
            break;
        }
        owner.check(errors);
        if owner.controller != Some(true) {
            continue;
        }
        let this = format!("{}/{}", owner.kind, owner.name);
        if let Some(first) = &controller {
            let why = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references \
                 for {first} and {this}"
            );
            errors.push(FieldError::invalid_json(
                "metadata.ownerReferences",
                all.get_or_init(|| clipped(json(&owners))).clone(),
                why,
            ));
        } else {
            controller = Some(this);
        }
    }
}

/// Validates finalizers without a domain, which are reserved for Kubernetes. Custom resources may
/// have any.
fn bare_finalizers(resource: &Resource, metadata: &Object) -> Vec<FieldError> {
    if resource.custom || resource.group == crd::GROUP {
        return Vec::new();
    }
    let known = ["orphan", "foregroundDeletion", "kubernetes"];
    let indexed = finalizer_names(metadata).into_iter().enumerate();
    let bare = indexed.filter(|(_, name)| !name.contains('/') && !known.contains(name));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let bare = bare.take(FIELD_ERRORS_MAX);
    bare.map(|(at, name)| FieldError::invalid(format!("metadata.finalizers[{at}]"), name, why))
        .collect()
}

fn finalizers(metadata: &Object, errors: &mut Vec<FieldError>) {
    let field = "metadata.finalizers";
    let finalizers = finalizer_names(metadata);
    for name in &finalizers {
        if errors.len() >= FIELD_ERRORS_MAX {
            break;
        }
        invalid(field, name, names::qualified_name(name), errors);
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid_json(field, json(&finalizers), why));
    }
}

fn new_finalizers(old: &Object, new: &Object) -> Option<FieldError> {
    let had: BTreeSet<_> = finalizer_names(old).into_iter().collect();
    let has: BTreeSet<_> = finalizer_names(new).into_iter().collect();
    let added: Vec<_> = has.difference(&had).map(|name| quoted(name)).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        added.join(", ")
    );
    (!added.is_empty()).then(|| FieldError::forbidden("metadata.finalizers", why))
}

fn finalizer_names(metadata: &Object) -> Vec<&str> {
    let names = list(metadata, "finalizers").iter();
    names.map(|name| name.as_str().unwrap_or_default()).collect()
}

fn immutable(field: &str, value: impl Into<Value>) -> FieldError {
    FieldError::invalid(format!("metadata.{field}"), value, IMMUTABLE)
}

/// Compares two times, which may be spelt differently. Invalid times must be identical.
fn same_time(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<Timestamp>(), b.parse()), (Ok(a), Ok(b)) if a == b)
}

/// Adds an error for each problem of a value.
fn invalid(field: &str, value: &str, wrong: Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(wrong.into_iter().map(|why| FieldError::invalid(field, value, why)));
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the field, unless it is absent or null.
fn present<'a>(metadata: &'a Object, field: &str) -> Option<&'a Value> {
    metadata.get(field).filter(|value| !value.is_null())
}

fn text<'a>(metadata: &'a Object, field: &str) -> &'a str {
    metadata.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(metadata: &'a Object, field: &str) -> &'a [Value] {
    metadata.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn strings<'a>(metadata: &'a Object, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = metadata.get(field).and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
