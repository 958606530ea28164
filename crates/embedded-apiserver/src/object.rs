//! The server's part in a write: the fields that it sets, the separation of spec and status, the
//! generation, and defaults.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::kinds::{Resource, Subresource, crd};
use crate::limits::OBJECT_DEPTH_MAX;
use crate::request::Target;
use crate::status::{FieldError, Status};
use crate::validate;

pub(crate) type Object = Map<String, Value>;

/// The values that the server sets on a new object.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) uid: String,
    pub(crate) now: String,
    /// The suffix for a generateName.
    pub(crate) suffix: String,
}

/// Returns the metadata of an object. [`decode`] has checked that it is an object.
pub(crate) fn metadata(object: &Object) -> &Object {
    static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// Returns the metadata of an object, and creates it if it is absent.
pub(crate) fn metadata_mut(object: &mut Object) -> &mut Object {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("it was made one")
}

/// Returns a text field of the metadata, or "" if it is absent.
pub(crate) fn meta_text<'a>(object: &'a Object, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Decodes the body of a create or update: an object of the target's kind.
pub(crate) fn decode(target: &Target, body: &[u8]) -> Result<Object, Status> {
    // A real server includes the body in this error. It may be a secret, so this server does not.
    let unrecognized = |why: String| {
        let kind = &target.resource.kind;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why}"
        ))
    };
    let unparsed = |error: &dyn std::fmt::Display| {
        unrecognized(format!("couldn't get version/kind; json parse error: {error}"))
    };
    // Checked once as a whole. Otherwise the parser would check every string.
    let text = std::str::from_utf8(body).map_err(|error| unparsed(&error))?;
    let value: Value = serde_json::from_str(text).map_err(|error| unparsed(&json_error(&error)))?;
    let object = match value {
        Value::Object(object) => object,
        // In Go, `null` decodes to an empty object.
        Value::Null => Object::new(),
        _ => return Err(unparsed(&"it is not a JSON object")),
    };
    for field in ["apiVersion", "kind"] {
        if object.get(field).is_some_and(|value| !(value.is_string() || value.is_null())) {
            return Err(unparsed(&format!("{field} is not a text")));
        }
    }
    // The type of built-in objects is implied. A custom object must name its own.
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if target.resource.custom && kind.is_empty() {
        return Err(unrecognized("Object 'Kind' is missing".to_owned()));
    }
    check_shape(target, object)
}

/// Decodes the body from protobuf. If it has no type, it is of the target's kind.
pub(crate) fn decode_protobuf(target: &Target, body: &[u8]) -> Result<Object, Status> {
    let resource = &target.resource;
    let read = || {
        let envelope = kube_schema::Envelope::parse(body)?;
        match kube_schema::message(&resource.api_version(), &resource.kind) {
            Some(message) if envelope.kind.is_empty() => message.decode::<Object>(envelope.raw),
            _ => kube_schema::from_slice(body),
        }
    };
    let object = read().map_err(|error: kube_schema::Error| {
        let kind = &resource.kind;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error}"
        ))
    })?;
    check_shape(target, object)
}

/// Returns the error of invalid JSON. Truncated input has Go's wording.
pub(crate) fn json_error(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// Checks an object that is already parsed, such as the result of a patch.
pub(crate) fn check_shape(target: &Target, mut object: Object) -> Result<Object, Status> {
    let (kind, version) = (&*target.resource.kind, &*target.resource.version);
    let cannot = |given: &str, version: &str, why: String| {
        Err(Status::bad_request(format!(
            "{given} in version {version:?} cannot be handled as a {kind}: {why}"
        )))
    };
    let given = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let given_kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let implied = given.is_empty() && !target.resource.custom;
    if !implied && given != target.resource.api_version() {
        let why = format!(
            "the API version in the data ({given}) does not match the expected API version ({})",
            target.resource.api_version()
        );
        return Err(Status::bad_request(why));
    }
    if !given_kind.is_empty() && given_kind != kind {
        if target.resource.custom {
            let error = FieldError::invalid("kind", given_kind, format!("must be {kind}"));
            let (group, name) = (&target.resource.group, meta_text(&object, "name"));
            return Err(Status::invalid(group, given_kind, name, &[error]));
        }
        return cannot(given_kind, version, format!("it is no {kind}"));
    }
    let shaped = validate::shape(kind, &object);
    if let Err(why) = shaped.and_then(|()| validate::data_shape(&target.resource, &object)) {
        return cannot(kind, version, why);
    }
    if object.values().any(|member| depth(member) >= OBJECT_DEPTH_MAX) {
        return cannot(kind, version, format!("it is nested deeper than {OBJECT_DEPTH_MAX}"));
    }
    if !target.resource.custom {
        // A typed object does not distinguish `null` from an absent field.
        object.retain(|_, value| !value.is_null());
        validate::drop_empty_data(&target.resource, &mut object);
    }
    tidy(metadata_mut(&mut object));
    Ok(object)
}

/// Returns the nesting depth of arrays and objects.
pub(crate) fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Reduces metadata to what Kubernetes' own type would hold. Removes unknown and empty fields,
/// duplicate owners, and `null`, which clients that serialise every field send for absent ones.
fn tidy(metadata: &mut Object) {
    metadata.retain(|name, value| !value.is_null() && validate::is_known(name));
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences")
        && owners.len() > 1
    {
        let mut seen = HashSet::with_capacity(owners.len());
        owners.retain(|owner| seen.insert(owner.clone()));
    }
    for list in ["finalizers", "ownerReferences"] {
        if metadata.get(list).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            metadata.remove(list);
        }
    }
    for map in ["labels", "annotations"] {
        let emptied = metadata.get_mut(map).and_then(Value::as_object_mut).is_some_and(|map| {
            for value in map.values_mut().filter(|value| value.is_null()) {
                *value = json!("");
            }
            map.is_empty()
        });
        if emptied {
            metadata.remove(map);
        }
    }
}

/// Checks that the object's name and namespace match the URL.
pub(crate) fn check_place(target: &Target, object: &mut Object) -> Result<(), Status> {
    let metadata = metadata_mut(object);
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if target.resource.namespaced {
        if !namespace.is_empty() && namespace != target.namespace() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
        metadata.insert("namespace".to_owned(), target.namespace().into());
    } else {
        metadata.remove("namespace");
    }
    let Some(expected) = &target.name else { return Ok(()) };
    match metadata.get("name").and_then(Value::as_str).unwrap_or_default() {
        "" => {
            return Err(Status::bad_request(format!(
                "the name of the object ({expected} based on URL) was undeterminable: name must \
                 be provided"
            )));
        }
        name if name != expected => {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({expected})"
            )));
        }
        _ => {}
    }
    Ok(())
}

/// Completes a new object.
pub(crate) fn on_create(
    resource: &Resource,
    object: &mut Object,
    birth: &Birth,
) -> Result<(), Status> {
    let metadata = metadata_mut(object);
    for mine in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.remove(mine);
    }
    if metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        if !prefix.is_empty() {
            let name = generated_name(prefix, &birth.suffix);
            metadata.insert("name".to_owned(), name.into());
        }
    }
    if metadata
        .get("resourceVersion")
        .and_then(Value::as_str)
        .is_some_and(|v| !matches!(v, "" | "0"))
    {
        // A real server has the same message, with the code of an internal error.
        return Err(Status::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    metadata.remove("resourceVersion");
    metadata.insert("uid".to_owned(), birth.uid.as_str().into());
    metadata.insert("creationTimestamp".to_owned(), birth.now.as_str().into());
    if resource.generation {
        metadata.insert("generation".to_owned(), json!(1));
    } else if metadata.get("generation").and_then(Value::as_i64) == Some(0) {
        // If the server does not count generations, the client's value is kept.
        metadata.remove("generation");
    }
    if resource.status {
        object.remove("status");
    }
    Ok(())
}

/// Appends a suffix to a prefix. Like Kubernetes, truncates the prefix so that the name stays
/// within 63 bytes.
fn generated_name(prefix: &str, suffix: &str) -> String {
    let max = 63 - suffix.len();
    let end =
        (0..=max.min(prefix.len())).rev().find(|&at| prefix.is_char_boundary(at)).unwrap_or(0);
    format!("{}{suffix}", &prefix[..end])
}

/// Merges the stored object into its replacement.
pub(crate) fn on_update(target: &Target, old: &Object, new: &mut Object) {
    if target.is_status() {
        only_status(&target.resource, old, new);
    } else if target.resource.status && target.subresource != Some(Subresource::Approval) {
        match old.get("status") {
            Some(status) => drop(new.insert("status".to_owned(), status.clone())),
            None => drop(new.remove("status")),
        }
    }
    let changed = target.resource.generation && spec_changed(&target.resource, old, new);
    let old = metadata(old);
    let new = metadata_mut(new);
    new.remove("selfLink");
    // Fields that only the server sets are retained if the client omits them. If it changes them,
    // validation reports the field.
    for kept in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if let Some(value) = old.get(kept) {
            new.entry(kept).or_insert_with(|| value.clone());
        }
    }
    if let Some(created) = old.get("creationTimestamp") {
        new.insert("creationTimestamp".to_owned(), created.clone());
    }
    match old.get("generation").and_then(Value::as_i64) {
        Some(generation) => {
            // If the server does not count generations, a client may have set the maximum.
            let generation = generation.saturating_add(i64::from(changed));
            new.insert("generation".to_owned(), json!(generation));
        }
        None => drop(new.remove("generation")),
    }
}

/// Restricts a write to the status. Most built-in kinds also accept changes of the metadata.
fn only_status(resource: &Resource, old: &Object, new: &mut Object) {
    let (status, sent) = (new.remove("status"), new.remove("metadata"));
    new.clone_from(old);
    match status {
        Some(status) => drop(new.insert("status".to_owned(), status)),
        None => drop(new.remove("status")),
    }
    let sent = sent.as_ref().and_then(Value::as_object);
    let taken = |field: &str| match field {
        "resourceVersion" => true,
        _ if resource.custom || resource.group == crd::GROUP => false,
        "labels" => resource.plural != "deployments",
        "ownerReferences" => resource.plural != "pods",
        _ => true,
    };
    let metadata = metadata_mut(new);
    metadata.retain(|field, _| !taken(field));
    let sent = sent.into_iter().flatten().filter(|(field, _)| taken(field));
    metadata.extend(sent.map(|(field, value)| (field.clone(), value.clone())));
}

/// Returns whether anything besides the metadata differs. The status is ignored if it is a
/// subresource.
fn spec_changed(resource: &Resource, old: &Object, new: &Object) -> bool {
    let is_spec = |name: &str| match name {
        "apiVersion" | "kind" | "metadata" => false,
        "status" => !resource.status,
        _ => true,
    };
    let count = |object: &Object| object.keys().filter(|name| is_spec(name)).count();
    count(old) != count(new)
        || new.iter().any(|(name, value)| is_spec(name) && old.get(name) != Some(value))
}

/// Returns whether a terminating object has nothing left to wait for.
pub(crate) fn may_go(object: &Object) -> bool {
    let metadata = metadata(object);
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    metadata.contains_key("deletionTimestamp") && grace == 0 && finalizers.is_none_or(Vec::is_empty)
}

/// Returns the response for an invalid object.
pub(crate) fn refuse(
    resource: &Resource,
    object: &Object,
    errors: &[FieldError],
) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&resource.group, &resource.kind, meta_text(object, "name"), errors))
}
