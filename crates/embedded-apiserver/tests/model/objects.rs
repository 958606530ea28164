//! Queries and changes of objects.

use serde_json::{Map, Value, json};

use super::history::Kind;

/// Returns the name of a resource for `ApiServer::get`.
pub(crate) fn table(kind: &Kind) -> String {
    match kind.api_version.split_once('/') {
        Some((group, _)) => format!("{}.{group}", kind.plural),
        None => kind.plural.to_owned(),
    }
}

pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    object["metadata"].as_object_mut().expect("it is one")
}

pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let texts = finalizers.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Removes nulls, with which clients express absent fields.
pub(crate) fn tidy(object: &mut Value) {
    metadata(object).retain(|_, value| !value.is_null());
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.retain(|_, value| !value.is_null());
    }
    if object["metadata"]["labels"] == json!({}) || object["metadata"]["labels"].is_null() {
        metadata(object).remove("labels");
    }
}

/// Restores the status, which a PUT of the object does not change.
pub(crate) fn restore_status(kind: &Kind, current: &Value, wanted: &mut Value) {
    if !kind.status {
        return;
    }
    let object = wanted.as_object_mut().expect("it is one");
    match current.get("status") {
        Some(status) => drop(object.insert("status".to_owned(), status.clone())),
        None => drop(object.remove("status")),
    }
}
