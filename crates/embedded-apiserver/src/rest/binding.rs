//! Bindings, with which a scheduler assigns a pod to a node.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use super::unstored::{decode, set_condition, status_target, success};
use super::{Call, write};
use crate::body::Body;
use crate::kinds::Subresource;
use crate::limits::WRITE_RETRIES_MAX;
use crate::object::{self, Object};
use crate::server::Shared;
use crate::status::{FieldError, GroupResource, Status};
use crate::store::{Draft, Expected, Key};

const PODS: GroupResource<'static> = GroupResource { group: "", resource: "pods" };

pub(super) fn create(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let dry_run = write::check_options(&target.query, "CreateOptions")?;
    let binding = decode(call, &Subresource::Binding.resource(&target.resource))?;
    let sent_name = object::meta_text(&binding, "name");
    // Posted to `bindings`, it names the pod itself.
    let name = target.name.as_deref().unwrap_or(sent_name);
    if sent_name != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let wanted = binding.get("target").unwrap_or(&Value::Null);
    check_node(wanted)?;
    let node = wanted["name"].as_str().unwrap_or_default();
    assign(shared, target.namespace(), name, &binding, node, dry_run)?;
    success(call)
}

/// Checks the node that a binding names.
fn check_node(node: &Value) -> Result<(), Status> {
    let text = |field: &str| node[field].as_str().unwrap_or_default();
    let error = match (text("kind"), text("name")) {
        ("" | "Node", "") => FieldError::required("target.name", ""),
        ("" | "Node", _) => return Ok(()),
        (kind, _) => FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]),
    };
    // A real server has the same message, with the code of an internal error.
    Err(Status::bad_request(error.to_string()))
}

fn assign(
    shared: &Shared,
    namespace: &str,
    name: &str,
    binding: &Object,
    node: &str,
    dry_run: bool,
) -> Result<(), Status> {
    let resource = status_target(shared, ("", "pods"), namespace, name)?.resource;
    let key = Key::new(namespace, name);
    for _ in 0..WRITE_RETRIES_MAX {
        let found = shared.store.get(&resource.table, &key);
        let current = found.ok_or_else(|| Status::not_found(PODS, name))?;
        let mut pod = current.to_map();
        check_pod(&pod, binding, name)?;
        // The scheduler does not own what a binding changes.
        let ownership = current.ownership().settled(&resource, &pod);
        bind(&mut pod, binding, node, &shared.clock.now_text());
        if dry_run {
            return Ok(());
        }
        let draft = Draft::encode(&resource, &pod).owned(ownership);
        let expected = Expected::Version(current.version());
        if shared.store.put(&resource.table, expected, &draft).is_ok() {
            return Ok(());
        }
    }
    let why = "the object has been modified; please apply your changes to the latest version and \
               try again";
    Err(Status::conflict(PODS, name, why))
}

/// Checks that a pod is the one that the binding means, and can be assigned to a node.
fn check_pod(pod: &Object, binding: &Object, name: &str) -> Result<(), Status> {
    for (field, shown) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (wanted, found) = (object::meta_text(binding, field), object::meta_text(pod, field));
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "Precondition failed: {shown} in precondition: {wanted}, {shown} in object meta: \
                 {found}"
            );
            return Err(Status::conflict(PODS, name, why));
        }
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let node = spec["nodeName"].as_str().unwrap_or_default();
    let why = if object::metadata(pod).contains_key("deletionTimestamp") {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    let what = GroupResource { group: "", resource: "pods/binding" };
    Err(Status::conflict(what, name, why))
}

fn bind(pod: &mut Object, binding: &Object, node: &str, now: &str) {
    let spec = pod.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("nodeName".to_owned(), node.into());
    }
    for map in ["annotations", "labels"] {
        let Some(Value::Object(sent)) = object::metadata(binding).get(map) else { continue };
        let own = object::metadata_mut(pod).entry(map).or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            own.extend(sent.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    set_condition(pod, scheduled, now);
}
