//! Requests whose objects are not stored: what they have in common.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{Call, write};
use crate::body::Body;
use crate::kinds::{Resource, Subresource};
use crate::negotiate;
use crate::object::Object;
use crate::request::{Query, Target, Verb};
use crate::response::encoded;
use crate::server::Shared;
use crate::status::Status;

/// Decodes the object of a subresource's kind in the body.
pub(super) fn decode(call: &Call, resource: &Arc<Resource>) -> Result<Object, Status> {
    let request = Call {
        id: call.id,
        target: Target {
            resource: Arc::clone(resource),
            storage: Arc::clone(resource),
            ..call.target.clone()
        },
        headers: call.headers.clone(),
        body: call.body.clone(),
        age: call.age,
    };
    write::decode(&request)
}

/// Returns the response to a success that has no object of its own.
pub(super) fn success(call: &Call) -> Result<Response<Body>, Status> {
    created(
        call,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }),
    )
}

/// Returns the response to a creation.
fn created(call: &Call, object: &Value) -> Result<Response<Body>, Status> {
    let codec = negotiate::representation(&call.headers, Verb::Create, false)?.codec;
    let body = codec.encode(object).map_err(Status::internal)?;
    Ok(encoded(StatusCode::CREATED, codec, body))
}

/// Returns the target of a write to the status of an object.
pub(super) fn status_target(
    shared: &Shared,
    (group, plural): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<Target, Status> {
    let registry = shared.registry.read();
    let resource = registry.get(group, "v1", plural).ok_or_else(Status::no_such_resource)?;
    Ok(Target {
        verb: Verb::Update,
        resource: Arc::clone(resource),
        storage: Arc::clone(resource),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        subresource: Some(Subresource::Status),
        query: Query::default(),
    })
}

/// Sets a condition in the status of an object. The time of its last transition changes only if its
/// status does.
pub(super) fn set_condition(object: &mut Object, mut condition: Value, now: &str) {
    let status = object.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(all) = status["conditions"].as_array_mut() else { return };
    condition["lastTransitionTime"] = now.into();
    match all.iter_mut().find(|old| old["type"] == condition["type"]) {
        None => all.push(condition),
        Some(old) => {
            if old["status"] == condition["status"] && old["lastTransitionTime"].is_string() {
                condition["lastTransitionTime"] = old["lastTransitionTime"].take();
            }
            *old = condition;
        }
    }
}

/// Returns the error for requests that need a container that runs.
pub(super) fn unsupported(call: &Call) -> Status {
    let path = call.target.resource_path();
    let why = format!("{path} is not supported by this server: no container or network exists");
    Status::new(StatusCode::NOT_IMPLEMENTED, "", why)
}
