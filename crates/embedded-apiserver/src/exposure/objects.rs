//! Faults in objects, and in the items of a list.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Exposed;
use crate::faults::{Fault, Point, Waiting};

/// A placeholder that no client sees. It is replaced by the text of a deeply nested value, because
/// encoding or dropping a tree of that depth would overflow the stack.
const DEEP: &str = "embedded-apiserver/too-deep";

/// Applies faults to an object, as JSON.
pub(super) fn damaged(json: &[u8], faults: &[Arc<Fault>]) -> Option<String> {
    let mut object: Value = serde_json::from_slice(json).ok()?;
    for fault in faults {
        damage(object.as_object_mut()?, fault);
    }
    Some(encode(&object, faults))
}

/// Applies pending faults to the items of a response, or to the object itself. Returns `None` if
/// none fired.
pub(super) fn damage_answer(request: &Exposed, waiting: &[Waiting], json: &[u8]) -> Option<String> {
    let mut answer: Value = serde_json::from_slice(json).ok()?;
    let is_list = answer.get("items").is_some_and(Value::is_array);
    let mut struck = Vec::new();
    for waiting in waiting {
        let Point::Items(at) = waiting.point else { continue };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let items = answer.get_mut("items").and_then(Value::as_array_mut);
        let hit = match items {
            Some(items) if is_list => strike_item(request, waiting, items, at),
            _ => at == 0 && strike_object(request, waiting, &mut answer),
        };
        if hit {
            struck.push(Arc::clone(&waiting.fault));
        }
    }
    (!struck.is_empty()).then(|| encode(&answer, &struck))
}

fn strike_item(request: &Exposed, waiting: &Waiting, items: &mut Vec<Value>, at: usize) -> bool {
    let needed = if matches!(*waiting.fault, Fault::ReorderEvents) { at + 1 } else { at };
    if needed >= items.len() {
        return false;
    }
    let strikes = |request: &Exposed| request.is_struck(waiting, 0);
    match *waiting.fault {
        Fault::DropEvent if strikes(request) => drop(items.remove(at)),
        Fault::DuplicateEvent if strikes(request) => items.insert(at, items[at].clone()),
        Fault::ReorderEvents if strikes(request) => items.swap(at, at + 1),
        _ => return strike_object(request, waiting, &mut items[at]),
    }
    true
}

fn strike_object(request: &Exposed, waiting: &Waiting, object: &mut Value) -> bool {
    let object = object.as_object_mut().filter(|_| is_of_objects(&waiting.fault));
    let Some(object) = object.filter(|_| request.is_struck(waiting, 0)) else { return false };
    damage(object, &waiting.fault);
    true
}

/// Returns whether a fault changes an object's content, and not only its delivery.
pub(super) fn is_of_objects(fault: &Fault) -> bool {
    matches!(fault, Fault::WrongType | Fault::Oversized { .. } | Fault::TooDeep { .. })
}

fn damage(object: &mut Map<String, Value>, fault: &Fault) {
    match fault {
        Fault::WrongType => {
            let named = ["apiVersion", "kind", "metadata"];
            for field in ["spec", "data", "status"] {
                object.insert(field.to_owned(), json!(7));
            }
            let others = object.iter_mut().filter(|(name, _)| !named.contains(&name.as_str()));
            others.for_each(|(_, value)| *value = json!(7));
        }
        Fault::Oversized { bytes } => {
            let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
            annotations["embedded-apiserver/padding"] = "x".repeat(*bytes).into();
        }
        Fault::TooDeep { .. } => {
            let entry = json!({
                "manager": "embedded-apiserver",
                "operation": "Update",
                "fieldsType": "FieldsV1",
                "fieldsV1": DEEP,
            });
            metadata(object).insert("managedFields".to_owned(), json!([entry]));
        }
        _ => {}
    }
}

fn metadata(object: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    metadata.as_object_mut().expect("an object's metadata is an object")
}

fn encode(value: &Value, faults: &[Arc<Fault>]) -> String {
    let mut text = value.to_string();
    for fault in faults {
        if let Fault::TooDeep { levels } = &**fault {
            let deep = format!("{}{{}}{}", r#"{"f:a":"#.repeat(*levels), "}".repeat(*levels));
            text = text.replacen(&format!("{DEEP:?}"), &deep, 1);
        }
    }
    text
}
