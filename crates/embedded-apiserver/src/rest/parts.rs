//! Subresources that are parts of their object: what of a write each of them accepts.

use serde_json::{Value, json};

use crate::kinds::Subresource;
use crate::object::{self, Object};
use crate::request::Target;
use crate::status::{FieldError, Status};

/// Restricts a write to the part of the object that the target's subresource is.
pub(super) fn restricted(
    target: &Target,
    old: &Object,
    sent: Object,
    now: &str,
) -> Result<Object, Status> {
    let mut new = match target.subresource {
        Some(Subresource::Approval) => approval(old, &sent, now),
        Some(Subresource::EphemeralContainers) => ephemeral_containers(target, old, &sent)?,
        Some(Subresource::Finalize) => with_spec(old, "finalizers", sent_spec(&sent, "finalizers")),
        Some(Subresource::Resize) => resize(old, &sent),
        // The others are restricted where the object is completed.
        _ => return Ok(sent),
    };
    // The version that the client saw decides whether the write conflicts.
    let version = object::meta_text(&sent, "resourceVersion");
    object::metadata_mut(&mut new).insert("resourceVersion".to_owned(), version.into());
    Ok(new)
}

fn sent_spec<'a>(sent: &'a Object, field: &str) -> Option<&'a Value> {
    sent.get("spec").and_then(|spec| spec.get(field))
}

/// Returns the object with a field of its spec replaced, or removed.
fn with_spec(old: &Object, field: &str, value: Option<&Value>) -> Object {
    let mut new = old.clone();
    let spec = new.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        match value {
            Some(value) => drop(spec.insert(field.to_owned(), value.clone())),
            None => drop(spec.remove(field)),
        }
    }
    new
}

/// Takes the conditions of a signing request, and completes their times.
fn approval(old: &Object, sent: &Object, now: &str) -> Object {
    let mut new = old.clone();
    let conditions = sent.get("status").and_then(|status| status["conditions"].as_array());
    let mut conditions = conditions.cloned().unwrap_or_default();
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        for time in ["lastUpdateTime", "lastTransitionTime"] {
            let known = condition.get(time).is_some_and(Value::is_string);
            if !known {
                condition.insert(time.to_owned(), now.into());
            }
        }
    }
    let status = new.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    new
}

/// Takes new ephemeral containers. Existing ones stay as they are.
fn ephemeral_containers(target: &Target, old: &Object, sent: &Object) -> Result<Object, Status> {
    const FIELD: &str = "ephemeralContainers";
    let list = |object: &Object| -> Vec<Value> {
        sent_spec(object, FIELD).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (before, after) = (list(old), list(sent));
    let errors: Vec<_> = before
        .iter()
        .filter_map(|container| {
            let name = container["name"].as_str().unwrap_or_default();
            let change = match after.iter().find(|new| new["name"] == container["name"]) {
                None => "removed",
                Some(new) if new != container => "changed",
                Some(_) => return None,
            };
            let why = format!("existing ephemeral containers {name:?} may not be {change}\n");
            Some(FieldError::forbidden("spec.ephemeralContainers", why))
        })
        .collect();
    object::refuse(&target.resource, old, &errors)?;
    Ok(with_spec(old, FIELD, sent_spec(sent, FIELD)))
}

/// Takes the resources of the containers that a pod has.
fn resize(old: &Object, sent: &Object) -> Object {
    let mut new = old.clone();
    for list in ["containers", "initContainers"] {
        let sent = sent_spec(sent, list).and_then(Value::as_array);
        let Some(own) = new.get_mut("spec").and_then(|spec| spec.get_mut(list)?.as_array_mut())
        else {
            continue;
        };
        for container in own {
            let same = sent.into_iter().flatten().find(|other| other["name"] == container["name"]);
            if let (Some(same), Some(container)) = (same, container.as_object_mut()) {
                match same.get("resources") {
                    Some(resources) => {
                        container.insert("resources".to_owned(), resources.clone());
                    }
                    None => drop(container.remove("resources")),
                }
            }
        }
    }
    new
}
