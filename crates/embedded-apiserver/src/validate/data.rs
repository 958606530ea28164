//! The data of config maps and secrets: their validity and immutability.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::shape::mismatch;
use crate::kinds::Resource;
use crate::limits::FIELD_ERRORS_MAX;
use crate::status::FieldError;

type Object = Map<String, Value>;

/// The size of all values together.
const DATA_BYTES_MAX: usize = 1024 * 1024;

const KEY_BYTES_MAX: usize = 253;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    ConfigMap,
    Secret,
}

/// The type of the values in a field with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Texts,
    /// As base64.
    Bytes,
}

impl Holder {
    fn of(resource: &Resource) -> Option<Self> {
        match (&*resource.group, &*resource.plural) {
            ("", "configmaps") => Some(Self::ConfigMap),
            ("", "secrets") => Some(Self::Secret),
            _ => None,
        }
    }

    fn fields(self) -> &'static [(&'static str, Values)] {
        match self {
            Self::ConfigMap => &[("data", Values::Texts), ("binaryData", Values::Bytes)],
            Self::Secret => &[("data", Values::Bytes), ("stringData", Values::Texts)],
        }
    }
}

/// Checks that the data can be decoded. The error has Go's wording.
pub(crate) fn data_shape(resource: &Resource, object: &Object) -> Result<(), String> {
    let Some(holder) = Holder::of(resource) else { return Ok(()) };
    let wrong = |value, field, go_type| Err(mismatch(value, &resource.kind, field, go_type));
    for &(field, values) in holder.fields() {
        let go_type = if values == Values::Texts { "string" } else { "[]uint8" };
        let map = match object.get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(map)) => map,
            Some(other) => return wrong(other, field, &format!("map[string]{go_type}")),
        };
        for value in map.values() {
            match value {
                Value::String(text) if values == Values::Bytes => base64(text)?,
                Value::String(_) | Value::Null => {}
                other => return wrong(other, field, go_type),
            }
        }
    }
    match object.get("immutable") {
        None | Some(Value::Null | Value::Bool(_)) => Ok(()),
        Some(other) => wrong(other, "immutable", "bool"),
    }
}

fn base64(text: &str) -> Result<(), String> {
    let at = match BASE64_STANDARD.decode(text) {
        Ok(_) => return Ok(()),
        Err(base64::DecodeError::InvalidByte(at, _)) => at,
        Err(_) => text.len(),
    };
    Err(format!("illegal base64 data at input byte {at}"))
}

/// Removes fields without data, as decoding and encoding would.
pub(crate) fn drop_empty_data(resource: &Resource, object: &mut Object) {
    let Some(holder) = Holder::of(resource) else { return };
    for (field, _) in holder.fields() {
        let Some(Value::Object(map)) = object.get_mut(*field) else { continue };
        for value in map.values_mut().filter(|value| value.is_null()) {
            *value = Value::from("");
        }
        if map.is_empty() {
            object.remove(*field);
        }
    }
}

/// Validates the data.
pub(crate) fn data(resource: &Resource, object: &Object) -> Vec<FieldError> {
    let Some(holder) = Holder::of(resource) else { return Vec::new() };
    let mut errors = Vec::new();
    let mut bytes = 0;
    for &(field, values) in holder.fields() {
        for (key, value) in object.get(field).and_then(Value::as_object).into_iter().flatten() {
            let room = FIELD_ERRORS_MAX.saturating_sub(errors.len());
            let wrong = key_errors(key).into_iter().take(room);
            let field = format!("{field}[{key}]");
            errors.extend(wrong.map(|why| FieldError::invalid(field.as_str(), key.as_str(), why)));
            let text = value.as_str().unwrap_or_default();
            let encoded = text.trim_end_matches('=').len();
            bytes += if values == Values::Texts { text.len() } else { encoded * 3 / 4 };
        }
    }
    if bytes > DATA_BYTES_MAX {
        // For a config map, Kubernetes names no field in this error.
        let field = if holder == Holder::Secret { "data" } else { "[]" };
        errors.push(FieldError::too_long(field, DATA_BYTES_MAX));
    }
    errors
}

/// Validates a change of data that may be immutable.
pub(crate) fn data_update(resource: &Resource, old: &Object, new: &Object) -> Vec<FieldError> {
    let Some(holder) = Holder::of(resource) else { return Vec::new() };
    let is_immutable = |object: &Object| object.get("immutable") == Some(&Value::Bool(true));
    if !is_immutable(old) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let unset = (!is_immutable(new)).then_some("immutable");
    let fields = holder.fields().iter().map(|(field, _)| *field);
    let changed = fields.filter(|field| old.get(*field) != new.get(*field));
    unset.into_iter().chain(changed).map(|field| FieldError::forbidden(field, why)).collect()
}

fn key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if key.len() > KEY_BYTES_MAX {
        errors.push(format!("must be no more than {KEY_BYTES_MAX} bytes"));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(fits) {
        let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                   (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                   '[-._a-zA-Z0-9]+')";
        errors.push(why.to_owned());
    } else if key == "." || key == ".." {
        errors.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        errors.push("must not start with '..'".to_owned());
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Registry;

    fn of(plural: &str, object: Value) -> (Result<(), String>, Vec<String>) {
        let registry = Registry::new();
        let resource = registry.get("", "v1", plural).expect("it is served");
        let Value::Object(object) = object else { panic!("{object}") };
        let errors = data(resource, &object);
        (data_shape(resource, &object), errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn data_are_texts_by_keys() {
        let fine = json!({"data": {"a.b": "c", "D_e-f": null}, "binaryData": {"g": "aGk="}});
        assert_eq!(of("configmaps", fine), (Ok(()), vec![]));
        let (shape, _) = of("configmaps", json!({"data": {"a": 1}}));
        let why =
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
        assert_eq!(shape, Err(why.to_owned()));
        let (shape, _) = of("secrets", json!({"data": {"a": "?"}}));
        assert_eq!(shape, Err("illegal base64 data at input byte 0".to_owned()));
        let (_, errors) = of("configmaps", json!({"data": {"..": "a"}}));
        assert_eq!(errors, ["data[..]: Invalid value: \"..\": must not be '..'"]);
    }

    #[test]
    fn other_kinds_may_call_anything_data() {
        assert_eq!(of("endpoints", json!({"data": 1})), (Ok(()), vec![]));
    }

    #[test]
    fn data_have_a_limit() {
        let (_, errors) = of("configmaps", json!({"data": {"a": "x".repeat(DATA_BYTES_MAX + 1)}}));
        assert_eq!(errors, ["[]: Too long: may not be more than 1048576 bytes"]);
        let (_, errors) = of("configmaps", json!({"data": {"a": "x".repeat(DATA_BYTES_MAX)}}));
        assert_eq!(errors, Vec::<String>::new());
    }
}
