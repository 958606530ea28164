use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Object;

fn object() -> Object {
    let json = json!({
        "metadata": {
            "name": "web-0",
            "labels": {"app.kubernetes.io/name": "web", "a": "x"},
            "annotations": {"a/b": "slash", "m~n": "tilde", "q'\"q": "quotes", "*": "star"},
        },
        "spec": {
            "nodeName": "n1",
            "replicas": 3,
            "paused": false,
            "nothing": null,
            "odd": "a\"b\u{e9}\n",
            "containers": [
                {"image": "web:1", "ports": [{"port": 80}, {"port": 443}]},
                {"image": "proxy:2", "ports": []},
                {"image": "web:1", "ports": null},
            ],
            "empty": [],
        },
    });
    Object::from_json(json.to_string()).unwrap()
}

#[test]
fn a_field_is_found_by_its_path() {
    let object = object();
    let find = |path: &str| object.field::<Value>(path).unwrap();
    for (path, expected) in [
        ("spec.nodeName", json!("n1")),
        (".spec.nodeName", json!("n1")),
        ("spec['nodeName']", json!("n1")),
        ("['spec'].nodeName", json!("n1")),
        ("spec.odd", json!("a\"b\u{e9}\n")),
        ("spec.containers[1]", json!({"image": "proxy:2", "ports": []})),
        ("spec.containers[0].ports[1].port", json!(443)),
        ("spec.containers[*].image", json!(["web:1", "proxy:2", "web:1"])),
        ("spec.containers.*.image", json!(["web:1", "proxy:2", "web:1"])),
        ("spec.containers[*].ports[*].port", json!([80, 443])),
        ("spec.containers[*].none", json!([])),
        ("spec.empty[*]", json!([])),
        ("metadata.labels[*]", json!(["x", "web"])),
        ("metadata.labels['app.kubernetes.io/name']", json!("web")),
        ("metadata.labels[\"app.kubernetes.io/name\"]", json!("web")),
        (r"metadata.labels.app\.kubernetes\.io/name", json!("web")),
        (r"metadata.annotations['q\'\q']", json!(null)),
        (r#"metadata.annotations['q\'"q']"#, json!("quotes")),
        (r"metadata.annotations.\*", json!("star")),
        ("/metadata/annotations/a~1b", json!("slash")),
        ("/metadata/annotations/m~0n", json!("tilde")),
        ("/metadata/annotations/*", json!("star")),
        ("/spec/containers/1/image", json!("proxy:2")),
    ] {
        assert_eq!(find(path).unwrap_or_default(), expected, "{path}");
    }
}

#[test]
fn what_is_absent_or_null_or_somewhere_else_is_none() {
    let object = object();
    for path in [
        "spec.nothing",
        "spec.none",
        "none.at.all",
        "spec.nodeName.deeper",
        "spec.nodeName[0]",
        "spec.nodeName[*]",
        "spec.nothing[*]",
        "spec[0]",
        "spec.containers.image",
        "spec.containers[3]",
        "/spec/containers/01",
        "/spec/containers/-",
        "/",
    ] {
        assert_eq!(object.field::<Value>(path).unwrap(), None, "{path}");
        assert!(object.index_values(&path.into()).is_empty(), "{path}");
    }
}

#[test]
fn a_field_of_another_type_is_a_decode_error_that_names_it() {
    let error = object().field::<u32>("spec.nodeName").unwrap_err();
    assert!(error.is_decode() && error.to_string().contains("spec.nodeName"), "{error}");
    assert!(!error.to_string().contains("n1"), "i20: {error}");
}

#[test]
fn values_to_index_by_are_sorted_texts_without_repetition() {
    let object = object();
    let values = |path: &str| {
        let values = object.index_values(&path.into());
        values.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(values("spec.nodeName"), ["n1"]);
    assert_eq!(values("spec.odd"), ["a\"b\u{e9}\n"]);
    assert_eq!(values("spec.replicas"), ["3"]);
    assert_eq!(values("spec.paused"), ["false"]);
    assert_eq!(values("spec.containers[*].image"), ["proxy:2", "web:1"]);
    assert_eq!(values("spec.containers[*].ports[*].port"), ["443", "80"]);
    assert!(values("spec.containers").is_empty() && values("spec").is_empty());
    assert!(values("spec..nodeName").is_empty(), "no path");
}

#[test]
fn a_malformed_path_is_an_error_that_says_where() {
    for (path, says) in [
        ("", "it is empty, at character 1 (spec.containers[*].image and"),
        ("spec..nodeName", "a name expected, at character 6"),
        ("spec.", "a name expected, at character 6"),
        ("..spec", "a name expected, at character 2"),
        ("spec[", "not closed, at character 5"),
        ("spec[0", "not closed, at character 5"),
        ("spec]", "not opened, at character 5"),
        ("spec[x]", "[0], [*] or ['name'] expected, at character 5"),
        ("spec[-1]", "[0], [*] or ['name'] expected"),
        ("spec[01]", "[0], [*] or ['name'] expected"),
        ("spec['a]", "a quote that is not closed, at character 6"),
        ("spec['a'", "a closing bracket expected"),
        ("\u{e9}[0]x", "a dot or a bracket expected, at character 5"),
        ("spec\\", "a backslash at the end"),
        ("/a~2", "a tilde is written ~0 and a slash ~1, at character 3 (/metadata/labels/"),
        ("/\u{e9}/b~", "a tilde is written ~0 and a slash ~1, at character 5"),
    ] {
        let error = FieldPath::parse(path).unwrap_err();
        assert!(error.to_string().contains(says), "{path}: {error}");
        assert!(error.to_string().contains(&format!("{path:?}")), "{path}: {error}");
        let asked = object().field::<Value>(path).unwrap_err();
        assert_eq!(asked.to_string(), error.to_string());
        assert_eq!(FieldPath::from(path).check().unwrap_err(), error);
        assert!(error.is_invalid(), "{error}");
    }
}

#[test]
fn the_paths_that_errors_show_are_paths() {
    for (malformed, shown) in [("", 2), ("/~", 1)] {
        let error = FieldPath::parse(malformed).unwrap_err().to_string();
        let example = error.rsplit_once('(').unwrap().1;
        let words = example
            .split([' ', ')'])
            .filter(|word| word.contains("metadata") || word.contains("spec"));
        assert_eq!(words.clone().count(), shown, "{error}");
        for path in words {
            assert!(FieldPath::from(path).check().is_ok(), "{path}");
        }
    }
}

#[test]
fn a_path_shows_as_it_was_written() {
    let path = FieldPath::from("spec.containers[*]".to_owned());
    assert_eq!(
        (path.to_string(), format!("{path:?}")),
        (path.0.text.to_string(), path.to_string())
    );
    assert_eq!(FieldPath::from(&path), path);
    assert_eq!(FieldPath::from(&path.to_string()), path);
    assert_eq!("spec.containers[*]".parse::<FieldPath>().unwrap(), path);
}

/// Follows the path in a parsed value: returns the matches, and whether there was a list or map to iterate
/// over.
fn expected(value: &Value, steps: &[Step]) -> (Vec<Value>, bool) {
    let Some((step, rest)) = steps.split_first() else {
        return (
            Some(value).filter(|value| !value.is_null()).cloned().into_iter().collect(),
            false,
        );
    };
    let child = match (step, value) {
        (Step::Every, Value::Array(all)) => {
            return (all.iter().flat_map(|one| expected(one, rest).0).collect(), true);
        }
        (Step::Every, Value::Object(all)) => {
            return (all.values().flat_map(|one| expected(one, rest).0).collect(), true);
        }
        (Step::Key(key) | Step::Either(key, _), Value::Object(all)) => all.get(&**key),
        (Step::Index(index) | Step::Either(_, index), Value::Array(all)) => all.get(*index),
        _ => None,
    };
    child.map_or((Vec::new(), false), |child| expected(child, rest))
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\\u{e9}]{0,9}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 4, |inner| {
        let key = prop_oneof!["[abc]", "[01]", "[.~/'\"\\\\]{1,2}"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::from(map.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

fn any_path() -> impl Strategy<Value = String> {
    let step =
        prop_oneof!["\\.[abc]", "\\[[0-3]\\]", Just("[*]".to_owned()), "\\['[.~/a]{1,2}'\\]",];
    let dotted = proptest::collection::vec(step, 1..5).prop_map(|steps| steps.concat());
    prop_oneof![dotted, "(/([abc01]|~0|~1|\\.|'){1,2}){1,4}"]
}

proptest! {
    #[test]
    fn paths_lead_where_they_lead_in_values(value in any_value(), path in any_path()) {
        let path = FieldPath::parse(&path).unwrap();
        let text = value.to_string();
        let found = path.find(text.as_bytes()).unwrap();
        let found: Option<Value> = found.map(|found| serde_json::from_str(&found).unwrap());
        let steps = path.steps().unwrap();
        let (all, many) = expected(&value, steps);
        if steps.contains(&Step::Every) {
            prop_assert_eq!(found, many.then(|| Value::from(all.clone())));
        } else {
            prop_assert_eq!(found, all.first().cloned());
        }
        let mut texts: Vec<String> = all.iter().filter_map(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        }).collect();
        texts.sort_unstable();
        texts.dedup();
        let values = path.values(text.as_bytes());
        prop_assert_eq!(values.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn nothing_panics_on_any_path_or_bytes(path: String, odd in "[.\\[\\]'\"*\\\\/~0a\u{e9}]{0,12}", json: Vec<u8>) {
        for path in [FieldPath::from(path), FieldPath::from(odd)] {
            let _ = path.find(&json);
            let _ = path.find(br#"{"a":{"0":[{"a":1}]}}"#);
            let _ = path.values(&json);
        }
    }
}
