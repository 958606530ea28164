//! Server-side apply: the request, and its answers.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::apply::{Author, Conflict, Managers, Operation, Type, path_text, problems};
use crate::body::Body;
use crate::kinds::Resource;
use crate::lifecycle;
use crate::limits::WRITE_RETRIES_MAX;
use crate::object::{self, Object};
use crate::quote;
use crate::request::Target;
use crate::response::encoded;
use crate::rest::owners::{self, Proposal};
use crate::rest::write::{check_apply_options, create_named, modify};
use crate::rest::{Call, parts};
use crate::server::Shared;
use crate::status::{Cause, Details, Status};
use crate::store::Key;
use crate::view::View;

/// Applies a configuration to an object, and creates the object if it does not exist.
pub(super) fn apply(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let dry_run = check_apply_options(&target.query)?;
    let config = Configuration::decode(&target.resource, &call.body)?;
    let author = owners::author(call, Operation::Apply);
    let force = target.query.force == Some(true);
    let key = Key::new(target.namespace(), target.name());
    for _ in 0..WRITE_RETRIES_MAX {
        let exists = shared.store.get(&target.resource.table, &key).is_some();
        if !exists && target.subresource.is_none() {
            match create(shared, call, &config, &author, dry_run, view) {
                // Another request was faster.
                Err(status) if status.reason == "AlreadyExists" => continue,
                outcome => return outcome,
            }
        }
        let modified = modify(shared, target, &author, dry_run, |live| {
            let before = Value::Object(live.object.clone());
            let managers = live.managers();
            let merged = merged(shared, target, &config, &before, &managers, &author, force)?;
            let now = shared.clock.now_text();
            let object = parts::restricted(target, live.object, merged.object, &now)?;
            Ok(Proposal { object, ..merged })
        });
        return match modified {
            // It was deleted in the meantime.
            Err(status) if status.reason == "NotFound" && exists => continue,
            Err(status) => Err(status),
            Ok(revision) => Ok(encoded(StatusCode::OK, view.codec(), view.object(&revision)?)),
        };
    }
    let why = "the object has been modified; please apply your changes to the latest version and \
               try again";
    Err(Status::conflict(target.resource.group_resource(), target.name(), why))
}

fn create(
    shared: &Arc<Shared>,
    call: &Call,
    config: &Configuration,
    author: &Author,
    dry_run: bool,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let empty = Value::Object(Object::new());
    let proposal = merged(shared, target, config, &empty, &Managers::default(), author, true)?;
    let uid = object::meta_text(&proposal.object, "uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(Status::conflict(target.resource.group_resource(), target.name(), why));
    }
    let namespace = lifecycle::check_namespace(shared, target, target.name())?;
    create_named(shared, call, proposal, namespace, dry_run, view)
}

/// Merges a configuration into an object.
fn merged(
    shared: &Shared,
    target: &Target,
    config: &Configuration,
    live: &Value,
    managers: &Managers,
    author: &Author,
    force: bool,
) -> Result<Proposal, Status> {
    let versions = owners::versions(shared, target);
    let tracked = owners::tracked(target, &versions);
    let now = shared.clock.now_text();
    let applied = tracked
        .apply_upgrading(live, &config.value, managers, author, &now, force)
        .map_err(|conflicts| refused(&conflicts))?;
    let Value::Object(object) = applied.object.unwrap_or_else(|| live.clone()) else {
        return Err(Status::unprocessable());
    };
    let mut object = object::check_shape(target, object)?;
    object::check_place(target, &mut object)?;
    Ok(Proposal { object, managers: Some(applied.managers) })
}

/// A configuration that can be merged into an object.
pub(in crate::rest) struct Configuration {
    pub(in crate::rest) value: Value,
}

impl Configuration {
    /// Decodes YAML or JSON, and checks that it has only fields of the kind.
    pub(in crate::rest) fn decode(resource: &Resource, body: &[u8]) -> Result<Self, Status> {
        let value = parse(body)?;
        let Value::Object(members) = &value else {
            let found = quote::json_type(&value);
            return Err(Status::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
                 unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if (api_version, kind) != (&*resource.api_version(), &*resource.kind) {
            let given = type_text(api_version, kind);
            return Err(Status::bad_request(format!("invalid object type: {given}")));
        }
        let metadata = members.get("metadata").and_then(Value::as_object);
        if metadata
            .is_some_and(|metadata| metadata.get("managedFields").is_some_and(|m| !m.is_null()))
        {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        check(resource.merge_type(), &value)?;
        Ok(Self { value })
    }
}

fn parse(body: &[u8]) -> Result<Value, Status> {
    let undecodable =
        |why: &dyn std::fmt::Display| Status::bad_request(format!("error decoding YAML: {why}"));
    let text = std::str::from_utf8(body).map_err(|error| undecodable(&error))?;
    if let Ok(json) = serde_json::from_str(text) {
        return Ok(json);
    }
    let value: Value = serde_saphyr::from_str(text)
        // The snippet would show lines of the body, which may be a secret.
        .map_err(|error| undecodable(&error.without_snippet()))?;
    if object::depth(&value) > crate::limits::OBJECT_DEPTH_MAX {
        return Err(undecodable(&"it is nested too deeply"));
    }
    Ok(value)
}

/// Refuses a configuration with fields that the kind does not have. A real server has the same
/// message, with the code of an internal error.
fn check(kind: Type<'_>, config: &Value) -> Result<(), Status> {
    let problems = problems(kind, config);
    let all = match &*problems {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let text = |name: &str| config[name].as_str().unwrap_or_default();
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = config["metadata"]["namespace"].as_str().unwrap_or_default();
    let given = type_text(text("apiVersion"), text("kind"));
    let message =
        format!("failed to create typed patch object ({namespace}/{name}; {given}): {all}");
    Err(Status::bad_request(message))
}

/// Returns a kind as Go prints it: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
fn type_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Returns the answer to an apply that would change fields of other managers.
pub(in crate::rest) fn refused(conflicts: &[Conflict]) -> Status {
    let causes = conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", conflict.author),
        field: path_text(&conflict.path),
    });
    let details = Details { causes: causes.collect(), ..Details::default() };
    let message = match conflicts {
        [one] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.author,
            path_text(&one.path)
        ),
        many => {
            let groups = many.chunk_by(|a, b| a.author == b.author);
            let groups = groups.map(|group| {
                let paths =
                    group.iter().map(|conflict| format!("\n- {}", path_text(&conflict.path)));
                format!("conflicts with {}:{}", group[0].author, paths.collect::<String>())
            });
            let groups: Vec<String> = groups.collect();
            format!("Apply failed with {} conflicts: {}", many.len(), groups.join("\n"))
        }
    };
    let mut status = Status::new(StatusCode::CONFLICT, "Conflict", message);
    status.details = Some(Box::new(details));
    status
}
