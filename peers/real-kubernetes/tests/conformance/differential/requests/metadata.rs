//! Validation of metadata.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

#[tokio::test]
async fn metadata_are_checked_alike() -> Result<()> {
    let mut script = Script::new("metadata");
    let mut of = |name: &str, metadata: Value| {
        script.post(name, MAPS, json!({"metadata": metadata}));
    };
    for (name, value) in [
        ("name-with-capitals", "Aa"),
        ("name-with-underscore", "a_b"),
        ("name-with-slash", "a/b"),
        ("name-with-percent", "a%b"),
        ("name-of-a-dot", "."),
        ("name-of-two-dots", ".."),
        ("name-with-dots", "a.b.c"),
        ("name-with-dash-first", "-a"),
        ("name-with-a-space", "a b"),
        ("name-with-accents", "é"),
    ] {
        of(name, json!({"name": value}));
    }
    of("name-long", json!({"name": "n".repeat(254)}));
    of("name-just-long-enough", json!({"name": "n".repeat(253)}));
    let mut label = |name: &str, key: &str, value: &str| {
        of(name, json!({"name": name, "labels": {key: value}}));
    };
    label("label-with-prefix", "example.com/a", "b");
    label("label-empty-value", "a", "");
    label("label-empty-key", "", "b");
    label("label-with-space", "a b", "c");
    label("label-value-with-space", "a", "b c");
    label("label-long-value", "a", &"v".repeat(64));
    label("label-long-key", &"k".repeat(64), "v");
    label("label-two-slashes", "a/b/c", "v");
    label("label-bad-prefix", "A_b/c", "v");
    label("label-empty-prefix", "/c", "v");
    of(
        "annotation-with-space",
        json!({"name": "annotation-with-space", "annotations": {"a b": "c d"}}),
    );
    of(
        "annotation-capitals",
        json!({"name": "annotation-capitals", "annotations": {"Ab/C": "c d"}}),
    );
    let large = json!({"name": "annotation-large", "annotations": {"a": "x".repeat(262_145)}});
    of("annotation-large", large);
    of(
        "finalizer-qualified",
        json!({"name": "finalizer-qualified", "finalizers": ["example.com/f"]}),
    );
    of("finalizer-plain", json!({"name": "finalizer-plain", "finalizers": ["plain"]}));
    of("finalizer-invalid", json!({"name": "finalizer-invalid", "finalizers": ["a b"]}));
    of("finalizer-empty", json!({"name": "finalizer-empty", "finalizers": [""]}));
    let owner = |owner: Value| json!([owner]);
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    of("owner", json!({"name": "owner", "ownerReferences": owner(whole.clone())}));
    of(
        "owner-of-nothing",
        json!({"name": "owner-of-nothing", "ownerReferences": owner(json!({}))}),
    );
    let mut event = whole.clone();
    event["kind"] = "Event".into();
    of("owner-event", json!({"name": "owner-event", "ownerReferences": owner(event)}));
    let mut first = whole.clone();
    first["controller"] = true.into();
    let mut second = first.clone();
    second["uid"] = "v".into();
    of(
        "owner-two-controllers",
        json!({"name": "owner-two-controllers", "ownerReferences": [first, second]}),
    );
    of("owner-twice", json!({"name": "owner-twice", "ownerReferences": [whole.clone(), whole]}));
    let many = json!({"name": "A", "labels": {"a b": "c d"}, "annotations": {"x y": ""}, "finalizers": ["?"]});
    of("many-things", many);
    of("generation-negative", json!({"name": "generation-negative", "generation": -1}));
    of("unknown-fields", json!({"name": "unknown-fields", "colour": "blue"}));
    let mut key = |name: &str, data: Value| {
        script.post(name, MAPS, json!({"metadata": {"name": name}, "data": data}));
    };
    key("key-with-space", json!({"a b": "c"}));
    key("key-of-dots", json!({"..": "c"}));
    let node = |name: &str| json!({"metadata": {"name": name}});
    script.post("namespace-with-dots", "/api/v1/namespaces", node("a.b"));
    script.post("namespace-long", "/api/v1/namespaces", node(&"n".repeat(64)));
    script.post(
        "service-with-digit",
        "/api/v1/namespaces/<ns>/services",
        json!({
            "metadata": {"name": "1a"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
        }),
    );
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/<ns>/roles";
    script.post("role-with-colon", role, json!({"metadata": {"name": "a:b"}, "rules": []}));
    script.post("role-with-slash", role, json!({"metadata": {"name": "a/b"}, "rules": []}));
    compare(script).await
}
