use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::object::Packer;
use crate::{Object, ObjectKey};

fn apply(transform: &Transform, value: &Value) -> Value {
    let text = value.to_string();
    let changed = transform.apply_to_json(Cow::Borrowed(text.as_bytes())).unwrap();
    serde_json::from_slice(&changed).unwrap()
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "u", "resourceVersion": "42",
            "generation": 1, "deletionTimestamp": "2024-05-01T10:00:00Z",
            "labels": {"app": "web"}, "annotations": {"a/b": "1", "c": "2"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                                 "uid": "o", "controller": true}],
            "finalizers": ["f"],
        },
        "spec": {
            "containers": [
                {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]},
                {"name": "proxy", "image": "proxy:2"},
            ],
            "nodeName": "n1",
        },
        "status": {"phase": "Running"},
    })
}

fn packed(transform: Transform, value: &Value) -> Result<Object> {
    Packer::new(transform, None, false).pack(value.to_string().as_bytes(), None)
}

#[test]
fn fields_are_dropped_by_their_paths() {
    let mut expected = pod();
    for container in expected["spec"]["containers"].as_array_mut().unwrap() {
        container.as_object_mut().unwrap().remove("env");
    }
    expected["metadata"]["annotations"].as_object_mut().unwrap().remove("a/b");
    expected.as_object_mut().unwrap().remove("status");
    let transform = Transform::drop_fields([
        "spec.containers[*].env",
        "metadata.annotations['a/b']",
        "status",
        "status.phase",
        "none.at[7].all",
    ]);
    assert_eq!(apply(&transform, &pod()), expected);
}

#[test]
fn unchanged_json_is_not_copied() {
    let text = pod().to_string();
    let transform = Transform::drop_fields(["spec.none", "spec.nodeName.deeper"]);
    assert!(matches!(
        transform.apply_to_json(Cow::Borrowed(text.as_bytes())),
        Ok(Cow::Borrowed(_))
    ));
}

#[test]
fn kept_fields_are_those_and_what_the_header_needs() {
    let mut expected = pod();
    let metadata = expected["metadata"].as_object_mut().unwrap();
    metadata.remove("annotations");
    metadata.remove("finalizers");
    expected["spec"] = json!({"containers": [{"image": "web:1"}, {"image": "proxy:2"}]});
    expected.as_object_mut().unwrap().remove("status");
    let transform = Transform::keep_fields(["spec.containers[*].image", "status.phase.deeper"]);
    let mut with_status = expected.clone();
    with_status["status"] = json!({});
    assert_eq!(apply(&transform, &pod()), with_status);
    assert_eq!(apply(&Transform::keep_fields(["spec.containers[*].image"]), &pod()), expected);
    // One after the other is less than both at once.
    let one =
        Transform::keep_fields(["spec.nodeName"]).then(Transform::keep_fields(["spec.containers"]));
    assert_eq!(apply(&one, &pod())["spec"], json!({}));
    let header_only = apply(&Transform::keep_fields([""; 0]), &pod());
    let keys: Vec<_> = header_only.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["apiVersion", "kind", "metadata"]);
}

#[test]
fn t1_a_function_changes_what_is_kept() {
    type Pod = k8s_openapi::api::core::v1::Pod;
    let transform = Transform::map(|pod: &mut Pod| pod.spec.as_mut().unwrap().node_name = None)
        .then(Transform::json(|pod| pod["status"]["phase"] = "changed".into()))
        .then(Transform::drop_fields(["spec.containers"]));
    let object = packed(transform, &pod()).unwrap();
    assert_eq!(object.field::<Value>("spec").unwrap(), Some(json!({})));
    assert_eq!(object.field::<String>("status.phase").unwrap().unwrap(), "changed");
}

#[test]
fn s22_t4_t9_key_uid_and_version_survive_a_transform() {
    let transform = Transform::json(|pod| {
        pod["metadata"] = json!({"name": "other", "namespace": "other", "uid": "other",
                                 "resourceVersion": "1"});
    });
    let stripped = Transform::drop_fields(["metadata"]);
    // T-7: what is kept need not be an API object at all.
    let nonsense = Transform::json(|pod| *pod = json!(7));
    for transform in [transform, stripped, nonsense] {
        let object = packed(transform, &pod()).unwrap();
        assert_eq!(object.key(), &ObjectKey::namespaced("shop", "web-0"));
        assert_eq!((object.uid(), object.resource_version().as_str()), ("u", "42"));
        assert_ne!(object.field::<String>("metadata.name").unwrap().as_deref(), Some("web-0"));
        // The rest is gone, for everybody.
        assert!(object.labels().is_empty() && object.controller().is_none());
        assert_eq!((object.generation(), object.deletion_timestamp()), (None, None));
    }
}

#[test]
fn t4_the_rest_of_the_header_is_that_of_what_is_kept() {
    type Pod = k8s_openapi::api::core::v1::Pod;
    let relabel = Transform::map(|pod: &mut Pod| {
        let metadata = &mut pod.metadata;
        metadata.labels.get_or_insert_default().insert("team".into(), "web".into());
        metadata.owner_references.as_mut().unwrap()[0].name = "other".into();
        (metadata.generation, metadata.deletion_timestamp) = (Some(7), None);
    });
    let theirs: Object<Pod> = Object::from_json(pod().to_string()).unwrap();
    let packer = Packer::new(relabel.clone(), None, false);
    let of_ours = packed(relabel.clone(), &pod()).unwrap().cast();
    let of_a_source = packer.repack(theirs.clone().cast()).unwrap().cast();
    for object in [of_ours, of_a_source, relabel.apply(&theirs).unwrap()] {
        let labels: Vec<_> = object.labels().iter().collect();
        assert_eq!(labels, [("app", "web"), ("team", "web")]);
        assert!(object.labels().matches(&"team=web".parse().unwrap()));
        assert_eq!(object.controller().unwrap().name, "other");
        assert_eq!((object.generation(), object.deletion_timestamp()), (Some(7), None));
        let metadata = &object.decode().unwrap().metadata;
        assert_eq!(metadata.labels.as_ref().unwrap()["team"], "web");
    }
    for path in ["metadata.labels", "metadata.labels.app", "metadata[*]", "/metadata/labels", "[*]"]
    {
        let object = packed(Transform::drop_fields([path]), &pod()).unwrap();
        assert!(object.labels().is_empty(), "{path}");
    }
    let object = packed(Transform::drop_fields(["metadata.ownerReferences"]), &pod()).unwrap();
    assert!(object.controller().is_none());
    // What is no label for who decodes is none here.
    let strange = Transform::json(|pod| pod["metadata"]["labels"] = json!({"a": 1, "b": "2"}));
    assert_eq!(packed(strange, &pod()).unwrap().labels().get("a"), None);
}

#[test]
fn t4_the_header_is_reread_only_if_it_may_change() {
    let apart =
        ["spec", "status.phase", "metadata.annotations", "metadata.managedFields", "/0/labels"];
    for path in apart {
        let transform = Transform::drop_fields([path]);
        assert!(!transform.changes_header(), "{path}");
        assert_eq!(packed(transform, &pod()).unwrap().labels().len(), 1);
    }
    let kept = Transform::keep_fields(["spec.nodeName"]).then(Transform::drop_fields(["spec"]));
    assert!(!kept.changes_header());
    assert_eq!(packed(kept.clone(), &pod()).unwrap().controller().unwrap().name, "web");
    assert!(kept.then(Transform::drop_fields(["metadata"])).changes_header());
}

#[test]
fn a_transform_can_be_applied_to_an_object() {
    let object: Object = Object::from_json(pod().to_string()).unwrap();
    let cut = Transform::drop_fields(["spec", "status"]).apply(&object).unwrap();
    assert_eq!((cut.key(), cut.labels()), (object.key(), object.labels()));
    assert_eq!(cut.field::<Value>("spec").unwrap(), None);
    assert!(object.field::<Value>("spec").unwrap().is_some());
    let error = Transform::try_map(|_: &mut Value| Err("no")).apply(&object).unwrap_err();
    assert!(error.is_unreadable() && error.key() == Some(object.key()), "{error}");
    assert!(Transform::drop_fields(["a..b"]).apply(&object).is_err());
}

#[test]
fn t3_an_object_is_transformed_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let count = move |_: &mut Value| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let packer = Packer::new(Transform::json(count), None, false);
    // From a source that has packed it itself, and again where it is already known.
    let theirs: Object = Object::from_json(pod().to_string()).unwrap();
    let ours = packer.repack(theirs.clone()).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(packer.repack(ours.clone()).unwrap().is_same_instance(&ours));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!((ours.key(), ours.labels()), (theirs.key(), theirs.labels()));
}

#[test]
fn a_failed_transform_is_unreadable_with_a_reason() {
    type Pod = k8s_openapi::api::core::v1::Pod;
    let mut secret = pod();
    secret["spec"] = json!("hunter2");
    for (transform, says) in [
        (Transform::map(|_: &mut Pod| {}), "the transform cannot decode it"),
        (Transform::try_map(|_: &mut Value| Err("no such team")), "failed: no such team"),
        (Transform::json(|_| panic!("hunter2")), "the transform panicked"),
        (Transform::drop_fields(["spec..x"]), "\"spec..x\" is not a path"),
        (Transform::keep_fields(["[x]"]), "\"[x]\" is not a path"),
    ] {
        let error = packed(transform, &secret).unwrap_err();
        assert!(error.is_unreadable());
        assert_eq!(error.key().unwrap().as_str(), "shop/web-0");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!error.to_string().contains("hunter2"), "i20: {error}");
    }
}

#[test]
fn bad_paths_are_found_before_there_is_an_object() {
    let good = Transform::drop_fields(["a"]).then(Transform::json(|_| {}));
    assert!(good.check().is_ok());
    assert!(good.then(Transform::keep_fields(["a", "b."])).check().is_err());
}

#[test]
fn transforms_are_equal_if_they_do_the_same() {
    let json = Transform::json(|_| {});
    assert_eq!(json, json.clone());
    assert_ne!(json, Transform::json(|_| {}));
    assert_eq!(Transform::drop_fields(["a", "b"]), Transform::drop_fields(["a", "b"]));
    assert_ne!(Transform::drop_fields(["a"]), Transform::keep_fields(["a"]));
    assert_eq!(Transform::drop_fields([""; 0]), Transform::default());
    let shown = format!("{:?}", Transform::drop_fields(["a", "b"]).then(json));
    assert_eq!(shown, r#"["drop [a, b]", "map"]"#);
}

/// The same by way of values.
fn cut_value(value: &mut Value, paths: &[&[crate::object::Step]], keep: bool) {
    use crate::object::Step;
    let on = |key: Option<&str>, nth: usize| -> Vec<&[Step]> {
        let leads = |step: &Step| match (step, key) {
            (Step::Every, _) => true,
            (Step::Key(name), Some(key)) => **name == *key,
            (Step::Index(index), None) => *index == nth,
            _ => false,
        };
        paths.iter().filter(|steps| leads(&steps[0])).map(|steps| &steps[1..]).collect()
    };
    let stays = |child: &mut Value, on: Vec<&[Step]>| {
        let found = on.iter().any(|steps| steps.is_empty());
        let deeper = !found && !on.is_empty() && (child.is_object() || child.is_array());
        if deeper {
            cut_value(child, &on, keep);
        }
        if keep { found || deeper } else { !found }
    };
    match value {
        Value::Object(members) => {
            let all = std::mem::take(members).into_iter();
            let left = all.filter_map(|(key, mut child)| {
                let on = on(Some(&key), 0);
                stays(&mut child, on).then_some((key, child))
            });
            *members = left.collect();
        }
        Value::Array(elements) => {
            let all = std::mem::take(elements).into_iter().enumerate();
            let left = all.filter_map(|(nth, mut child)| {
                let on = on(None, nth);
                stays(&mut child, on).then_some(child)
            });
            *elements = left.collect();
        }
        _ => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from)];
    leaf.prop_recursive(4, 64, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[abcd]", inner, 0..4)
                .prop_map(|map| Value::from(map.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn cutting_bytes_is_cutting_values(
        value in any_value(),
        paths in proptest::collection::vec("(\\.[abcd]|\\[[0-3*]\\]){1,3}", 0..5),
        keep: bool, pretty: bool,
    ) {
        let paths: Vec<FieldPath> = paths.into_iter().map(FieldPath::from).collect();
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let cut = if keep { cut::only(text.as_bytes(), &paths) } else { cut::without(text.as_bytes(), &paths) };
        let cut = cut.unwrap().unwrap_or(text.into_bytes());
        let steps: Vec<_> = paths.iter().map(|path| path.steps().unwrap()).collect();
        let mut expected = value;
        cut_value(&mut expected, &steps, keep);
        prop_assert_eq!(serde_json::from_slice::<Value>(&cut).unwrap(), expected);
    }
}
