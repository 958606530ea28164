//! The results were compared with those of `strategicpatch` in k8s.io/apimachinery.

use serde_json::json;

use super::*;

fn patched(kind: &str, original: Value, patch: Value) -> Result<Value, Refusal> {
    let (api_version, kind) = kind.rsplit_once('/').expect("an apiVersion and a kind");
    let message = kube_schema::message(api_version, kind).expect("a kind of the tables");
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        panic!("both are objects")
    };
    merge(original, patch, message).map(Value::Object)
}

/// Patches the spec of a pod.
#[allow(clippy::needless_pass_by_value, reason = "callers write both in place")]
fn spec(original: Value, patch: Value) -> Result<Value, Refusal> {
    let patched = patched("v1/Pod", json!({"spec": original}), json!({"spec": patch}));
    patched.map(|mut pod| pod["spec"].take())
}

fn containers(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

fn mismatch(why: &str) -> Result<Value, Refusal> {
    Err(Refusal::Mismatch(why.to_owned()))
}

#[test]
fn lists_are_merged_by_key_or_replaced() {
    let original = json!({
        "containers": [{"name": "a", "image": "1", "args": ["x", "y"]}, {"name": "b", "image": "1"}],
        "tolerations": [{"key": "old"}],
        "nodeSelector": {"disk": "ssd", "zone": "1"},
    });
    let patch = json!({
        "containers": [{"name": "a", "image": "2", "args": ["z"]}, {"name": "c", "image": null}],
        "tolerations": [{"key": "new", "value": null}],
        "nodeSelector": {"disk": null, "size": "big"},
    });
    let want = json!({
        "containers": [
            {"name": "b", "image": "1"},
            {"name": "a", "image": "2", "args": ["z"]},
            {"name": "c"},
        ],
        "tolerations": [{"key": "new"}],
        "nodeSelector": {"zone": "1", "size": "big"},
    });
    // The items of the patch keep their order. An item that preceded none of them comes last.
    let got = spec(original, patch).unwrap();
    let names: Vec<_> = got["containers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["a", "c", "b"]);
    let mut sorted = want;
    sorted["containers"].as_array_mut().unwrap().rotate_left(1);
    assert_eq!(got, sorted);
}

#[test]
fn items_are_deleted_and_lists_replaced_by_directives() {
    let original = || json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]});
    let got = spec(original(), json!({"containers": [{"name": "a", "$patch": "delete"}]}));
    assert_eq!(got.unwrap(), json!({"containers": [{"name": "b"}]}));
    let got = spec(original(), json!({"containers": [{"name": "c"}, {"$patch": "replace"}]}));
    assert_eq!(got.unwrap(), json!({"containers": [{"name": "c"}]}));
    let got = spec(original(), json!({"containers": [{"$patch": "replace"}]}));
    assert_eq!(got.unwrap(), json!({"containers": []}));
    let again =
        json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "a", "image": "2"}]});
    let want = json!({"containers": [{"name": "a", "image": "2"}, {"name": "b"}]});
    assert_eq!(spec(original(), again).unwrap(), want);
}

#[test]
fn objects_are_replaced_and_deleted_by_directives() {
    let original = || json!({"nodeSelector": {"a": "1"}, "securityContext": {"runAsUser": 1}});
    let patch = json!({"nodeSelector": {"$patch": "replace", "b": "2", "c": null}});
    let want = json!({"nodeSelector": {"b": "2"}, "securityContext": {"runAsUser": 1}});
    assert_eq!(spec(original(), patch).unwrap(), want);
    let patch = json!({"securityContext": {"$patch": "delete", "runAsUser": 3}});
    let want = json!({"nodeSelector": {"a": "1"}, "securityContext": {}});
    assert_eq!(spec(original(), patch).unwrap(), want);
    // Nothing is left of a member that the object does not have.
    let got = spec(json!({}), json!({"affinity": {"$patch": "replace", "nodeAffinity": {}}}));
    assert_eq!(got.unwrap(), json!({}));
    // But in Go, structs that are not pointers are always present.
    let strategy = json!({"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}});
    let got = patched("apps/v1/Deployment", json!({"spec": {}}), strategy).unwrap();
    assert_eq!(got, json!({"spec": {"strategy": {"type": "Recreate"}}}));
    // The field's strategy replaces without a directive.
    let selector = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
    let got = patched(
        "policy/v1/PodDisruptionBudget",
        selector(json!({"a": "1"})),
        selector(json!({"b": "2"})),
    );
    assert_eq!(got.unwrap(), selector(json!({"b": "2"})));
}

#[test]
fn retained_keys_are_all_that_is_left() {
    let deployment = |strategy: Value| json!({"spec": {"strategy": strategy}});
    let original = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    let patch = json!({"$retainKeys": ["type"], "type": "Recreate"});
    let got = patched("apps/v1/Deployment", deployment(original.clone()), deployment(patch));
    assert_eq!(got.unwrap(), deployment(json!({"type": "Recreate"})));
    for wrong in [json!({"$retainKeys": ["x"], "type": "Recreate"}), json!({"$retainKeys": "type"})]
    {
        let got = patched("apps/v1/Deployment", deployment(original.clone()), deployment(wrong));
        assert_eq!(got, Err(Refusal::Malformed("invalid patch format of retainKeys")));
    }
}

#[test]
fn scalars_are_merged_and_deleted_as_in_sets() {
    let meta = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let original = || meta(json!(["a", "b", "c"]));
    let got = patched("v1/Pod", original(), meta(json!(["b", "d"]))).unwrap();
    assert_eq!(got, meta(json!(["a", "b", "d", "c"])));
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["a", "x"],
        "$setElementOrder/finalizers": ["c", "d", "b"],
        "finalizers": ["d"],
    }});
    let got = patched("v1/Pod", original(), patch).unwrap();
    assert_eq!(got, meta(json!(["c", "d", "b"])));
    let patch = json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}});
    let wrong = Refusal::Malformed("invalid patch format of primitive list");
    assert_eq!(patched("v1/Pod", original(), patch), Err(wrong));
}

#[test]
fn an_order_places_the_items_of_the_patch() {
    let names = |spec: Value| -> Vec<String> {
        let items = spec["containers"].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let ordered = |original: &[&str], order: &[&str], patch: Option<Value>| {
        let mut change = json!({"$setElementOrder/containers": containers(order)});
        change.as_object_mut().unwrap().extend(patch.map(|list| ("containers".to_owned(), list)));
        spec(json!({"containers": containers(original)}), change).map(names)
    };
    assert_eq!(ordered(&["a", "b", "c"], &["c", "a"], None).unwrap(), ["b", "c", "a"]);
    assert_eq!(
        ordered(&["a", "b", "c"], &["c", "x", "a"], Some(containers(&["x"]))).unwrap(),
        ["b", "c", "x", "a"]
    );
    let delete = json!([{"name": "a", "$patch": "delete"}]);
    assert_eq!(ordered(&["a", "b", "c"], &["c", "b"], Some(delete)).unwrap(), ["c", "b"]);
    // A new item takes the place of a deleted one.
    let renamed = json!([{"name": "d"}, {"name": "b", "$patch": "delete"}]);
    assert_eq!(ordered(&["a", "b", "c"], &["d"], Some(renamed)).unwrap(), ["a", "c", "d"]);
    let refused = ordered(&["a", "b"], &["b"], Some(containers(&["x"])));
    let why = "The order in patch list doesn't match $setElementOrder list";
    assert_eq!(refused, Err(Refusal::Mismatch(why.to_owned())));
    let patch = json!({"$setElementOrder/nothing": [{"name": "a"}]});
    let why = "unable to find api field in struct PodSpec for the json field \"nothing\"";
    assert_eq!(spec(json!({}), patch), mismatch(why));
    let patch = json!({"$setElementOrder": []});
    let why = "invalid patch format of setElementOrder list";
    assert_eq!(spec(json!({}), patch), Err(Refusal::Malformed(why)));
}

#[test]
fn what_contradicts_the_types_is_refused() {
    let original = || json!({"containers": containers(&["a"]), "overhead": {"cpu": "1"}});
    for (patch, why) in [
        (json!({"containers": [{"image": "1"}]}), "map does not contain declared merge key: name"),
        (json!({"containers": ["a"]}), "list element types are not identical"),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({"containers": [{"name": "a", "$patch": "x"}]}), "unknown patch type: x"),
        (
            json!({"nodeSelector": null, "containers": [{"name": "b", "$patch": 1}]}),
            "unknown patch type: 1",
        ),
        (json!({"$patch": "merge"}), "unknown patch type: merge"),
        (
            json!({"$setElementOrder/containers": "a"}),
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder/containers": ["a"]}),
            "expected a map[string]interface {}, but received a string",
        ),
    ] {
        assert_eq!(spec(original(), patch), mismatch(why), "{why}");
    }
    for patch in [json!({"containers": [["a"]]}), json!({"containers": [{"name": {}}]})] {
        assert!(spec(json!({"containers": [["a"]]}), patch).is_err());
    }
    let schema = |kind: &str| {
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
            "properties": {"spec": {"type": kind}}
        }}}]}})
    };
    // Lists without a strategy are replaced. Maps of structs cannot be merged.
    let definition = "apiextensions.k8s.io/v1/CustomResourceDefinition";
    assert_eq!(patched(definition, schema("a"), schema("b")).unwrap(), schema("b"));
    let props = |kind: &str| json!({"requests": {"a": {"b": kind}}});
    let got = patched(
        "v1/LimitRange",
        json!({"metadata": {"labels": props("a")}}),
        json!({"metadata": {"labels": props("b")}}),
    );
    assert_eq!(
        got,
        mismatch("merging an object in json but data type is not struct, instead is: map")
    );
}

#[test]
fn fields_that_no_table_has_are_merged_as_json() {
    let original = json!({"unknown": {"a": {"b": 1}, "list": [1]}});
    let patch = json!({"unknown": {"a": {"c": 2}, "list": [2]}});
    let want = json!({"unknown": {"a": {"b": 1, "c": 2}, "list": [2]}});
    assert_eq!(spec(original, patch).unwrap(), want);
}

#[test]
fn directives_never_stay_in_an_object() {
    let patch = json!({"containers": [{
        "name": "new",
        "$setElementOrder/env": [{"name": "A"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "$patch": "delete"}],
    }]});
    // Go's types cannot represent a directive in a new item, but the item stays.
    let env = json!([{"name": "A", "value": "1"}, {"name": "B"}]);
    let got = spec(json!({"containers": [{"name": "old"}]}), patch.clone()).unwrap();
    assert_eq!(got["containers"], json!([{"name": "new", "env": env}, {"name": "old"}]));
    // In a new list, such items are omitted.
    let got = spec(json!({}), patch).unwrap();
    let want = json!([{"name": "new", "env": [{"name": "A", "value": "1"}]}]);
    assert_eq!(got["containers"], want);
}

/// Reverses lists of `len` objects and scalars. Returns the number of scalars that were read.
fn scalars_read_to_reverse(len: usize) -> usize {
    let names: Vec<String> = (0..len).map(|n| format!("n{n}")).collect();
    let list =
        |names: &[String]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let reversed: Vec<String> = names.iter().rev().cloned().collect();
    let before = lists::SCALARS_READ.get();
    let mut patch = json!({"$setElementOrder/containers": list(&reversed)});
    patch["containers"] = list(&reversed);
    let got = spec(json!({"containers": list(&names)}), patch).unwrap();
    assert_eq!(got["containers"], list(&reversed));
    let finalizers = |names: &[String]| json!({"metadata": {"finalizers": names}});
    let got = patched("v1/Pod", finalizers(&names), finalizers(&reversed)).unwrap();
    assert_eq!(got, finalizers(&reversed));
    lists::SCALARS_READ.get() - before
}

#[test]
fn large_lists_are_merged_with_work_in_proportion_to_them() {
    let (small, large) = (scalars_read_to_reverse(1_000), scalars_read_to_reverse(40_000));
    // A linear search for each item would read a thousand times as many.
    assert!(small > 0 && large <= 40 * small, "{small} and {large}");
    assert!(large < 40 * 40_000, "{large}");
}
