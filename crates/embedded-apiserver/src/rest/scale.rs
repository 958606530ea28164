//! The `scale` subresource: the replicas of an object, read and written as a `Scale` of `autoscaling/v1`.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::owners::{self, Proposal};
use super::patch::apply::{Configuration, refused};
use super::patch::{Change, PatchType, misfit};
use super::write::{self, check_apply_options, check_options, modify, served};
use super::{Call, read};
use crate::apply::{Author, Operation, Replicas};
use crate::body::Body;
use crate::kinds::scale::{self, ScalePaths, SelectorField};
use crate::negotiate;
use crate::object::{self, Object};
use crate::print;
use crate::request::{Target, Verb};
use crate::response::encoded;
use crate::server::Shared;
use crate::status::{FieldError, GroupResource, Status};
use crate::store::{Draft, EventType, Revision};
use crate::view::View;

/// The metadata that a scale has in common with the object.
const METADATA: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];

/// Answers a request for the scale of an object.
pub(super) async fn answer(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let paths = target.resource.scale.as_ref().ok_or_else(Status::no_such_resource)?;
    let resource = scale::resource(&target.resource);
    let view = View::new(
        &resource,
        negotiate::representation(&call.headers, target.verb, false)?,
        &target.query.include_object,
        &shared.clock,
    )?;
    // The same request, of an object of kind `Scale`.
    let request = Call {
        id: call.id,
        target: Target {
            resource: Arc::clone(&resource),
            storage: Arc::clone(&resource),
            ..target.clone()
        },
        headers: call.headers.clone(),
        body: call.body.clone(),
        age: call.age,
    };
    let found = match target.verb {
        Verb::Get => read::find(shared, target).await,
        Verb::Update => update(shared, target, &request, paths),
        _ => patch(shared, target, &request, paths),
    };
    let revision = found.map_err(|status| match status.reason {
        "NotFound" => missing(target),
        _ => status,
    })?;
    let object = served(target, &revision);
    if target.resource.custom && field(&object, &paths.spec_replicas).is_none() {
        let path = &paths.spec_replicas;
        let why = format!("the spec replicas field \".{path}\" does not exist");
        return Err(Status::internal(why));
    }
    let draft = Draft::encode(&resource, &scale_of(&object, paths)?);
    let key = Arc::clone(revision.key());
    let shown = draft.seal(key, EventType::Modified, revision.version());
    Ok(encoded(StatusCode::OK, view.codec(), view.object(&shown)?))
}

fn update(
    shared: &Arc<Shared>,
    target: &Target,
    request: &Call,
    paths: &ScalePaths,
) -> Result<Arc<Revision>, Status> {
    let dry_run = check_options(&target.query, "UpdateOptions")?;
    let mut sent = write::decode(request)?;
    object::check_place(&request.target, &mut sent)?;
    let replicas = replicas(&sent)?;
    let author = owners::author_of(request, target, Operation::Update);
    modify(shared, target, &author, dry_run, |live| {
        Ok(scaled(target, live.object, &sent, replicas, paths)?.into())
    })
}

fn patch(
    shared: &Arc<Shared>,
    target: &Target,
    request: &Call,
    paths: &ScalePaths,
) -> Result<Arc<Revision>, Status> {
    let patch_type = PatchType::of(negotiate::content_type(&request.headers), &target.resource)?;
    if patch_type == PatchType::Apply {
        return apply(shared, target, request, paths);
    }
    let dry_run = check_options(&target.query, "PatchOptions")?;
    let change = Change::decode(patch_type, &request.body, &request.target.resource)?;
    let author = owners::author_of(request, target, Operation::Update);
    modify(shared, target, &author, dry_run, |live| {
        let old = live.object;
        let patched = change.apply(&scale_of(old, paths)?)?;
        let mut new =
            object::check_shape(&request.target, patched).map_err(|status| misfit(&status))?;
        object::check_place(&request.target, &mut new)?;
        let replicas = replicas(&new).map_err(|status| misfit(&status))?;
        Ok(scaled(target, old, &new, replicas, paths)?.into())
    })
}

/// Applies a configuration to the scale. The managers of the replicas are those of the object.
fn apply(
    shared: &Arc<Shared>,
    target: &Target,
    request: &Call,
    paths: &ScalePaths,
) -> Result<Arc<Revision>, Status> {
    let dry_run = check_apply_options(&target.query)?;
    let resource = &request.target.resource;
    let config = Configuration::decode(resource, &request.body)?;
    let (scale_version, api_version) = (resource.api_version(), target.resource.api_version());
    let author = owners::author_of(request, target, Operation::Apply);
    let scale_author = Author { api_version: scale_version.clone(), ..author.clone() };
    let path = Replicas::at(&paths.spec_replicas);
    modify(shared, target, &author, dry_run, |live| {
        let versions = owners::versions(shared, &request.target);
        let tracked = owners::tracked(&request.target, &versions);
        let before = live.managers();
        let managers = path.of_scale(&before, &scale_version);
        let scale = Value::Object(scale_of(live.object, paths)?);
        let force = target.query.force == Some(true);
        let now = shared.clock.now_text();
        let applied = tracked
            .apply(&scale, &config.value, &managers, &scale_author, &now, force)
            .map_err(|conflicts| refused(&conflicts))?;
        let Value::Object(new) = applied.object.unwrap_or(scale) else {
            return Err(Status::unprocessable());
        };
        let mut new = object::check_shape(&request.target, new)?;
        object::check_place(&request.target, &mut new)?;
        let object = scaled(target, live.object, &new, replicas(&new)?, paths)?;
        let managers = path.of_object(&before, &applied.managers, &api_version);
        Ok(Proposal { object, managers: Some(managers) })
    })
}

/// Returns the scale of an object.
fn scale_of(object: &Object, paths: &ScalePaths) -> Result<Object, Status> {
    let metadata = object::metadata(object);
    let metadata: Object = METADATA
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), metadata.get(*name)?.clone())))
        .collect();
    let count = |path: &str| field(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = json!({});
    // Left out if zero, as Go does it; that of the status is not.
    match count(&paths.spec_replicas) {
        0 => {}
        replicas => spec["replicas"] = replicas.into(),
    }
    let mut status = json!({"replicas": count(&paths.status_replicas)});
    let selector = selector(object, &paths.selector)?;
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let members = [
        ("apiVersion", format!("{}/{}", scale::GROUP, scale::VERSION).into()),
        ("kind", scale::KIND.into()),
        ("metadata", metadata.into()),
        ("spec", spec),
        ("status", status),
    ];
    Ok(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns the selector of an object's pods as text, empty if there is none.
fn selector(object: &Object, place: &SelectorField) -> Result<String, Status> {
    let selector = match place {
        SelectorField::Absent => return Ok(String::new()),
        SelectorField::Text(path) => {
            let text = field(object, path).and_then(Value::as_str);
            return Ok(text.unwrap_or_default().to_owned());
        }
        SelectorField::LabelSelector => field(object, "spec.selector").cloned().unwrap_or_default(),
        SelectorField::Labels => json!({"matchLabels": field(object, "spec.selector")}),
    };
    print::requirements(&selector).ok_or_else(|| {
        Status::bad_request("the object's spec.selector is not a valid label selector")
    })
}

/// Returns the number of replicas that a scale asks for. As in Go, absence is zero.
fn replicas(scale: &Object) -> Result<i32, Status> {
    let cannot = |found: &Value, place: &str, go_type: &str| {
        let found = match found {
            Value::Number(number) => format!("number {number}"),
            other => crate::quote::json_type(other).to_owned(),
        };
        Status::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {found} \
             into Go struct field {place} of type {go_type}"
        ))
    };
    let replicas = match scale.get("spec") {
        None | Some(Value::Null) => return Ok(0),
        Some(Value::Object(spec)) => spec.get("replicas"),
        Some(other) => return Err(cannot(other, "Scale.spec", "v1.ScaleSpec")),
    };
    match replicas {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| cannot(value, "ScaleSpec.spec.replicas", "int32")),
    }
}

/// Returns the object with the replicas of a scale.
fn scaled(
    target: &Target,
    old: &Object,
    scale: &Object,
    replicas: i32,
    paths: &ScalePaths,
) -> Result<Object, Status> {
    if replicas < 0 {
        let why = "must be greater than or equal to 0";
        let errors = [FieldError::invalid("spec.replicas", replicas, why)];
        return Err(Status::invalid(scale::GROUP, scale::KIND, target.name(), &errors));
    }
    let (wanted, found) = (object::meta_text(scale, "uid"), object::meta_text(old, "uid"));
    if !wanted.is_empty() && wanted != found {
        let why = format!(
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        );
        let plural = target.resource_path();
        let what = GroupResource { group: &target.resource.group, resource: &plural };
        return Err(Status::conflict(what, target.name(), why));
    }
    let mut new = old.clone();
    set(&mut new, &paths.spec_replicas, replicas.into())?;
    let version = object::meta_text(scale, "resourceVersion");
    if !version.is_empty() {
        object::metadata_mut(&mut new).insert("resourceVersion".to_owned(), version.into());
    }
    Ok(new)
}

/// The answer to a request for the scale of an object that does not exist. Kubernetes' kinds differ in what they name.
fn missing(target: &Target) -> Status {
    let resource = &target.resource;
    let is_get = target.verb == Verb::Get;
    if resource.custom || (is_get && resource.plural == "statefulsets") {
        return Status::not_found(resource.group_resource(), target.name());
    }
    let group = match &*resource.group {
        "" if is_get => scale::GROUP,
        group => group,
    };
    Status::not_found(GroupResource { group, resource: &target.resource_path() }, target.name())
}

/// Returns the field at a dotted path.
fn field<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    let mut members = path.split('.');
    let first = object.get(members.next()?)?;
    members.try_fold(first, |value, member| value.get(member))
}

/// Sets the field at a dotted path, and makes the objects on the way to it.
fn set(object: &mut Object, path: &str, value: Value) -> Result<(), Status> {
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = object;
    for member in parents.split('.') {
        let inner = place.entry(member).or_insert_with(|| json!({}));
        place = inner.as_object_mut().ok_or_else(|| {
            Status::internal(format!("the field {path:?} cannot be set: {member:?} is no object"))
        })?;
    }
    place.insert(last.to_owned(), value);
    Ok(())
}
