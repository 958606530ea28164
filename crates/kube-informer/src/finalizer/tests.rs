use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;

fn object(finalizers: &Value) -> Object<ConfigMap> {
    let json = json!({"metadata": {"name": "a", "uid": "u", "finalizers": finalizers}});
    Object::from_json(json.to_string()).unwrap()
}

#[test]
fn an_addition_tests_the_whole_list() {
    let uid = json!({"op": "test", "path": "/metadata/uid", "value": "u"});
    let expected = json!([
        uid,
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x.io/a"]},
    ]);
    assert_eq!(addition(&object(&Value::Null), "x.io/a"), expected);
    let expected = json!([
        uid,
        {"op": "test", "path": "/metadata/finalizers", "value": ["x.io/b"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "x.io/a"},
    ]);
    assert_eq!(addition(&object(&json!(["x.io/b"])), "x.io/a"), expected);
}

#[test]
fn a_removal_tests_each_entry_and_begins_at_the_end() {
    let expected = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/finalizers/2", "value": "x.io/a"},
        {"op": "remove", "path": "/metadata/finalizers/2"},
        {"op": "test", "path": "/metadata/finalizers/0", "value": "x.io/a"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    assert_eq!(removal(&object(&json!(["x.io/a", "x.io/b", "x.io/a"])), "x.io/a"), expected);
}

#[test]
fn a_name_has_a_domain() {
    for name in ["example.com/volumes", "a.b-c.io/X_y.z"] {
        assert!(check(name).is_ok(), "{name}");
    }
    for name in ["", "volumes", "/volumes", "example.com/", "Example.com/a", "a/b/c", "a.io/-b"] {
        let error = check(name).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("example.com/volumes"), "{error}");
    }
}

#[test]
fn a_failed_test_is_told_from_an_invalid_object() {
    let answer = |code: u16, reason: &str, fields: &[&str]| {
        let causes: Vec<_> = fields.iter().map(|field| json!({"field": field})).collect();
        let status = json!({
            "code": code, "reason": reason, "message": "no", "details": {"causes": causes},
        });
        Error::from_status(serde_json::from_value(status).unwrap(), false)
    };
    assert!(met_a_change(&answer(409, "Conflict", &[])));
    assert!(met_a_change(&answer(422, "Invalid", &[])));
    assert!(met_a_change(&answer(422, "Invalid", &["metadata.finalizers"])));
    assert!(!met_a_change(&answer(422, "Invalid", &["spec.replicas"])));
    assert!(!met_a_change(&answer(409, "AlreadyExists", &[])));
    assert!(!met_a_change(&answer(403, "Forbidden", &[])));
    assert!(!met_a_change(&Error::connection("it broke")));
}
