//! Names of list elements: `[Ready]` among conditions, `[app]` among containers.
//!
//! Kubernetes merges such lists by a key field. The schema of each type defines which field that
//! is, but those of custom resources rarely do. Because there are few such fields, the first that
//! fits is used.

use serde_json::Value;

/// The key fields of list elements, the more specific ones first.
///
/// `mountPath` precedes `name`, which in a mount is the volume's name and need not be unique.
const KEYS: &[&[&str]] = &[
    &["mountPath"],
    &["devicePath"],
    &["name"],
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["type"],
    &["conditionType"],
    &["ip"],
    &["uid"],
    &["key"],
    &["key", "effect"],
    &["topologyKey", "whenUnsatisfiable"],
    &["host"],
    &["path"],
    &["hostname"],
    &["addresses"],
    &["names"],
];

/// Returns the names of the elements in several states of a list, all by the same key, so that they
/// can be compared. Returns `None` if no key gives each element of a list a unique name.
pub(crate) fn names<const N: usize>(lists: [&[Value]; N]) -> Option<[Vec<String>; N]> {
    if lists.iter().all(|list| list.is_empty()) {
        return None;
    }
    KEYS.iter().find_map(|key| {
        let mut names = lists.iter().map(|list| all_names(list, key));
        let found: [Option<Vec<String>>; N] = std::array::from_fn(|_| names.next().flatten());
        found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default))
    })
}

fn all_names(list: &[Value], key: &[&str]) -> Option<Vec<String>> {
    let names: Vec<String> =
        list.iter().map(|element| name(element, key)).collect::<Option<_>>()?;
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1]).then_some(names)
}

/// Returns the elements with this name, by the first key for which there are any.
pub(crate) fn find<'a>(list: &'a [Value], wanted: &str) -> Vec<&'a Value> {
    KEYS.iter()
        .map(|key| list.iter().filter(|e| name(e, key).is_some_and(|n| n == wanted)).collect())
        .find(|found: &Vec<_>| !found.is_empty())
        .unwrap_or_default()
}

/// Returns the name of an element by this key: `http`, `80/TCP`.
fn name(element: &Value, key: &[&str]) -> Option<String> {
    let (first, more) = key.split_first()?;
    let mut name = part(element.get(first)?)?;
    for field in more {
        // Kubernetes sets a default protocol, but custom resources may not.
        if let Some(more) = element.get(field).and_then(part) {
            name.push('/');
            name.push_str(&more);
        }
    }
    Some(name)
}

fn part(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        // An endpoint has addresses, and an image has names: the first of them is used.
        Value::Array(values) => match values.first()? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(list: &Value) -> Option<Vec<String>> {
        let [names] = names([list.as_array().unwrap()])?;
        Some(names)
    }

    #[test]
    fn the_lists_of_kubernetes_have_their_keys() {
        for (list, expected) in [
            (json!([{"name": "app", "image": "a"}, {"name": "side", "image": "a"}]), "app side"),
            (json!([{"type": "Ready", "status": "True"}]), "Ready"),
            (
                json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]),
                "80/TCP 80/UDP",
            ),
            (json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]), "http https"),
            (json!([{"port": 80, "targetPort": 8080}]), "80"),
            (
                json!([{"name": "tmp", "mountPath": "/a"}, {"name": "tmp", "mountPath": "/b"}]),
                "/a /b",
            ),
            (json!([{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]), "10.0.0.1 fd00::1"),
            (json!([{"name": "rs", "uid": "1"}, {"name": "rs", "uid": "2"}]), "1 2"),
            (
                json!([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]),
                "a/NoSchedule a/NoExecute",
            ),
            (json!([{"addresses": ["10.0.0.7"], "conditions": {"ready": true}}]), "10.0.0.7"),
        ] {
            assert_eq!(
                named(&list).map(|names| names.join(" ")).as_deref(),
                Some(expected),
                "{list}"
            );
        }
    }

    #[test]
    fn elements_that_cannot_be_told_apart_have_no_names() {
        for list in [
            json!([]),
            json!(["a", "b"]),
            json!([{"name": "a"}, {"name": "a"}]),
            json!([{"name": "a"}, {"nome": "b"}]),
            json!([{"name": "a"}, "name"]),
            json!([{"name": ""}]),
            json!([{"name": null}]),
        ] {
            assert_eq!(named(&list), None, "{list}");
        }
    }

    #[test]
    fn two_states_of_a_list_are_named_by_the_same_key() {
        let one = [json!({"name": "a", "uid": "1"})];
        let two = [json!({"name": "a", "uid": "1"}), json!({"name": "a", "uid": "2"})];
        let names = names([&one, &two]).unwrap();
        assert_eq!(names, [vec!["1".to_owned()], vec!["1".to_owned(), "2".to_owned()]]);
    }

    #[test]
    fn elements_are_found_by_their_names() {
        let list = [json!({"type": "Ready", "uid": "1"}), json!({"type": "Ready", "uid": "2"})];
        assert_eq!(find(&list, "Ready").len(), 2);
        assert_eq!(find(&list, "2"), [&list[1]]);
        assert!(find(&list, "None").is_empty());
    }
}
