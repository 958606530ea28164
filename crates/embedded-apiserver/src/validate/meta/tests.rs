//! Valid and invalid metadata, and its errors.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn resource(namespaced: bool, name_rule: NameRule) -> Resource {
    Resource {
        group: "".into(),
        version: "v1".into(),
        kind: "Thing".into(),
        list_kind: "ThingList".into(),
        plural: "things".into(),
        singular: "thing".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        status: false,
        scale: None,
        generation: false,
        unconditional_update: true,
        name_rule,
        selectable: Vec::new().into(),
        columns: Vec::new(),
        custom: false,
        stored: true,
        schema: None,
        table: "things.".into(),
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

fn shown(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Returns the errors of a new namespaced object `ns/a` with these additional fields.
fn create_with(fields: Value) -> Vec<String> {
    let mut metadata = object(json!({"name": "a", "namespace": "ns"}));
    metadata.extend(object(fields));
    shown(&create(&resource(true, NameRule::Subdomain), &metadata))
}

#[test]
fn ordinary_metadata_is_accepted() {
    let full = json!({
        "generateName": "a-",
        "generation": 1,
        "labels": {"app": "web", "example.com/empty": "", "null": null},
        "annotations": {"Example.COM/Note": "anything at all\n"},
        "finalizers": ["example.com/hold", "orphan"],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "v", "controller": false},
        ],
        "managedFields": [{"manager": ""}],
    });
    for fields in [json!({}), full, json!({"labels": null, "finalizers": null})] {
        assert_eq!(create_with(fields), [""; 0]);
    }
}

#[test]
fn a_name_or_a_prefix_is_required() {
    let things = resource(false, NameRule::Subdomain);
    let required = "metadata.name: Required value: name or generateName is required";
    for (metadata, want) in [
        (json!({}), vec![required]),
        (json!({"name": "", "generateName": null}), vec![required]),
        (json!({"generateName": "a-"}), vec![]),
        (json!({"name": "a"}), vec![]),
    ] {
        assert_eq!(shown(&create(&things, &object(metadata))), want);
    }
}

#[test]
fn names_follow_the_rule_of_the_resource() {
    for (rule, name, ok) in [
        (NameRule::Subdomain, "a.b", true),
        (NameRule::Subdomain, "A", false),
        (NameRule::Label, "a.b", false),
        (NameRule::PathSegment, "system:A", true),
        (NameRule::PathSegment, "a/b", false),
    ] {
        let errors = create(&resource(false, rule), &object(json!({"name": name})));
        assert_eq!(errors.is_empty(), ok, "{rule:?} {name}: {errors:?}");
    }
    let want = ["metadata.name: Invalid value: \"a.b\": must not contain dots"];
    let errors = create(&resource(false, NameRule::Label), &object(json!({"name": "a.b"})));
    assert_eq!(shown(&errors), want);
    let errors = create(&resource(false, NameRule::Label), &object(json!({"generateName": "A-"})));
    assert!(errors.is_empty(), "the letter before the dash does not count: {errors:?}");
}

#[test]
fn the_namespace_goes_with_the_scope() {
    for (namespaced, metadata, want) in [
        (true, json!({"name": "a"}), "metadata.namespace: Required value"),
        (
            false,
            json!({"name": "a", "namespace": "ns"}),
            "metadata.namespace: Forbidden: not allowed on this type",
        ),
        (
            true,
            json!({"name": "a", "namespace": "n.s"}),
            "metadata.namespace: Invalid value: \"n.s\": must not contain dots",
        ),
    ] {
        let errors = create(&resource(namespaced, NameRule::Subdomain), &object(metadata));
        assert_eq!(shown(&errors), [want]);
    }
}

#[test]
fn keys_values_and_sizes_are_bounded() {
    let long = "v".repeat(64);
    let half = "v".repeat(ANNOTATION_BYTES_MAX / 2);
    for (fields, want) in [
        (
            json!({"labels": {"/a": "b"}}),
            "metadata.labels: Invalid value: \"/a\": prefix part must be non-empty".to_owned(),
        ),
        (
            json!({"labels": {"a": &long}}),
            format!("metadata.labels: Invalid value: \"{long}\": must be no more than 63 bytes"),
        ),
        (
            json!({"annotations": {"/A": "b"}}),
            "metadata.annotations: Invalid value: \"/A\": prefix part must be non-empty".to_owned(),
        ),
        (
            json!({"annotations": {"a": &half, "b": &half}}),
            "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned(),
        ),
        (
            json!({"finalizers": ["/x"]}),
            "metadata.finalizers: Invalid value: \"/x\": prefix part must be non-empty".to_owned(),
        ),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer \
             orphan and foregroundDeletion cannot be both set"
                .to_owned(),
        ),
        (
            json!({"generation": -1}),
            "metadata.generation: Invalid value: -1: must be greater than or equal to 0".to_owned(),
        ),
    ] {
        assert_eq!(create_with(fields), [want]);
    }
    assert!(create_with(json!({"annotations": {"a": &half}})).is_empty());
}

#[test]
fn owner_references_are_whole() {
    let want = [
        "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
        "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
        "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
        "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
    ];
    assert_eq!(create_with(json!({"ownerReferences": [{}]})), want);
    assert_eq!(create_with(json!({"ownerReferences": [null]})), want);
    for bad in ["a/", "/", "a/b/c"] {
        let owner = json!({"apiVersion": bad, "kind": "K", "name": "n", "uid": "u"});
        let want = format!(
            "metadata.ownerReferences.apiVersion: Invalid value: \"{bad}\": version must not be empty"
        );
        assert_eq!(create_with(json!({"ownerReferences": [owner]})), [want]);
    }
}

#[test]
fn events_own_nothing() {
    let event = json!({"kind": "Event", "apiVersion": "v1", "uid": "u", "name": "n"});
    let want = "metadata.ownerReferences: Invalid value: \
                {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\"}: \
                /v1, Kind=Event is disallowed from being an owner";
    assert_eq!(create_with(json!({"ownerReferences": [event]})), [want]);
}

#[test]
fn one_controller_at_most() {
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "K", "name": name, "uid": "u", "controller": true});
    let shown = |name: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"{name}\",\"uid\":\"u\",\"controller\":true}}"
        )
    };
    let want = format!(
        "metadata.ownerReferences: Invalid value: [{},{}]: Only one reference can have Controller \
         set to true. Found \"true\" in references for K/a and K/b",
        shown("a"),
        shown("b"),
    );
    assert_eq!(create_with(json!({"ownerReferences": [owner("a"), owner("b")]})), [want]);
}

fn stored() -> Value {
    json!({
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "5",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "finalizers": ["example.com/b"],
    })
}

fn update_with(old: Value, new: Value) -> Vec<String> {
    let mut merged = object(stored());
    merged.extend(object(new));
    let mut before = object(stored());
    before.extend(object(old));
    shown(&update(&resource(true, NameRule::Subdomain), &before, &merged))
}

#[test]
fn identity_is_immutable() {
    for (new, want) in [
        (json!({"name": "b"}), "metadata.name: Invalid value: \"b\": field is immutable"),
        (json!({"namespace": "b"}), "metadata.namespace: Invalid value: \"b\": field is immutable"),
        (json!({"uid": "b"}), "metadata.uid: Invalid value: \"b\": field is immutable"),
        (json!({"uid": null}), "metadata.uid: Invalid value: \"\": field is immutable"),
        (
            json!({"creationTimestamp": null}),
            "metadata.creationTimestamp: Invalid value: null: field is immutable",
        ),
        (
            json!({"deletionTimestamp": "2024-01-02T00:00:00Z"}),
            "metadata.deletionTimestamp: Invalid value: \"2024-01-02T00:00:00Z\": field is immutable",
        ),
        (
            json!({"deletionGracePeriodSeconds": 3}),
            "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
        ),
        (
            json!({"resourceVersion": null}),
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
        ),
    ] {
        assert_eq!(update_with(json!({}), new), [want]);
    }
}

#[test]
fn everything_else_may_change() {
    for new in [
        json!({}),
        json!({"creationTimestamp": "2024-01-01T01:00:00+01:00"}),
        json!({"deletionGracePeriodSeconds": null, "deletionTimestamp": null}),
        json!({"resourceVersion": "6", "labels": {"a": "b"}, "finalizers": ["example.com/new"]}),
    ] {
        assert_eq!(update_with(json!({}), new.clone()), [""; 0], "{new}");
    }
}

#[test]
fn an_update_is_judged_like_a_new_object() {
    let want = ["metadata.labels: Invalid value: \"/a\": prefix part must be non-empty"];
    assert_eq!(update_with(json!({}), json!({"labels": {"/a": ""}})), want);
}

#[test]
fn an_old_name_outlives_a_stricter_rule() {
    let old = object(json!({"name": "A_b", "resourceVersion": "1"}));
    assert!(update(&resource(false, NameRule::Label), &old, &old).is_empty());
}

#[test]
fn a_dying_object_only_loses_finalizers() {
    let dying = json!({"deletionTimestamp": "2024-01-02T00:00:00Z"});
    let with = |finalizers: Value| {
        let mut new = dying.clone();
        new["finalizers"] = finalizers;
        update_with(dying.clone(), new)
    };
    assert_eq!(with(json!([])), [""; 0]);
    assert_eq!(with(json!(["example.com/b"])), [""; 0]);
    let want = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
                being deleted, found new finalizers []string{\"example.com/a\", \"example.com/c\"}";
    assert_eq!(with(json!(["example.com/c", "example.com/b", "example.com/a"])), [want]);
}

#[test]
fn the_storage_names_a_missing_version_as_a_number() {
    let want = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(version_required().to_string(), want);
}

/// Generates any JSON, in known fields and a few others.
fn metadata() -> impl Strategy<Value = Object> {
    let field = "name|namespace|generateName|uid|resourceVersion|labels|annotations|finalizers|\
                 ownerReferences|generation|deletionTimestamp|creationTimestamp|x";
    proptest::collection::btree_map(field, super::super::shape::any_json(), 0..8)
        .prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #[test]
    fn no_metadata_panics(namespaced: bool, old in metadata(), new in metadata()) {
        for rule in [NameRule::Subdomain, NameRule::PathSegment] {
            let resource = resource(namespaced, rule);
            create(&resource, &new);
            update(&resource, &old, &new);
        }
    }
}
