//! Server-side apply, and the managers of fields.

use anyhow::Result;
use serde_json::{Value, json};

use super::MAPS;
use crate::differential::run::compare;
use crate::differential::script::Script;

const APPLY: &str = "application/apply-patch+yaml";
const NETWORK_POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/<ns>/networkpolicies";

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[tokio::test]
async fn configurations_are_applied_alike() -> Result<()> {
    let mut script = Script::new("apply");
    let a = format!("{MAPS}/a");
    let mut apply = |name: &str, query: &str, config: Value| {
        script.merge(name, &format!("{a}?{query}"), config).content_type(APPLY);
    };
    apply("create", "fieldManager=one", map(&json!({"x": "1", "y": "1"})));
    apply("again", "fieldManager=one", map(&json!({"x": "1", "y": "1"})));
    apply("shared", "fieldManager=two", map(&json!({"y": "1", "z": "1"})));
    apply("conflict", "fieldManager=two", map(&json!({"x": "2"})));
    apply("conflicts", "fieldManager=two", map(&json!({"x": "2", "y": "2"})));
    apply("forced", "fieldManager=two&force=true", map(&json!({"x": "2", "z": "1"})));
    apply("not-forced", "fieldManager=one&force=false", map(&json!({"x": "3"})));
    apply("less", "fieldManager=two", map(&json!({"x": "2"})));
    apply("dry-run", "fieldManager=two&dryRun=All", map(&json!({"x": "4"})));
    apply("null", "fieldManager=three", map(&json!({"n": null})));
    apply("no-manager", "", map(&json!({"x": "1"})));
    apply(
        "unknown-field",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a"}, "dota": {}}),
    );
    apply(
        "other-kind",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "a"}}),
    );
    apply("no-kind", "fieldManager=one", json!({"metadata": {"name": "a"}}));
    apply(
        "managed",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "managedFields": [{"manager": "one"}]}}),
    );
    apply(
        "other-name",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "b"}}),
    );
    apply(
        "old-version",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "resourceVersion": "1"}}),
    );
    apply(
        "other-uid",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "none"}}),
    );
    apply(
        "labels",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"l": "1"}, "annotations": {"n": "1"},
            "finalizers": ["example.com/f"]}}),
    );
    apply(
        "no-labels",
        "fieldManager=one",
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {}}}),
    );
    script.merge("list", &format!("{a}?fieldManager=one"), json!([])).content_type(APPLY);
    script
        .send("yaml", "PATCH", &format!("{a}?fieldManager=one"))
        .content_type(APPLY)
        .text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  w: \"1\"\n");
    script.get("read", &a);
    compare(script).await
}

#[tokio::test]
async fn plain_writes_are_tracked_alike() -> Result<()> {
    let mut script = Script::new("apply-tracked");
    let a = format!("{MAPS}/a");
    let labelled = json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"x": "1"}});
    script.post("create", &format!("{MAPS}?fieldManager=one"), labelled);
    script.get("created", &a);
    script.get("list", MAPS);
    script.merge("patch", &format!("{a}?fieldManager=two"), json!({"data": {"x": "2", "y": "1"}}));
    script.merge("same", &format!("{a}?fieldManager=three"), json!({"data": {"x": "2"}}));
    script.json_patch(
        "remove",
        &format!("{a}?fieldManager=one"),
        json!([{"op": "remove", "path": "/data/y"}]),
    );
    script.put(
        "put",
        &format!("{a}?fieldManager=four"),
        json!({"metadata": {"name": "a"}, "data": {"z": "1"}}),
    );
    script
        .merge("conflict", &format!("{a}?fieldManager=five"), map(&json!({"z": "2"})))
        .content_type(APPLY);
    script
        .merge("agreed", &format!("{a}?fieldManager=five"), map(&json!({"z": "1"})))
        .content_type(APPLY);
    script.json_patch(
        "reset",
        &a,
        json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]),
    );
    script.merge("untracked", &format!("{a}?fieldManager=six"), json!({"data": {"z": "3"}}));
    script
        .merge("before", &format!("{a}?fieldManager=five"), map(&json!({"z": "4"})))
        .content_type(APPLY);
    script
        .merge("after", &format!("{a}?fieldManager=five&force=true"), map(&json!({"z": "4"})))
        .content_type(APPLY);
    compare(script).await
}

#[tokio::test]
async fn last_applied_configurations_are_upgraded_alike() -> Result<()> {
    let mut script = Script::new("apply-upgrade");
    let a = format!("{MAPS}/a");
    let last = map(&json!({"x": "1", "y": "1"}));
    let mut object = last.clone();
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    script.post("create", &format!("{MAPS}?fieldManager=kubectl-client-side-apply"), object);
    script.merge("edit", &format!("{a}?fieldManager=edit"), json!({"data": {"y": "2"}}));
    let path = format!("{a}?fieldManager=kubectl");
    script.merge("conflict", &path, map(&json!({"x": "3", "y": "3"}))).content_type(APPLY);
    script.merge("upgrade", &path, map(&json!({"x": "3", "y": "2"}))).content_type(APPLY);
    script.merge("again", &path, map(&json!({"x": "3"}))).content_type(APPLY);
    compare(script).await
}

#[tokio::test]
async fn lists_are_merged_alike() -> Result<()> {
    let mut script = Script::new("apply-lists");
    let policy = |spec: Value| json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": spec});
    let path = |manager: &str| format!("{NETWORK_POLICIES}/p?fieldManager={manager}");
    let first =
        policy(json!({"podSelector": {"matchLabels": {"a": "1"}}, "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}));
    script.merge("atomic", &path("one"), first).content_type(APPLY);
    let second = policy(json!({"podSelector": {"matchLabels": {"b": "1"}}}));
    script.merge("atomic-conflict", &path("two"), second).content_type(APPLY);

    let account = |secrets: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}, "secrets": secrets});
    let path =
        |manager: &str| format!("/api/v1/namespaces/<ns>/serviceaccounts/s?fieldManager={manager}");
    let secrets =
        |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    script.merge("keyed", &path("one"), account(secrets(&["a", "b"]))).content_type(APPLY);
    script.merge("keyed-more", &path("two"), account(secrets(&["c", "b"]))).content_type(APPLY);
    script.merge("keyed-less", &path("one"), account(secrets(&["b"]))).content_type(APPLY);
    script.merge("keyed-twice", &path("one"), account(secrets(&["b", "b"]))).content_type(APPLY);
    script.merge("keyed-none", &path("two"), account(secrets(&[]))).content_type(APPLY);
    compare(script).await
}
