//! What is refused in the names of a definition.

use serde_json::Value;

use super::{list, text};
use crate::status::FieldError;

pub(super) fn group(group: &str) -> Option<FieldError> {
    let subdomain =
        group.split('.').all(|part| is_label(part, |first| first.is_ascii_alphanumeric()));
    let detail = if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    } else if group.len() > 253 {
        "must be no more than 253 characters"
    } else if !subdomain {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
         or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
         used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    } else if !group.contains('.') {
        "should be a domain with at least one dot"
    } else {
        return None;
    };
    Some(FieldError::invalid("spec.group", group, detail))
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

/// Checks a DNS-1035 label; `given` is what to show, `checked` what to check.
pub(super) fn label(field: &str, given: &str, checked: &str, prefix: &str) -> Option<FieldError> {
    let mut problems = Vec::new();
    if checked.len() > 63 {
        problems.push("must be no more than 63 characters");
    }
    if !is_label(checked, |first| first.is_ascii_lowercase()) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        );
    }
    let detail = format!("{prefix}{}", problems.join(","));
    (!problems.is_empty()).then(|| FieldError::invalid(field, given, detail))
}

fn is_label(text: &str, first: impl Fn(u8) -> bool) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&head| first(head))
        && bytes.last() != Some(&b'-')
        && bytes.iter().copied().all(inner)
}
