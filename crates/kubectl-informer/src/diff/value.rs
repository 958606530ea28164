//! Short renderings of an object's values.

use serde_json::Value;

use super::noise;
use super::place::Place;
use crate::cells;
use crate::path::key;

/// Returns whether an object is a Secret. Items of a list have no kind, but those of Secrets have a
/// type.
pub(super) fn is_secret(object: &Value) -> bool {
    match object.get("kind") {
        Some(kind) => kind == "Secret",
        None => object.get("type").is_some_and(Value::is_string),
    }
}

/// Returns whether a place in a Secret is secret, or contains something secret. The configuration
/// that kubectl last applied is a copy of the data.
pub(super) fn is_hidden(place: &Place<'_>) -> bool {
    const HIDDEN: &[&[&str]] = &[
        &["data"],
        &["stringData"],
        &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"],
    ];
    let fields: Vec<&str> = place.fields().collect();
    HIDDEN.iter().any(|hidden| fields.iter().zip(*hidden).all(|(field, hidden)| field == hidden))
}

/// Returns the placeholder for a secret value.
pub(super) fn secret(place: &Place<'_>, value: &Value) -> String {
    let bytes = match value {
        // In base64, four characters encode three bytes.
        Value::String(text) if place.fields().next() == Some("data") => {
            text.trim_end_matches('=').len() * 3 / 4
        }
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    };
    format!("(secret, {bytes} {})", if bytes == 1 { "byte" } else { "bytes" })
}

/// Renders a value briefly: `Running`, `{image: nginx, ports: [{containerPort: 80}]}`.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.trim() != text => {
            cells::one_line(&Value::from(text.as_str()).to_string())
        }
        Value::String(text) => cells::one_line(text),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(brief).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(_) => fields(value, None),
        other => other.to_string(),
    }
}

/// Renders a list element without its name, which the path includes. If the element has nothing
/// else, its name is repeated, because `{}` would be something else.
pub(super) fn element(value: &Value, name: &str) -> String {
    let rest = fields(value, Some(name));
    if rest == "{}" { brief(value) } else { rest }
}

/// Renders the fields of an object, the most informative ones first: a line may be too short for
/// all.
fn fields(value: &Value, said: Option<&str>) -> String {
    const FIRST: &[&str] = &["status", "state", "phase", "image", "value", "reason"];
    let mut fields: Vec<(&String, &Value)> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| !is_said(name, value, said) && !noise::is_left_out(name))
        .collect();
    fields.sort_by_key(|(name, value)| {
        let first = FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len());
        (first, value.is_object() || value.is_array(), name.as_str())
    });
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| format!("{}: {}", cells::one_line(name), brief(value)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// Returns whether a field of an element is its name.
fn is_said(field: &str, value: &Value, said: Option<&str>) -> bool {
    let alone = Value::Object([(field.to_owned(), value.clone())].into_iter().collect());
    said.is_some_and(|said| !key::find(&[alone], said).is_empty())
}
