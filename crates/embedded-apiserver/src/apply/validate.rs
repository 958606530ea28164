//! Checks that a configuration can be applied: it has only fields of its type, and its items can be told apart.

use std::collections::BTreeSet;

use serde_json::Value;

use super::set::Element;
use super::types::{Keys, List, Map, Scalars, Shaped, Type};

/// Returns the problems of a configuration, each with its path, in Kubernetes' words.
pub(crate) fn problems(kind: Type<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(kind, value, "", &mut found);
    found
}

fn check(kind: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut report = |why: String| {
        found.push(if path.is_empty() { why } else { format!("{path}: {why}") });
    };
    match (kind.shaped(value), value) {
        (None, _) | (Some(_), Value::Null) => {}
        (Some(Shaped::Map(map)), Value::Object(_)) => check_members(&map, value, path, found),
        (Some(Shaped::Map(_)), other) => report(format!("expected map, got {}", shown(other))),
        (Some(Shaped::List(list)), Value::Array(items)) => check_items(&list, items, path, found),
        (Some(Shaped::List(_)), other) => report(format!("expected list, got {}", shown(other))),
        (Some(Shaped::Scalar(scalars)), other) => {
            let expected = match (scalars, other) {
                (Scalars::String, Value::String(_))
                | (Scalars::Number, Value::Number(_))
                | (Scalars::Boolean, Value::Bool(_))
                | (Scalars::Any, Value::String(_) | Value::Number(_) | Value::Bool(_)) => return,
                (Scalars::String, _) => "string",
                (Scalars::Number, _) => "numeric (int or float)",
                (Scalars::Boolean, _) => "boolean",
                (Scalars::Any, _) => "any scalar",
            };
            report(format!("expected {expected}, got {}", shown(other)));
        }
    }
}

/// Returns the type of a value. A real server shows the value, which may be secret.
fn shown(value: &Value) -> &'static str {
    crate::quote::json_type(value)
}

fn check_members(map: &Map<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let Some(kind) = map.known(name) else {
            found.push(format!("{path}: field not declared in schema"));
            // As in Kubernetes, the first such member ends the check of the object.
            return;
        };
        check(kind, value, &path, found);
    }
}

fn check_items(list: &List<'_>, items: &[Value], path: &str, found: &mut Vec<String>) {
    let mut seen: BTreeSet<Element> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        if matches!(list.keys, Keys::Atomic) {
            check(list.items, item, &format!("{path}[{at}]"), found);
            continue;
        }
        let element = match list.element(item) {
            Ok(element) => element,
            Err(why) => {
                found.push(format!("{path}: element {at}: {why}"));
                return;
            }
        };
        let inner = format!("{path}{element}");
        if seen.contains(&element) {
            found.push(format!("{path}: duplicate entries for key {element}"));
        }
        seen.insert(element);
        check(list.items, item, &inner, found);
    }
}
