//! Create and update.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

use super::owners::{self, Claim, Live, Proposal};
use super::{Call, parts};
use crate::apply::{Author, Operation};
use crate::body::Body;
use crate::codec::Codec;
use crate::kinds::events;
use crate::limits::{FIELD_MANAGER_BYTES_MAX, OBJECT_BYTES_MAX, WRITE_RETRIES_MAX};
use crate::negotiate;
use crate::object::{self, Object};
use crate::request::{Query, Target, parse_version};
use crate::response::encoded;
use crate::server::Shared;
use crate::status::{FieldError, Status};
use crate::store::{Draft, EventType, Expected, Key, Revision};
use crate::validate;
use crate::view::View;
use crate::{defaults, lifecycle};

/// The attempts at a generateName. Five random characters collide once in some ten million.
const NAME_TRIES: usize = 8;

pub(super) fn create(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let dry_run = check_options(&target.query, "CreateOptions")?;
    let mut sent = decode(call)?;
    object::check_place(target, &mut sent)?;
    let named = ["name", "generateName"].map(|field| object::meta_text(&sent, field));
    let named = named.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    let namespace = lifecycle::check_namespace(shared, target, named)?;
    if !object::meta_text(&sent, "name").is_empty() {
        return create_named(shared, call, sent.into(), namespace, dry_run, view);
    }
    let what = target.resource.group_resource();
    let mut outcome = Err(Status::already_exists(what, object::meta_text(&sent, "generateName")));
    for _ in 0..NAME_TRIES {
        outcome = create_named(shared, call, sent.clone().into(), namespace.clone(), dry_run, view);
        if !outcome.as_ref().is_err_and(|status| status.reason == "AlreadyExists") {
            break;
        }
    }
    outcome
}

pub(super) fn create_named(
    shared: &Arc<Shared>,
    call: &Call,
    sent: Proposal,
    mut namespace: Option<Arc<Revision>>,
    dry_run: bool,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let table = &target.resource.table;
    let Proposal { mut object, managers } = sent;
    // The storage, which a dry run does not reach, refuses it.
    let version =
        if dry_run { object::metadata_mut(&mut object).remove("resourceVersion") } else { None };
    let _definitions = lifecycle::hold_definitions(shared, target);
    let mut object = newborn(shared, call, object)?;
    let author = owners::author(call, Operation::Update);
    let draft = owners::new_draft(shared, target, &mut object, &author, managers.as_ref())?;
    let exists = || {
        let name = object::meta_text(&object, "name");
        Status::already_exists(target.resource.group_resource(), name)
    };
    if dry_run {
        if shared.store.get(table, &draft.key).is_some() {
            return Err(exists());
        }
        let version = version.as_ref().and_then(Value::as_str).unwrap_or_default();
        let preview = preview(view, &draft, parse_version(version)?)?;
        return Ok(encoded(StatusCode::CREATED, view.codec(), preview));
    }
    for _ in 0..WRITE_RETRIES_MAX {
        if let Ok(revision) = lifecycle::create(shared, target, &draft, namespace.as_deref()) {
            lifecycle::created(shared, target, &object, &revision);
            return Ok(encoded(StatusCode::CREATED, view.codec(), view.object(&revision)?));
        }
        if shared.store.get(table, &draft.key).is_some() {
            return Err(exists());
        }
        // The namespace has changed, or is gone.
        let name = object::meta_text(&object, "name");
        namespace = lifecycle::check_namespace(shared, target, name)?;
    }
    Err(Status::no_such_resource())
}

/// Returns the object that a dry run would have created, with the version that the client sent.
fn preview(view: &View, draft: &Draft, version: u64) -> Result<Bytes, Status> {
    if version > 0 {
        let key = Arc::clone(&draft.key);
        return view.object(&draft.seal(key, EventType::Added, version));
    }
    let json = draft.preview();
    if view.codec() == Codec::Json {
        return Ok(json);
    }
    view.other(&serde_json::from_slice(&json).map_err(Status::internal)?)
}

/// Returns a new object that is complete and valid.
fn newborn(shared: &Shared, call: &Call, mut object: Object) -> Result<Object, Status> {
    let target = &call.target;
    let resource = &target.resource;
    object::on_create(resource, &mut object, &shared.birth(call.age))?;
    defaults::on_create(resource, &mut object);
    let mut errors = validate::create(resource, object::metadata(&object));
    errors.extend(validate::data(resource, &object));
    errors.extend(lifecycle::prepare_create(shared, target, &mut object));
    object::refuse(resource, &object, &errors)?;
    Ok(object)
}

pub(super) fn update(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let dry_run = check_options(&target.query, "UpdateOptions")?;
    let mut sent = decode(call)?;
    object::check_place(target, &mut sent)?;
    let author = owners::author(call, Operation::Update);
    let modified = modify(shared, target, &author, dry_run, |live| {
        let found = object::meta_text(live.object, "uid");
        let wanted = object::meta_text(&sent, "uid");
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
            );
            return Err(Status::conflict(target.resource.group_resource(), target.name(), why));
        }
        let now = shared.clock.now_text();
        Ok(parts::restricted(target, live.object, sent.clone(), &now)?.into())
    })?;
    Ok(encoded(StatusCode::OK, view.codec(), view.object(&modified)?))
}

/// Reads, changes and writes an object. A change with a resourceVersion is rejected unless that is
/// the latest. A change without one is retried on the latest state. A dry run returns what would
/// have been stored, with the current version.
pub(crate) fn modify(
    shared: &Arc<Shared>,
    target: &Target,
    author: &Author,
    dry_run: bool,
    change: impl Fn(&Live<'_>) -> Result<Proposal, Status>,
) -> Result<Arc<Revision>, Status> {
    let resource = &target.resource;
    let key = Key::new(target.namespace(), target.name());
    let conflict = || {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Status::conflict(resource.group_resource(), target.name(), why)
    };
    let _definitions = lifecycle::hold_definitions(shared, target);
    for _ in 0..WRITE_RETRIES_MAX {
        let current = shared
            .store
            .get(&resource.table, &key)
            .ok_or_else(|| Status::not_found(resource.group_resource(), target.name()))?;
        let mut old = served(target, &current);
        let shown = object::metadata_mut(&mut old).remove("managedFields");
        let live = Live { target, revision: &current, object: &old, shown: shown.as_ref() };
        let Proposal { object: mut new, managers: applied } = change(&live)?;
        let sent = object::metadata_mut(&mut new).remove("managedFields");
        match object::meta_text(&new, "resourceVersion") {
            "" | "0" if !resource.unconditional_update => {
                // This error comes from the storage, not from validation, and names the resource.
                let (group, plural) = (&resource.group, &resource.plural);
                let errors = [validate::version_required()];
                return Err(Status::invalid(group, plural, target.name(), &errors));
            }
            "" | "0" => {}
            version if version != current.version().to_string() => return Err(conflict()),
            _ => {}
        }
        object::on_update(target, &old, &mut new);
        defaults::on_write(resource, &mut new);
        let version = current.version().to_string();
        object::metadata_mut(&mut new).insert("resourceVersion".to_owned(), version.into());
        let mut errors = validate::update(resource, object::metadata(&old), object::metadata(&new));
        errors.extend(validate::data_update(resource, &old, &new));
        errors.extend(validate::data(resource, &new));
        errors.extend(lifecycle::prepare_update(target, &old, &mut new));
        object::refuse(resource, &new, &errors)?;
        let goes = object::may_go(&new) && lifecycle::may_go(shared, target);
        let claim = Claim { author, applied, sent };
        let draft = owners::owned_draft(shared, &live, &mut new, claim)?;
        if dry_run {
            let key = Arc::clone(current.key());
            return Ok(Arc::new(draft.seal(key, EventType::Modified, current.version())));
        }
        if draft.is_same_as(&current) {
            return Ok(current);
        }
        if goes {
            lifecycle::before_delete(shared, target, &new);
            if let Ok(last) = lifecycle::remove(shared, target, &key, current.version()) {
                lifecycle::deleted(shared, target, &last);
                // The change was never stored. The client sees the object that it sent.
                let sent = draft.seal(key.into(), EventType::Modified, current.version());
                return Ok(sent.into());
            }
            continue;
        }
        let expected = Expected::Version(current.version());
        if let Ok(revision) = shared.store.put(&resource.table, expected, &draft) {
            lifecycle::updated(shared, target, &new, &current, &revision);
            return Ok(revision);
        }
    }
    Err(conflict())
}

/// Returns a stored object in the form of the target's resource.
pub(super) fn served(target: &Target, revision: &Revision) -> Object {
    let mut object = revision.to_map();
    if target.resource.group == events::GROUP {
        events::from_core(&mut object);
    } else if target.resource.custom {
        object.insert("apiVersion".to_owned(), target.resource.api_version().into());
    }
    object
}

/// Encodes an object for the store.
pub(super) fn draft(target: &Target, object: &Object) -> Result<Draft, Status> {
    let draft = if &*target.storage.table == events::TABLE {
        let mut object = object.clone();
        if target.resource.group == events::GROUP {
            events::to_core(&mut object);
        }
        events::complete(&mut object);
        Draft::encode(&target.storage, &object)
    } else {
        Draft::encode(&target.storage, object)
    };
    if draft.len() > OBJECT_BYTES_MAX {
        return Err(Status::too_large_entity(OBJECT_BYTES_MAX));
    }
    Ok(draft)
}

/// Checks the options of a write. Returns whether it is a dry run.
pub(super) fn check_options(query: &Query, options: &str) -> Result<bool, Status> {
    let mut errors = Vec::new();
    if options == "PatchOptions" && query.force.is_some() {
        let why = "may not be specified for non-apply patch";
        errors.push(FieldError::forbidden("force", why));
    }
    check_other_options(query, options, errors)
}

/// Checks the options of an apply. Returns whether it is a dry run.
pub(super) fn check_apply_options(query: &Query) -> Result<bool, Status> {
    let mut errors = Vec::new();
    if query.field_manager.is_empty() {
        errors.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    check_other_options(query, "PatchOptions", errors)
}

fn check_other_options(
    query: &Query,
    options: &str,
    mut errors: Vec<FieldError>,
) -> Result<bool, Status> {
    if query.field_manager.len() > FIELD_MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long("fieldManager", FIELD_MANAGER_BYTES_MAX));
    }
    errors.extend(dry_run_error(&query.dry_run));
    let known = ["", "Ignore", "Strict", "Warn"];
    if !known.contains(&&*query.field_validation) {
        let given = query.field_validation.as_str();
        errors.push(FieldError::not_supported("fieldValidation", given, &known));
    }
    match &*errors {
        [] => Ok(!query.dry_run.is_empty()),
        errors => Err(Status::invalid("meta.k8s.io", options, "", errors)),
    }
}

/// Checks `dryRun`, whose only valid value is `All`.
pub(super) fn dry_run_error(values: &[String]) -> Option<FieldError> {
    values.iter().any(|value| value != "All").then(|| {
        let given: Vec<Value> = values.iter().map(|value| value.as_str().into()).collect();
        FieldError::not_supported("dryRun", given, &["All"])
    })
}

/// Decodes the object in the body.
pub(super) fn decode(call: &Call) -> Result<Object, Status> {
    let target = &call.target;
    match body_codec(call, target.resource.custom)? {
        Codec::Json => object::decode(target, &call.body),
        Codec::Protobuf => object::decode_protobuf(target, &call.body),
    }
}

/// Returns the codec of the body. Custom objects have no protobuf.
pub(super) fn body_codec(call: &Call, custom: bool) -> Result<Codec, Status> {
    // YAML has been converted before.
    let accepted = &["application/json", "application/yaml", kube_schema::MEDIA_TYPE]
        [..if custom { 2 } else { 3 }];
    let media_type = negotiate::content_type(&call.headers);
    let codec = Codec::of(media_type).filter(|_| accepted.contains(&media_type));
    codec.ok_or_else(|| Status::unsupported_media_type(accepted))
}
