//! Validation of the names in a definition.

use serde_json::Value;

use super::{list, text};
use crate::status::FieldError;
use crate::validate::names::{dns1035_label, dns1123_subdomain};

pub(super) fn group(group: &str) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    let mut problems = dns1123_subdomain(group);
    if problems.is_empty() && !group.contains('.') {
        problems.push("should be a domain with at least one dot".to_owned());
    }
    (!problems.is_empty()).then(|| FieldError::invalid("spec.group", group, problems.join(",")))
}

pub(super) fn names(names: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(&names[key]).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    let given = |key: &str| Some(text(&names[key])).filter(|name| !name.is_empty());
    for key in ["plural", "singular"] {
        let name = given(key);
        errors.extend(name.and_then(|name| label(&format!("spec.names.{key}"), name, name, "")));
    }
    for key in ["kind", "listKind"] {
        let prefix = "may have mixed case, but should otherwise match: ";
        errors.extend(given(key).and_then(|name| {
            label(&format!("spec.names.{key}"), name, &name.to_lowercase(), prefix)
        }));
    }
    errors.extend(labels("spec.names.shortNames", &names["shortNames"]));
    if given("kind").is_some() && given("kind") == given("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", text(&names["listKind"]), detail));
    }
    errors.extend(labels("spec.names.categories", &names["categories"]));
    errors
}

fn labels(path: &str, all: &Value) -> Vec<FieldError> {
    let indexed = list(all).iter().map(text).enumerate();
    indexed.filter_map(|(at, name)| label(&format!("{path}[{at}]"), name, name, "")).collect()
}

/// Checks a DNS-1035 label. The error shows `given`; the check uses `checked`.
pub(super) fn label(field: &str, given: &str, checked: &str, prefix: &str) -> Option<FieldError> {
    let problems = dns1035_label(checked);
    let detail = format!("{prefix}{}", problems.join(","));
    (!problems.is_empty()).then(|| FieldError::invalid(field, given, detail))
}
