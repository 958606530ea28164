//! Patch: JSON patch, merge patch, server-side apply and, for built-in kinds, strategic merge patch.

pub(super) mod apply;
mod strategic;

use std::sync::Arc;

use http::{Response, StatusCode};
use json_patch::{AddOperation, PatchOperation};
use kube_schema::Message;
use serde_json::Value;

use self::strategic::Refusal;
use super::write::{check_options, modify};
use super::{Call, owners, parts};
use crate::apply::Operation;
use crate::body::Body;
use crate::kinds::Resource;
use crate::limits::{
    JSON_PATCH_COPY_BYTES_MAX, JSON_PATCH_OPERATIONS_MAX, JSON_PATCH_SHIFTED_MAX, OBJECT_DEPTH_MAX,
};
use crate::negotiate;
use crate::object::{self, Object};
use crate::quote;
use crate::response::encoded;
use crate::server::Shared;
use crate::status::{FieldError, Status};
use crate::view::View;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The patch types of custom resources.
const CUSTOM_PATCHES: &[&str] = &[JSON_PATCH, MERGE_PATCH, APPLY_PATCH];

/// The supported types of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// Returns the patch type of a media type, or the error for an unsupported one.
    pub(super) fn of(media_type: &str, resource: &Resource) -> Result<Self, Status> {
        match media_type {
            JSON_PATCH => Ok(Self::Json),
            MERGE_PATCH => Ok(Self::Merge),
            APPLY_PATCH => Ok(Self::Apply),
            STRATEGIC_MERGE_PATCH if !resource.custom => Ok(Self::Strategic),
            _ if resource.custom => Err(Status::unsupported_media_type(CUSTOM_PATCHES)),
            _ => Err(Status::unsupported_patch_type()),
        }
    }
}

/// A decoded patch.
pub(super) enum Change {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Object, Message),
}

pub(super) fn patch(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    // Checked before the options, because the type determines which of them are allowed.
    let patch_type = PatchType::of(negotiate::content_type(&call.headers), &target.resource)?;
    if patch_type == PatchType::Apply {
        return apply::apply(shared, call, view);
    }
    let dry_run = check_options(&target.query, "PatchOptions")?;
    let change = Change::decode(patch_type, &call.body, &target.resource)?;
    let author = owners::author(call, Operation::Update);
    // The managers of an object are computed only if the patch may refer to them.
    let names_managers = memchr::memmem::find(&call.body, b"managedFields").is_some();
    let modified = modify(shared, target, &author, dry_run, |live| {
        let patched = if names_managers {
            change.apply(&live.with_managers())?
        } else {
            change.apply(live.object)?
        };
        let mut new = object::check_shape(target, patched).map_err(|status| misfit(&status))?;
        object::check_place(target, &mut new)?;
        let new = parts::restricted(target, live.object, new, &shared.clock.now_text())?;
        Ok(new.into())
    })?;
    Ok(encoded(StatusCode::OK, view.codec(), view.object(&modified)?))
}

impl Change {
    pub(super) fn decode(
        patch_type: PatchType,
        body: &[u8],
        resource: &Resource,
    ) -> Result<Self, Status> {
        let undecodable = |error: serde_json::Error| {
            Status::bad_request(format!("error decoding patch: {}", object::json_error(&error)))
        };
        match patch_type {
            PatchType::Json => {
                let patch: Value = serde_json::from_slice(body).map_err(undecodable)?;
                if !patch.is_array() {
                    return Err(no_patch(&patch, "[]handlers.jsonPatchOp"));
                }
                let operations: Vec<Object> = serde_json::from_value(patch).map_err(undecodable)?;
                // A list that contains invalid operations decodes, but does not apply.
                let patch: json_patch::Patch = serde_json::from_value(operations.into())
                    .map_err(|_| Status::unprocessable())?;
                if patch.0.len() > JSON_PATCH_OPERATIONS_MAX {
                    return Err(Status::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        format!(
                            "Request entity too large: The allowed maximum operations in a JSON \
                             patch is {JSON_PATCH_OPERATIONS_MAX}, got {}",
                            patch.0.len()
                        ),
                    ));
                }
                Ok(Self::Json(patch))
            }
            PatchType::Merge => {
                let patch: Value = serde_json::from_slice(body).map_err(undecodable)?;
                if !patch.is_object() {
                    return Err(no_patch(&patch, "map[string]interface {}"));
                }
                Ok(Self::Merge(patch))
            }
            PatchType::Strategic => strategic_patch(body, resource),
            PatchType::Apply => Err(Status::unsupported_patch_type()),
        }
    }

    pub(super) fn apply(&self, old: &Object) -> Result<Object, Status> {
        // The patch applies to what the client saw, in which the version is part of the metadata. A
        // patch that does not change the version makes no assertion about it.
        let seen = object::meta_text(old, "resourceVersion").to_owned();
        let mut value = Value::Object(old.clone());
        match self {
            Self::Json(patch) => apply_operations(&mut value, patch)?,
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
            Self::Strategic(patch, message) => {
                let merged = strategic::merge(old.clone(), patch.clone(), *message);
                value = merged.map_err(Refusal::into_status)?.into();
            }
        }
        let Value::Object(mut new) = value else { return Err(Status::unprocessable()) };
        if object::meta_text(&new, "resourceVersion").is_empty()
            && let Some(Value::Object(metadata)) = new.get_mut("metadata")
        {
            metadata.insert("resourceVersion".to_owned(), seen.into());
        }
        Ok(new)
    }
}

/// Decodes a strategic merge patch, for kinds whose schema is known.
fn strategic_patch(body: &[u8], resource: &Resource) -> Result<Change, Status> {
    let message = kube_schema::message(&resource.api_version(), &resource.kind)
        .ok_or_else(Status::unsupported_patch_type)?;
    let patch: Value = serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(object::json_error(&error)))?;
    match patch {
        Value::Object(patch) => Ok(Change::Strategic(patch, message)),
        // In Go, `null` decodes to an empty patch.
        Value::Null => Ok(Change::Strategic(Object::new(), message)),
        other => {
            let found = quote::json_type(&other);
            Err(Status::bad_request(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

/// Returns the error for JSON that is not a patch, in Go's words.
fn no_patch(value: &Value, go_type: &str) -> Status {
    let found = quote::json_type(value);
    let why = format!("json: cannot unmarshal {found} into Go value of type {go_type}");
    Status::bad_request(format!("error decoding patch: {why}"))
}

/// Returns the error for a patch whose result does not match the object's type. A real server
/// includes the result.
pub(super) fn misfit(status: &Status) -> Status {
    let value = "the patched object".to_owned();
    let error = FieldError::invalid_json("patch", value, status.message.as_str());
    Status::invalid("", "", "", &[error])
}

/// Returns whether an operation tests an absent member for `null`. Kubernetes treats the two as
/// equal, and clients rely on it to add the first finalizer. A strict JSON patch would fail.
fn finds_nothing(operation: &PatchOperation, value: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let path = test.path.as_str();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| value.pointer(parent));
    test.value.is_null() && parent.is_some_and(Value::is_object) && value.pointer(path).is_none()
}

/// Returns an `add` for a `replace` of an absent member. Kubernetes accepts that, where a strict
/// JSON patch would fail.
fn added_instead(operation: &PatchOperation, value: &Value) -> Option<PatchOperation> {
    let PatchOperation::Replace(replace) = operation else { return None };
    let path = replace.path.as_str();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| value.pointer(parent));
    (parent.is_some_and(Value::is_object) && value.pointer(path).is_none()).then(|| {
        let (path, value) = (replace.path.clone(), replace.value.clone());
        PatchOperation::Add(AddOperation { path, value })
    })
}

/// Applies a JSON patch within limits. Added values are limited by the body's size, but copies of
/// copies double in size and depth.
fn apply_operations(object: &mut Value, patch: &json_patch::Patch) -> Result<(), Status> {
    let (mut copied, mut shifts) = (0, 0_usize);
    for operation in &patch.0 {
        if finds_nothing(operation, object) {
            continue;
        }
        let added = added_instead(operation, object);
        let operation = added.as_ref().unwrap_or(operation);
        let moved = match operation {
            PatchOperation::Copy(copy) => object.pointer(copy.from.as_str()),
            PatchOperation::Move(change) => object.pointer(change.from.as_str()),
            _ => None,
        };
        copied += moved.map_or(0, size);
        if copied > JSON_PATCH_COPY_BYTES_MAX {
            return Err(Status::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                format!(
                    "Request entity too large: Unable to complete the copy, the accumulated size \
                     increase of copy is {copied}, exceeding the limit {JSON_PATCH_COPY_BYTES_MAX}"
                ),
            ));
        }
        shifts = shifts.saturating_add(shifted(object, operation));
        if shifts > JSON_PATCH_SHIFTED_MAX {
            return Err(Status::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                format!(
                    "Request entity too large: the patch shifts more than {JSON_PATCH_SHIFTED_MAX} \
                     items of lists: replace the lists instead"
                ),
            ));
        }
        let placed = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            _ => moved,
        };
        let depth = placed.map_or(0, |value| operation.path().count() + object::depth(value));
        if depth > OBJECT_DEPTH_MAX {
            return Err(Status::unprocessable());
        }
        // On failure the whole object is dropped, so nothing has to be undone.
        json_patch::patch_unsafe(object, std::slice::from_ref(operation))
            .map_err(|_| Status::unprocessable())?;
    }
    Ok(())
}

/// Returns the number of list items that an operation shifts: all after the one that it adds or
/// removes.
fn shifted(value: &Value, operation: &PatchOperation) -> usize {
    let behind = |path: &str| {
        let Some((list, at)) = path.rsplit_once('/') else { return 0 };
        let items = value.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
        // Nothing comes after `-`.
        items.saturating_sub(at.parse().unwrap_or(items))
    };
    match operation {
        PatchOperation::Add(_) | PatchOperation::Remove(_) | PatchOperation::Copy(_) => {
            behind(operation.path().as_str())
        }
        PatchOperation::Move(change) => behind(change.from.as_str()) + behind(change.path.as_str()),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
    }
}

/// Returns the approximate size of a value as JSON, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, value)| name.len() + 4 + size(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Registry;

    fn applied(object: &Value, patch: &Value) -> Result<Object, Status> {
        let body = patch.to_string();
        let registry = Registry::new();
        let maps = registry.get("", "v1", "configmaps").expect("they are served");
        let change = Change::decode(PatchType::Json, body.as_bytes(), maps)?;
        change.apply(object.as_object().expect("it is one"))
    }

    #[test]
    fn copies_of_copies_are_bounded() {
        let object = json!({"metadata": {"name": "a"}, "list": ["x".repeat(1000)]});
        let double = json!({"op": "copy", "from": "/list", "path": "/list/-"});
        let bomb = vec![double.clone(); 40];
        let refused = applied(&object, &bomb.into()).map(drop).unwrap_err();
        assert_eq!(refused.code, StatusCode::PAYLOAD_TOO_LARGE);
        let twice = applied(&object, &vec![double; 2].into()).unwrap();
        assert_eq!(twice["list"][2][1], object["list"]);
    }

    #[test]
    fn insertions_at_the_front_of_a_long_list_are_bounded() {
        let object = json!({"metadata": {"name": "a"}, "list": vec![1; 100_000]});
        let patch = |path: &str, times| {
            let add = json!({"op": "add", "path": path, "value": 0});
            applied(&object, &vec![add; times].into())
        };
        let refused = patch("/list/0", 200).map(drop).unwrap_err();
        assert_eq!(refused.code, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(patch("/list/0", 50).unwrap()["list"].as_array().unwrap().len(), 100_050);
        assert_eq!(patch("/list/-", 5_000).unwrap()["list"].as_array().unwrap().len(), 105_000);
    }

    #[test]
    fn no_operation_deepens_an_object_beyond_what_can_be_read() {
        let wrap = json!([
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "replace", "path": "/a", "value": {}},
            {"op": "move", "from": "/b", "path": "/a/a"},
        ]);
        let mut object = json!({"metadata": {"name": "a"}, "a": {}});
        let refused = (0..).find_map(|times| match applied(&object, &wrap) {
            Ok(deeper) => {
                object = Value::Object(deeper);
                assert!(object::depth(&object) <= OBJECT_DEPTH_MAX);
                None
            }
            Err(status) => Some((times, status.code)),
        });
        let (times, code) = refused.expect("it is refused some time");
        assert!(times > OBJECT_DEPTH_MAX - 8, "after {times}");
        assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(serde_json::from_str::<Value>(&object.to_string()).is_ok());
    }

    #[test]
    fn a_patch_that_fails_halfway_is_an_answer() {
        let object = json!({"metadata": {"name": "a"}, "list": []});
        for last in [
            json!({"op": "test", "path": "/list", "value": 1}),
            json!({"op": "remove", "path": ""}),
            json!({"op": "remove", "path": "/list/-"}),
            json!({"op": "move", "from": "/list", "path": "/list/0"}),
            json!({"op": "copy", "from": "/none", "path": "/list/0"}),
            json!({"op": "add", "path": "", "value": 1}),
        ] {
            let patch = json!([
                {"op": "add", "path": "/list/-", "value": 1}, {"op": "remove", "path": "/list/0"},
                last
            ]);
            assert_eq!(applied(&object, &patch).unwrap_err().code, 422, "{last}");
        }
    }
}
