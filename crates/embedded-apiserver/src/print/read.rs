//! Reads fields of unvalidated objects.
//!
//! Indexing a [`Value`] returns null for a missing field, so paths need no checks. These functions
//! define the value of a leaf that is null or of another type: the zero value, as after decoding.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::age;

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the text, or `fallback` if it is absent or empty.
pub(crate) fn text_or<'a>(value: &'a Value, fallback: &'a str) -> &'a str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(fallback)
}

pub(super) fn int(value: &Value) -> i32 {
    maybe_int(value).unwrap_or_default()
}

/// Returns a number. All printed numbers have 32 bits in the API; sums of them fit 64.
pub(super) fn maybe_int(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}

pub(crate) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// Returns the number of entries of a map.
pub(super) fn size(value: &Value) -> usize {
    value.as_object().map_or(0, Map::len)
}

pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(age::parse)
}

pub(super) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// Returns the name, with a suffix if an annotation makes the object the default.
pub(super) fn default_name(object: &Value, annotations: &[&str]) -> String {
    let said = &object["metadata"]["annotations"];
    let default = annotations.iter().any(|annotation| said[*annotation] == "true");
    if default { format!("{} (default)", name(object)) } else { name(object).to_owned() }
}

/// Returns the time since the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    age::since(time(&object["metadata"]["creationTimestamp"]), now)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    time(&object["metadata"]["deletionTimestamp"]).is_some()
}

/// Returns the status of the first condition of a type, or "" if there is none.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    items(&object["status"]["conditions"])
        .iter()
        .find(|condition| text(&condition["type"]) == kind)
        .map_or("", |condition| text(&condition["status"]))
}
