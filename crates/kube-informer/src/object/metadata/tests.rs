use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Transform;
use crate::object::{Packer, decode};

fn object(metadata: &Value) -> Object {
    let mut json =
        json!({"metadata": metadata, "spec": {"metadata": {"annotations": {"no": "no"}}}});
    json["metadata"]["name"] = "a".into();
    Object::from_json(json.to_string()).unwrap()
}

fn metadata() -> Value {
    json!({
        "creationTimestamp": "2026-03-01T12:00:00Z",
        "annotations": {"b": "2", "a\"\u{e9}\n": "1", "null": null},
        "finalizers": ["z", "a"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2",
             "controller": true, "blockOwnerDeletion": true},
        ],
    })
}

#[test]
fn metadata_is_read_from_the_bytes() {
    let object = object(&metadata());
    assert_eq!(object.creation_timestamp(), Some("2026-03-01T12:00:00Z".parse().unwrap()));
    let annotations: Vec<_> = object.annotations().into_iter().collect();
    let expected = [("a\"\u{e9}\n", "1"), ("b", "2"), ("null", "")];
    assert_eq!(annotations, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(object.finalizers(), ["z", "a"]);
    let owners = object.owner_references();
    let read: Vec<_> =
        owners.iter().map(|owner| (&*owner.kind, &*owner.name, owner.controller)).collect();
    assert_eq!(read, [("Node", "n1", false), ("ReplicaSet", "web", true)]);
    assert_eq!((&*owners[1].api_version, &*owners[1].uid), ("apps/v1", "2"));
    assert_eq!(object.controller().as_ref(), Some(&owners[1]));
}

fn is_empty(object: &Object) -> bool {
    object.creation_timestamp().is_none()
        && object.annotations().is_empty()
        && object.finalizers().is_empty()
        && object.owner_references().is_empty()
}

#[test]
fn metadata_that_is_absent_null_or_malformed_is_empty() {
    for metadata in [
        json!({}),
        json!({"creationTimestamp": null, "annotations": null, "finalizers": null,
               "ownerReferences": null}),
        json!({"creationTimestamp": "yesterday", "annotations": {"a": "1", "b": 2},
               "finalizers": [7]}),
        json!({"creationTimestamp": 7, "annotations": [], "finalizers": "a"}),
    ] {
        assert!(is_empty(&object(&metadata)), "{metadata}");
    }
}

#[test]
fn metadata_is_that_of_the_object_as_it_is_kept() {
    let json = json!({"metadata": {"name": "a", "annotations": {"a": "1"}, "finalizers": ["f"]}});
    let pack = |transform, decoder| {
        Packer::new(transform, decoder, false).pack(json.to_string().as_bytes(), None).unwrap()
    };
    let dropped = pack(Transform::drop_fields(["metadata.annotations"]), None);
    assert!(dropped.annotations().is_empty() && dropped.finalizers() == ["f"]);
    let typed =
        pack(Transform::default(), Some(|json| Ok(std::sync::Arc::new(decode::<Pod>(json)?))));
    assert!(typed.raw.decoded.is_some());
    assert_eq!(typed.annotations()["a"], "1");
    // The result of a transform that leaves no object at all.
    assert!(is_empty(&pack(Transform::json(|object| *object = json!([7])), None)));
}

fn any_owner() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(json!(null)), "[a-z\"\u{e9}]{0,4}".prop_map(Value::from)];
    let controller =
        prop_oneof![Just(json!(true)), Just(json!(false)), Just(json!(null)), Just(json!("true"))];
    (text.clone(), text.clone(), text, controller).prop_map(|(kind, name, uid, controller)| {
        json!({"kind": kind, "name": name, "uid": uid, "controller": controller})
    })
}

proptest! {
    #[test]
    fn the_controller_is_the_first_owner_that_says_so(
        owners in proptest::collection::vec(any_owner(), 0..4),
    ) {
        let object = object(&json!({"ownerReferences": owners}));
        let references = object.owner_references();
        prop_assert_eq!(references.len(), owners.len());
        let controller = references.into_iter().find(|owner| owner.controller);
        prop_assert_eq!(controller, object.controller());
    }
}
