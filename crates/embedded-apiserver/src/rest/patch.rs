//! Patch: JSON patch and merge patch. Strategic merge patch and server-side apply would be further
//! arms of [`Change`].

use std::sync::Arc;

use http::{Response, StatusCode};
use json_patch::PatchOperation;
use serde_json::Value;

use super::write::{is_dry_run, modify};
use super::{Call, json};
use crate::body::Body;
use crate::limits::JSON_PATCH_OPERATIONS_MAX;
use crate::negotiate;
use crate::object::{self, Object};
use crate::server::Shared;
use crate::status::{FieldError, Status};
use crate::view::View;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A patch, understood.
enum Change {
    Json(json_patch::Patch),
    Merge(Value),
}

pub(super) fn patch(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let dry_run = is_dry_run(&target.query.dry_run, "PatchOptions")?;
    let change = Change::decode(negotiate::content_type(&call.headers), &call.body)?;
    let modified = modify(shared, target, dry_run, |old| {
        let patched = change.apply(old)?;
        let mut new = object::check_shape(target, patched).map_err(|status| misfit(&status))?;
        object::check_place(target, &mut new)?;
        Ok(new)
    })?;
    Ok(json(StatusCode::OK, view.object(&modified)))
}

impl Change {
    fn decode(media_type: &str, body: &[u8]) -> Result<Self, Status> {
        let undecodable = |error: serde_json::Error| {
            Status::bad_request(format!("error decoding patch: {error}"))
        };
        match media_type {
            JSON_PATCH => {
                let operations: Vec<Value> = serde_json::from_slice(body).map_err(undecodable)?;
                // A list of what are no operations can be decoded, but not applied.
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
            MERGE_PATCH => {
                let patch: Value = serde_json::from_slice(body).map_err(undecodable)?;
                if !patch.is_object() {
                    return Err(Status::bad_request(
                        "error decoding patch: a merge patch is a JSON object",
                    ));
                }
                Ok(Self::Merge(patch))
            }
            _ => Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH])),
        }
    }

    fn apply(&self, old: &Object) -> Result<Object, Status> {
        // The patch is against what the client saw, in which the version is part of the metadata;
        // one that does not touch it makes no claim on the version.
        let seen = object::meta_text(old, "resourceVersion").to_owned();
        let mut value = Value::Object(old.clone());
        match self {
            Self::Json(patch) => {
                for operation in &patch.0 {
                    if !finds_nothing(operation, &value) {
                        json_patch::patch(&mut value, std::slice::from_ref(operation))
                            .map_err(|_| Status::unprocessable())?;
                    }
                }
            }
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
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

/// The answer to a patch that makes something else of an object than one of its kind. A real server
/// shows the whole of it.
fn misfit(status: &Status) -> Status {
    let value = "the patched object".to_owned();
    let error = FieldError::invalid_json("patch", value, status.message.as_str());
    Status::invalid("", "", "", &[error])
}

/// Whether an operation tests for `null` where there is no member. Kubernetes takes the one for the
/// other, and clients say so to add the first finalizer; a strict JSON patch would fail.
fn finds_nothing(operation: &PatchOperation, value: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let path = test.path.as_str();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| value.pointer(parent));
    test.value.is_null() && parent.is_some_and(Value::is_object) && value.pointer(path).is_none()
}
