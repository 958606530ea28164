//! Strategic merge patch: a merge patch that merges lists by the keys of their items, as defined in
//! the tables of `kube-schema`, and that is controlled by directives in the patch.
//!
//! The result is that of `strategicpatch` in k8s.io/apimachinery. Items are found by hash instead
//! of by linear search, so the time is proportional to the size of the patch and the object.

mod lists;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use http::StatusCode;
use kube_schema::{Field, Form, Message, PatchStrategy, Shape, Type};
use serde_json::Value;

use self::lists::ListField;
use crate::object::Object;
use crate::status::Status;

/// `replace` or `delete`: the operation on the object or item that contains it.
const PATCH: &str = "$patch";
/// The only fields that an object keeps.
const RETAIN_KEYS: &str = "$retainKeys";
/// `$deleteFromPrimitiveList/finalizers`: the scalars to remove from the named list.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// `$setElementOrder/containers`: the order of the items of the named list.
const SET_ORDER: &str = "$setElementOrder";

/// The reason why a patch cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A directive is malformed.
    Malformed(&'static str),
    /// The patch is valid but cannot be applied.
    Unprocessable,
    /// The patch contradicts the object's types, which a real server reports as an internal error.
    Mismatch(String),
}

impl Refusal {
    /// Returns the error of a real server.
    pub(super) fn into_status(self) -> Status {
        match self {
            Self::Malformed(why) => Status::bad_request(why),
            Self::Unprocessable => Status::unprocessable(),
            Self::Mismatch(why) => Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", why),
        }
    }
}

/// Applies a patch to an object of a built-in type.
pub(super) fn merge(original: Object, patch: Object, message: Message) -> Result<Object, Refusal> {
    merge_objects(original, patch, Schema::Message(message))
}

/// The type of an object, or of the items of a list.
#[derive(Debug, Clone, Copy)]
enum Schema {
    Message(Message),
    /// Another type, by the name of its kind in Go.
    Other(&'static str),
    /// A field that is not in the tables. A real server never stores one, but this one does.
    Unknown,
}

impl Schema {
    /// Returns the field of an object of this type, or `None` if the type has no such field.
    fn field(self, name: &str) -> Result<Option<&'static Field>, Refusal> {
        match self {
            Self::Message(message) if message.form() == Form::Object => {
                Ok(message.field_named(name))
            }
            Self::Message(message) => Err(no_field(message.name(), name)),
            Self::Other(kind) => Err(Refusal::Mismatch(format!(
                "merging an object in json but data type is not struct, instead is: {kind}"
            ))),
            Self::Unknown => Ok(None),
        }
    }

    /// Returns the name of the type in errors.
    fn name(self) -> &'static str {
        match self {
            Self::Message(message) => message.name(),
            Self::Other(kind) => kind,
            Self::Unknown => "struct",
        }
    }

    /// Returns the schema of a value.
    fn of(kind: Type) -> Self {
        match kind {
            Type::Message(message) if message.form() == Form::List => Self::Other("slice"),
            Type::Message(message) => Self::Message(message),
            Type::String => Self::Other("string"),
            Type::Bool => Self::Other("bool"),
            Type::Int32 => Self::Other("int32"),
            Type::Int64 => Self::Other("int64"),
            Type::Double => Self::Other("float64"),
            Type::Bytes => Self::Other("slice"),
        }
    }

    /// Returns the schema of a field whose value is an object.
    fn of_object(field: Option<&Field>) -> Self {
        match field.map(|field| (field.shape(), field.kind())) {
            None => Self::Unknown,
            Some((Shape::Map, _)) => Self::Other("map"),
            Some((Shape::List, _)) => Self::Other("slice"),
            Some((Shape::Always | Shape::Optional, kind)) => Self::of(kind),
        }
    }
}

fn no_field(of: &str, name: &str) -> Refusal {
    Refusal::Mismatch(format!(
        "unable to find api field in struct {of} for the json field {name:?}"
    ))
}

fn merge_objects(
    mut original: Object,
    mut patch: Object,
    schema: Schema,
) -> Result<Object, Refusal> {
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(plain_members(patch)),
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&directive)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    lists::set_orders(&mut original, &mut patch, schema)?;
    // Deletions first. Otherwise, if a list has both, the result would depend on the order of a
    // map.
    let (deletions, rest): (Vec<_>, Vec<_>) =
        patch.into_iter().partition(|(name, _)| name.starts_with(DELETE_FROM_LIST));
    for (name, value) in deletions {
        let name = directed_field(&name, DELETE_FROM_LIST)
            .ok_or(Refusal::Malformed("invalid patch format of primitive list"))?;
        merge_member(&mut original, name, value, schema, true)?;
    }
    for (name, value) in rest {
        merge_member(&mut original, &name, value, schema, false)?;
    }
    Ok(original)
}

/// Merges a member of a patch. With `deletes`, a list contains the items to remove.
fn merge_member(
    original: &mut Object,
    name: &str,
    value: Value,
    schema: Schema,
    deletes: bool,
) -> Result<(), Refusal> {
    let old = original.remove(name);
    if value.is_null() {
        return Ok(());
    }
    let old = match old {
        None if value.is_object() && !deletes && is_always_there(schema, name) => {
            Some(Value::Object(Object::new()))
        }
        old => old,
    };
    let new = match (old, value) {
        (Some(Value::Object(old)), Value::Object(value)) => {
            let field = schema.field(name)?;
            if field.is_some_and(|field| field.patch_strategy() == PatchStrategy::Replace) {
                Some(Value::Object(plain_members(value)))
            } else {
                Some(Value::Object(merge_objects(old, value, Schema::of_object(field))?))
            }
        }
        (Some(Value::Array(old)), Value::Array(value)) => {
            let field = ListField::of(schema, name)?;
            Some(Value::Array(field.merge(old, value, deletes)?))
        }
        (Some(old), value) if deletes => {
            let same = go_type(&old) == go_type(&value);
            Some(if same { value } else { old })
        }
        (None, _) if deletes => None,
        (_, value) => without_marked(value),
    };
    original.extend(new.map(|new| (name.to_owned(), new)));
    Ok(())
}

/// Returns whether Go's JSON always includes the field, as it does for structs that are not
/// pointers.
fn is_always_there(schema: Schema, name: &str) -> bool {
    let Ok(Some(field)) = schema.field(name) else { return false };
    let is_struct = matches!(field.kind(), Type::Message(kind) if kind.form() == Form::Object);
    is_struct && field.shape() == Shape::Always && !field.omits_zero()
}

/// Drops the members that the patch does not list in `$retainKeys`, if it has one.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), Refusal> {
    const WRONG: Refusal = Refusal::Malformed("invalid patch format of retainKeys");
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let keys: HashSet<&str> =
        keys.as_array().ok_or(WRONG)?.iter().filter_map(Value::as_str).collect();
    let is_listed = |(name, value): (&String, &Value)| {
        value.is_null()
            || name.starts_with(DELETE_FROM_LIST)
            || name.starts_with(SET_ORDER)
            || keys.contains(name.as_str())
    };
    if !patch.iter().all(is_listed) {
        return Err(WRONG);
    }
    original.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// Returns the field of a directive such as `$setElementOrder/containers`.
fn directed_field<'a>(name: &'a str, directive: &str) -> Option<&'a str> {
    name.split_once('/').filter(|(prefix, _)| *prefix == directive).map(|(_, field)| field)
}

fn unknown_directive(directive: &Value) -> Refusal {
    let given = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    Refusal::Mismatch(format!("unknown patch type: {given}"))
}

fn is_directive(name: &str) -> bool {
    matches!(name, PATCH | RETAIN_KEYS)
        || directed_field(name, DELETE_FROM_LIST).is_some()
        || directed_field(name, SET_ORDER).is_some()
}

/// Returns a value of the patch that the object lacks, without nulls and directives.
fn without_marked(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(members) if members.contains_key(PATCH) => return None,
        Value::Object(members) => {
            let kept =
                members.into_iter().filter(|(name, value)| !value.is_null() && !is_directive(name));
            kept.filter_map(|(name, value)| Some((name, without_marked(value)?))).collect()
        }
        Value::Array(items) => items.into_iter().filter_map(without_marked).collect(),
        other => other,
    })
}

/// Returns a value of the patch verbatim, except for nulls and directives, which Go's types cannot
/// represent.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(plain_members(members)),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        other => other,
    }
}

fn plain_members(members: Object) -> Object {
    let kept = members.into_iter().filter(|(name, value)| !value.is_null() && !is_directive(name));
    kept.map(|(name, value)| (name, plain(value))).collect()
}

/// Returns the name of a value's type in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn expected(wanted: &str, found: &Value) -> Refusal {
    Refusal::Mismatch(format!("expected a {wanted}, but received a {}", go_type(found)))
}
