//! Objects are created, read, updated and deleted.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test]
async fn objects_are_created_alike() -> Result<()> {
    let mut script = Script::new("create");
    script.post("plain", MAPS, map("a"));
    script.get("get", &at("a"));
    script.get("get-pretty", &format!("{}?pretty=true", at("a")));
    script.get("get-any-version", &format!("{}?resourceVersion=0", at("a")));
    script.get("get-version-in-the-future", &format!("{}?resourceVersion=999999999", at("a")));
    script.get("get-version-of-no-number", &format!("{}?resourceVersion=x", at("a")));
    script.get("get-none", &at("none"));
    script.post("again", MAPS, map("a"));
    script.post("without-kind", MAPS, json!({"metadata": {"name": "implied"}}));
    script.post("without-name", MAPS, json!({"metadata": {}}));
    script.post("without-metadata", MAPS, json!({"data": {"a": "b"}}));
    script.post("generated-name", MAPS, json!({"metadata": {"generateName": "made-"}}));
    let both = json!({"metadata": {"generateName": "made-", "name": "given"}});
    script.post("generated-name-not-needed", MAPS, both);
    script.post("generated-name-invalid", MAPS, json!({"metadata": {"generateName": "Made_"}}));
    let long = "l".repeat(80);
    script.post("generated-name-long", MAPS, json!({"metadata": {"generateName": long}}));
    let versioned = json!({"metadata": {"name": "versioned", "resourceVersion": "5"}});
    script.post("with-a-version-dry", &format!("{MAPS}?dryRun=All"), versioned.clone());
    script.post("with-a-version", MAPS, versioned);
    let zero = json!({"metadata": {"name": "version-zero", "resourceVersion": "0"}});
    script.post("with-version-zero", MAPS, zero);
    let own = json!({"metadata": {
        "name": "own", "uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3, "selfLink": "/x",
    }});
    script.post("with-what-is-the-servers", MAPS, own);
    let elsewhere = json!({"metadata": {"name": "b", "namespace": "default"}});
    script.post("for-another-namespace", MAPS, elsewhere);
    script.post("in-no-namespace", "/api/v1/namespaces/none/configmaps", map("a"));
    let nulls = json!({"metadata": {
        "name": "nulls", "labels": null, "annotations": {"a": null}, "creationTimestamp": null,
    }, "data": null});
    script.post("with-nulls", MAPS, nulls);
    let empties = json!({"metadata": {
        "name": "empties", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": [],
    }, "data": {}});
    script.post("with-empties", MAPS, empties);
    script.post("dry-run", &format!("{MAPS}?dryRun=All"), map("dry"));
    script.get("dry-run-left-nothing", &at("dry"));
    script.post("dry-run-again", &format!("{MAPS}?dryRun=All"), map("a"));
    script.post("dry-run-wrong", &format!("{MAPS}?dryRun=Some"), map("dry"));
    script.post("dry-run-empty", &format!("{MAPS}?dryRun="), map("dry"));
    script.post("at-a-name", &at("a"), map("a"));
    script.post("with-a-manager", &format!("{MAPS}?fieldManager=me"), map("managed"));
    let manager = "m".repeat(129);
    script.post("with-a-long-manager", &format!("{MAPS}?fieldManager={manager}"), map("managed-2"));
    script.post("immutable", MAPS, json!({"metadata": {"name": "fixed"}, "immutable": true}));
    compare(script).await
}

#[tokio::test]
async fn objects_are_updated_alike() -> Result<()> {
    let mut script = Script::new("update");
    let created = script.post("create", MAPS, map("a"));
    created.save("first", "/metadata/resourceVersion").save("uid", "/metadata/uid");
    let changed = |version: &str, value: &str| json!({"metadata": {"name": "a", "resourceVersion": version}, "data": {"k": value}});
    script.put("from-its-version", &at("a"), changed("<first>", "2"));
    script.put("conflict", &at("a"), changed("<first>", "3"));
    script.put("without-a-version", &at("a"), json!({"metadata": {"name": "a"}}));
    script.put("version-zero", &at("a"), changed("0", "4"));
    script.put("version-of-no-number", &at("a"), changed("x", "4"));
    script.put("version-in-the-future", &at("a"), changed("999999999", "4"));
    script.put("unchanged", &at("a"), changed("", "4"));
    script.put("none", &at("none"), map("none"));
    script.put("another-name", &at("a"), map("b"));
    script.put("no-name", &at("a"), json!({"metadata": {}}));
    script.put("another-kind", &at("a"), json!({"kind": "Secret", "metadata": {"name": "a"}}));
    let uid = json!({"metadata": {"name": "a", "uid": "another"}});
    script.put("another-uid", &at("a"), uid);
    let uid = json!({"metadata": {"name": "a", "uid": "<uid>"}, "data": {"k": "5"}});
    script.put("its-uid", &at("a"), uid);
    let place = json!({"metadata": {"name": "a", "namespace": "default"}});
    script.put("another-namespace", &at("a"), place);
    script.put("dry-run", &format!("{}?dryRun=All", at("a")), changed("", "dry"));
    script.get("dry-run-left-nothing", &at("a"));
    let times = json!({"metadata": {
        "name": "a", "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }});
    script.put("with-times", &at("a"), times);
    script.put("in-no-namespace", "/api/v1/namespaces/none/configmaps/a", map("a"));
    let fixed = json!({"metadata": {"name": "fixed"}, "immutable": true, "data": {"a": "1"}});
    script.post("fixed-create", MAPS, fixed);
    script.put("fixed", &at("fixed"), json!({"metadata": {"name": "fixed"}, "data": {"a": "2"}}));
    compare(script).await
}

#[tokio::test]
async fn objects_are_patched_alike() -> Result<()> {
    let mut script = Script::new("patch");
    let created = script.post("create", MAPS, map("a"));
    created.save("first", "/metadata/resourceVersion");
    let a = &at("a");
    script.merge(
        "merge",
        a,
        json!({"data": {"k": null, "l": "1"}, "metadata": {"labels": {"x": "y"}}}),
    );
    script.merge("merge-nothing", a, json!({}));
    script.merge("merge-conflict", a, json!({"metadata": {"resourceVersion": "<first>"}}));
    script.merge(
        "merge-no-version",
        a,
        json!({"metadata": {"resourceVersion": null}, "data": {"m": "1"}}),
    );
    script.merge("merge-name", a, json!({"metadata": {"name": "b"}}));
    script.merge("merge-uid", a, json!({"metadata": {"uid": "other"}}));
    script.merge("merge-list", a, json!([1]));
    script.merge("merge-text", a, json!("text"));
    script.merge("merge-wrong-type", a, json!({"data": {"k": 1}}));
    script.merge("merge-wrong-labels", a, json!({"metadata": {"labels": [1]}}));
    script.merge("merge-invalid-label", a, json!({"metadata": {"labels": {"a b": "c"}}}));
    script.merge("merge-kind", a, json!({"kind": "Secret"}));
    script.merge("merge-none", &at("none"), json!({"data": {}}));
    script.merge("merge-dry-run", &format!("{a}?dryRun=All"), json!({"data": {"dry": "run"}}));
    script.merge("merge-no-json", a, json!({})).text("{");
    script.merge("merge-empty", a, json!({})).text("");
    script.merge("merge-collection", MAPS, json!({}));
    let add = json!([{"op": "add", "path": "/data/j", "value": "1"}]);
    script.json_patch("json-add", a, add);
    let test = json!([{"op": "test", "path": "/data/j", "value": "1"}, {"op": "remove", "path": "/data/j"}]);
    script.json_patch("json-test", a, test.clone());
    script.json_patch("json-test-fails", a, test);
    script.json_patch("json-remove-none", a, json!([{"op": "remove", "path": "/data/none"}]));
    script.json_patch(
        "json-replace-none",
        a,
        json!([{"op": "replace", "path": "/data/none", "value": "x"}]),
    );
    script.json_patch(
        "json-add-to-none",
        a,
        json!([{"op": "add", "path": "/none/at/all", "value": "x"}]),
    );
    script.json_patch("json-unknown-op", a, json!([{"op": "jump", "path": "/data"}]));
    script.json_patch("json-no-op", a, json!([{"path": "/data"}]));
    script.json_patch("json-nothing", a, json!([]));
    script.json_patch("json-object", a, json!({"op": "add"}));
    script.json_patch("json-wrong-type", a, json!([{"op": "add", "path": "/data", "value": [1]}]));
    let test_null = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]},
    ]);
    script.json_patch("json-test-null", a, test_null);
    script.json_patch(
        "json-version",
        a,
        json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": "<first>"}]),
    );
    script.merge("unknown-patch", a, json!({})).content_type("application/x-patch+json");
    script.merge("json-as-patch", a, json!({})).content_type("application/json");
    for (name, patch) in [
        ("strategic", json!({"data": {"s": "1"}})),
        ("strategic-null", json!({"data": {"s": null}})),
        ("strategic-replace", json!({"data": {"$patch": "replace", "t": "1"}})),
        (
            "strategic-finalizers",
            json!({"metadata": {
                "finalizers": ["example.com/g"],
                "$setElementOrder/finalizers": ["example.com/g", "example.com/f"],
            }}),
        ),
        (
            "strategic-delete",
            json!({"metadata": {
                "$deleteFromPrimitiveList/finalizers": ["example.com/g"],
            }}),
        ),
        ("strategic-retain", json!({"data": {"$retainKeys": ["u"], "u": "1"}})),
        ("strategic-retain-wrong", json!({"data": {"$retainKeys": ["u"], "v": "1"}})),
        ("strategic-no-order", json!({"metadata": {"$setElementOrder": []}})),
        ("strategic-no-list", json!({"metadata": {"$setElementOrder/finalizers": "a"}})),
        ("strategic-unknown", json!({"$setElementOrder/nothing": ["a"]})),
        ("strategic-array", json!([])),
    ] {
        script.merge(name, a, patch).content_type("application/strategic-merge-patch+json");
    }
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}});
    let apply = "application/apply-patch+yaml";
    script
        .merge("apply", &format!("{}?fieldManager=me", at("applied")), applied)
        .content_type(apply);
    script.merge("force", &format!("{a}?force=true"), json!({}));
    compare(script).await
}
