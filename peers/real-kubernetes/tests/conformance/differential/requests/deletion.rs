//! Deletes: immediate, graceful, with preconditions, and of collections.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"name": name}}})
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[tokio::test]
async fn objects_are_deleted_alike() -> Result<()> {
    let mut script = Script::new("delete");
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        let step = script.post(&format!("scene-{name}"), MAPS, map(name));
        if name == "a" {
            step.save("version", "/metadata/resourceVersion").save("uid", "/metadata/uid");
        }
    }
    let a = &at("a");
    script.delete("dry-run", &format!("{a}?dryRun=All"));
    script.delete("dry-run-wrong", &format!("{a}?dryRun=Some"));
    script.delete("dry-run-in-body", a).json(json!({"dryRun": ["All"]}));
    let wrong = |what: Value| json!({"preconditions": what});
    script.delete("wrong-uid", a).json(wrong(json!({"uid": "x"})));
    script.delete("wrong-version", a).json(wrong(json!({"resourceVersion": "1"})));
    script.delete("wrong-both", a).json(wrong(json!({"uid": "x", "resourceVersion": "1"})));
    script.delete("wrong-propagation", &format!("{a}?propagationPolicy=Sideways"));
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    script.delete("propagation-and-orphan", a).json(both);
    script.delete("no-json", a).text("{").content_type("application/json");
    script.delete("another-kind", a).json(json!({"kind": "Pod", "apiVersion": "v1"}));
    script.delete("as-text", a).text("{}").content_type("text/plain");
    script.delete("grace-of-no-number", &format!("{a}?gracePeriodSeconds=x"));
    let right = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": "<uid>", "resourceVersion": "<version>"},
    });
    script.delete("right", a).json(right);
    script.delete("gone", a);
    script
        .delete("meta-options", &at("b"))
        .json(json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}));
    script.delete("negative-grace", &format!("{}?gracePeriodSeconds=-1", at("c")));
    script.delete("background", &format!("{}?propagationPolicy=Background", at("d")));
    script.delete("orphan", &format!("{}?propagationPolicy=Orphan", at("e")));
    script.get("orphan-waits", &at("e"));
    script.delete("foreground", &format!("{}?propagationPolicy=Foreground", at("f")));
    script.get("foreground-waits", &at("f"));
    script.delete("in-no-namespace", "/api/v1/namespaces/none/configmaps/a");
    let many = |query: &str| format!("{MAPS}?{query}");
    script.delete("many-dry", &many("labelSelector=name+in+(g,h)&dryRun=All"));
    script.delete("many", &many("labelSelector=name+in+(g,h)"));
    script.get("many-left", &many("labelSelector=name+in+(g,h,i)"));
    script.delete("many-of-none", &many("labelSelector=name%3Dnone"));
    script.delete("many-bad-selector", &many("labelSelector=%3D"));
    script.delete("many-of-a-field", &many("fieldSelector=metadata.name%3Di"));
    script.delete("many-with-wrong-version", &many("resourceVersion=x"));
    compare(script).await
}

#[tokio::test]
async fn finalizers_hold_objects_alike() -> Result<()> {
    let mut script = Script::new("finalizers");
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/f", "example.com/g"]}});
    let a = &at("a");
    script.post("create", MAPS, held);
    script.delete("delete-dry", &format!("{a}?dryRun=All"));
    script.delete("delete", a);
    script.get("get", a);
    script.delete("delete-again", a);
    script.merge("change", a, json!({"data": {"k": "v"}}));
    let more =
        json!({"metadata": {"finalizers": ["example.com/f", "example.com/g", "example.com/h"]}});
    script.merge("one-more", a, more);
    script.merge("undelete", a, json!({"metadata": {"deletionTimestamp": null}}));
    script.merge("one-less", a, json!({"metadata": {"finalizers": ["example.com/g"]}}));
    script.merge("none-left", a, json!({"metadata": {"finalizers": []}}));
    script.get("gone", a);
    let pod = json!({"metadata": {"name": "p", "finalizers": ["example.com/f"]}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
    }});
    let pods = "/api/v1/namespaces/<ns>/pods";
    script.post("pod", pods, pod);
    script.delete("pod-delete", &format!("{pods}/p"));
    script.json_patch(
        "pod-goes",
        &format!("{pods}/p"),
        json!([{"op": "remove", "path": "/metadata/finalizers"}]),
    );
    script.get("pod-gone", &format!("{pods}/p"));
    compare(script).await
}
