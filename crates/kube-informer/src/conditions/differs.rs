//! Whether a JSON merge patch changes anything.

use serde_json::Value;

/// Returns whether merging `patch` into `current` would change it. An absent value and an empty object are the same:
/// servers write the one for the other.
pub(super) fn differs(current: Option<&Value>, patch: &Value) -> bool {
    let current = current.filter(|value| !is_nothing(value));
    let Value::Object(members) = patch else {
        // Null removes what is there.
        return match current {
            Some(known) => !same(known, patch),
            None => !patch.is_null(),
        };
    };
    match current {
        None => members.values().any(|member| differs(None, member)),
        Some(Value::Object(known)) => {
            members.iter().any(|(name, member)| differs(known.get(name), member))
        }
        Some(_) => true,
    }
}

/// Whether two values are the same, but for members that are null in one and absent in the other: servers fill in
/// some, as `lastUpdateTime` in the conditions of a Deployment.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let matched = |(name, value): (&String, &Value)| match b.get(name) {
                Some(other) => same(value, other),
                None => value.is_null(),
            };
            a.iter().all(matched)
                && b.iter().all(|(name, value)| value.is_null() || a.contains_key(name))
        }
        _ => a == b,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_nothing),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_effective_patches_differ() {
        let current = json!({"a": 1, "list": [1, {"x": 2}], "deep": {"b": "c", "d": null}});
        for same in [
            json!({}),
            json!({"a": 1}),
            json!({"list": [1, {"x": 2}]}),
            json!({"deep": {"b": "c"}}),
            json!({"none": null, "deep": {"none": null, "d": null}}),
            json!({"none": {}, "other": {"deep": null}}),
        ] {
            assert!(!differs(Some(&current), &same), "{same}");
        }
        for other in [
            json!({"a": 2}),
            json!({"a": null}),
            json!({"a": {}}),
            json!({"list": [1]}),
            json!({"list": [1, {"x": 2, "y": 3}]}),
            json!({"deep": null}),
            json!({"deep": {"b": null}}),
            json!({"deep": 1}),
            json!({"none": 1}),
            json!(null),
        ] {
            assert!(differs(Some(&current), &other), "{other}");
        }
        assert!(!differs(None, &json!({})) && !differs(None, &json!(null)));
        assert!(differs(None, &json!({"a": {"b": 0}})));
    }

    #[test]
    fn null_members_are_no_difference() {
        let current = json!({"list": [{"a": 1, "time": null}]});
        assert!(!differs(Some(&current), &json!({"list": [{"a": 1}]})));
        assert!(!differs(Some(&current), &json!({"list": [{"a": 1, "other": null}]})));
        assert!(differs(Some(&current), &json!({"list": [{"a": null}]})));
        assert!(differs(Some(&current), &json!({"list": [{"a": 1, "b": 2}]})));
        assert!(differs(Some(&json!({"list": [{"a": 1, "b": 2}]})), &json!({"list": [{"a": 1}]})));
    }

    #[test]
    fn differs_agrees_with_rfc_7386() {
        // Every pair of small values, against the definition in RFC 7386.
        fn merge(target: &Value, patch: &Value) -> Value {
            let Value::Object(members) = patch else { return patch.clone() };
            let mut merged = target.as_object().cloned().unwrap_or_default();
            for (name, member) in members {
                if member.is_null() {
                    merged.remove(name);
                } else {
                    let before = merged.get(name).cloned().unwrap_or_default();
                    merged.insert(name.clone(), merge(&before, member));
                }
            }
            merged.into()
        }
        fn without_empty(value: &Value) -> Value {
            let Value::Object(members) = value else { return value.clone() };
            let kept = members.iter().map(|(name, member)| (name.clone(), without_empty(member)));
            let kept: serde_json::Map<_, _> =
                kept.filter(|(_, member)| !member.is_null()).collect();
            if kept.is_empty() { Value::Null } else { kept.into() }
        }
        let leaves = [json!(null), json!(1), json!("x"), json!([]), json!([1])];
        let mut values: Vec<Value> = leaves.to_vec();
        for a in &leaves {
            values.push(json!({"a": a}));
            values.push(json!({"b": {"a": a}}));
            values.extend(leaves.iter().map(|b| json!({"a": a, "b": b})));
        }
        for current in &values {
            for patch in &values {
                let changed = without_empty(&merge(current, patch)) != without_empty(current);
                assert_eq!(differs(Some(current), patch), changed, "{patch} to {current}");
            }
        }
    }
}
