//! Labels and label selectors, in the syntax of `kubectl get -l`.

use serde_json::Value;

use super::read::{entries, items, size, text};

/// Returns `a=1,b=2`, or `<none>`.
pub(super) fn labels(value: &Value) -> String {
    let mut labels: Vec<_> = entries(value).map(|(key, value)| equals(key, value)).collect();
    labels.sort_unstable();
    or_none(labels.join(","))
}

/// Returns a `LabelSelector` on one line, or `<none>` if it is empty.
pub(super) fn selector(value: &Value) -> String {
    requirements(value).map_or_else(|| "<error>".to_owned(), or_none)
}

/// Returns a `LabelSelector` on one line, which may be empty, or `None` if it is invalid.
pub(crate) fn requirements(value: &Value) -> Option<String> {
    let labels = &value["matchLabels"];
    let expressions = items(&value["matchExpressions"]);
    let mut requirements = Vec::with_capacity(size(labels) + expressions.len());
    for (key, value) in entries(labels) {
        requirements.push((key, equals(key, value)));
    }
    for expression in expressions {
        requirements.push((text(&expression["key"]), requirement(expression)?));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let requirements: Vec<_> = requirements.into_iter().map(|(_, text)| text).collect();
    Some(requirements.join(","))
}

fn requirement(expression: &Value) -> Option<String> {
    let key = text(&expression["key"]);
    let mut values: Vec<_> = items(&expression["values"]).iter().map(text).collect();
    values.sort_unstable();
    match (text(&expression["operator"]), values.is_empty()) {
        ("In", false) => Some(format!("{key} in ({})", values.join(","))),
        ("NotIn", false) => Some(format!("{key} notin ({})", values.join(","))),
        ("Exists", true) => Some(key.to_owned()),
        ("DoesNotExist", true) => Some(format!("!{key}")),
        _ => None,
    }
}

fn equals(key: &str, value: &Value) -> String {
    format!("{key}={}", text(value))
}

fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_sorted_by_key() {
        assert_eq!(labels(&json!({"b": "2", "a": "1"})), "a=1,b=2");
        assert_eq!(labels(&json!({})), "<none>");
        assert_eq!(labels(&json!(null)), "<none>");
    }

    #[test]
    fn selectors_print_every_operator_in_the_order_of_keys() {
        let all = json!({
            "matchLabels": {"m": "1", "b": "2"},
            "matchExpressions": [
                {"key": "z", "operator": "Exists"},
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "NotIn", "values": ["w"]},
                {"key": "a", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(selector(&all), "!a,b=2,c in (x,y),d notin (w),m=1,z");
        assert_eq!(requirements(&all).as_deref(), Some("!a,b=2,c in (x,y),d notin (w),m=1,z"));
    }

    #[test]
    fn selectors_that_select_by_nothing_or_make_no_sense_say_so() {
        assert_eq!(selector(&json!(null)), "<none>");
        assert_eq!(selector(&json!({})), "<none>");
        for expression in [
            json!({"key": "a", "operator": "Like"}),
            json!({"key": "a", "operator": "In"}),
            json!({"key": "a", "operator": "Exists", "values": ["b"]}),
            json!(7),
        ] {
            let value = json!({"matchExpressions": [expression]});
            assert_eq!(selector(&value), "<error>", "{value}");
            assert_eq!(requirements(&value), None, "{value}");
        }
    }
}
