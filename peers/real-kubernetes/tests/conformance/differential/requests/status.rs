//! The separation of spec and status, and generations.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;
use crate::scene::deployment;

/// Used where the defaults of a kind do not matter.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

#[tokio::test]
async fn status_is_apart_alike() -> Result<()> {
    let mut script = Script::new("status");
    let all = "/apis/apps/v1/namespaces/<ns>/deployments";
    let (a, status) = (&format!("{all}/a"), &format!("{all}/a/status"));
    script.post("create", all, deployment(1)).save("first", "/metadata/resourceVersion");
    script.get("get", a);
    script.get("get-status", status);
    script.merge("patch-spec", a, json!({"spec": {"replicas": 2}}));
    script.merge("patch-label", a, json!({"metadata": {"labels": {"x": "y"}}}));
    script.merge("patch-status-here", a, json!({"status": {"replicas": 9}}));
    script.merge(
        "patch-status",
        status,
        json!({"status": {"replicas": 3, "observedGeneration": 2}}),
    );
    script.merge("patch-spec-there", status, json!({"spec": {"replicas": 5}}));
    script.merge("patch-label-there", status, json!({"metadata": {"labels": {"z": "w"}}}));
    script.merge(
        "patch-annotation-there",
        status,
        json!({"metadata": {"annotations": {"z": "w"}}}),
    );
    let conflict = json!({"metadata": {"resourceVersion": "<first>"}, "status": {"replicas": 4}});
    script.merge("patch-status-conflict", status, conflict);
    let mut whole = deployment(6);
    whole["status"] = json!({"replicas": 5});
    script.put("put-status", status, whole);
    script.put("put-spec", a, deployment(4));
    script.put("put-same", a, deployment(4));
    let mut stale = deployment(4);
    stale["metadata"]["resourceVersion"] = "<first>".into();
    script.put("put-status-conflict", status, stale);
    script.put(
        "put-status-none",
        &format!("{all}/none/status"),
        json!({"metadata": {"name": "none"}}),
    );
    script.merge("patch-status-none", &format!("{all}/none/status"), json!({"status": {}}));
    script.merge(
        "dry-run-status",
        &format!("{status}?dryRun=All"),
        json!({"status": {"replicas": 8}}),
    );
    script.get("after-all", a);
    script.get("table", status).accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    script.delete("delete-options-foreground", &format!("{a}?propagationPolicy=Foreground"));
    script.get("after-delete", a);
    compare(script).await
}

/// How a write to the status affects metadata depends on the kind.
#[tokio::test]
async fn metadata_are_taken_with_a_status_alike() -> Result<()> {
    let mut script = Script::new("status-metadata");
    let template = deployment(1)["spec"]["template"].clone();
    let workload = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    let mut named = workload.clone();
    named["serviceName"] = "s".into();
    let examples = [
        ("pod", "/api/v1/namespaces/<ns>/pods", json!({"spec": template["spec"]})),
        (
            "service",
            "/api/v1/namespaces/<ns>/services",
            json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        ),
        ("namespace", "/api/v1/namespaces", json!({})),
        ("node", "/api/v1/nodes", json!({})),
        (
            "quota",
            "/api/v1/namespaces/<ns>/resourcequotas",
            json!({"spec": {"hard": {"pods": "5"}}}),
        ),
        ("deployment", "/apis/apps/v1/namespaces/<ns>/deployments", json!({"spec": workload})),
        ("replicaset", "/apis/apps/v1/namespaces/<ns>/replicasets", json!({"spec": workload})),
        ("daemonset", "/apis/apps/v1/namespaces/<ns>/daemonsets", json!({"spec": workload})),
        ("statefulset", "/apis/apps/v1/namespaces/<ns>/statefulsets", json!({"spec": named})),
        (
            "budget",
            "/apis/policy/v1/namespaces/<ns>/poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1}}),
        ),
        (
            "ingress",
            "/apis/networking.k8s.io/v1/namespaces/<ns>/ingresses",
            json!({"spec": {
                "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
            }}),
        ),
        (
            "definition",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({"spec": {
                "group": "<ns>", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            }}),
        ),
    ];
    for (kind, path, mut object) in examples {
        let name = if kind == "definition" { "widgets.<ns>" } else { "<ns>-a" };
        object["metadata"] = json!({"name": name, "labels": {"l": "1"}});
        script.post(&format!("{kind}-create"), path, object).accept(METADATA);
        let patch = json!({"metadata": {
            "labels": {"l": "2"}, "annotations": {"a": "2"}, "finalizers": ["example.com/f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
        }});
        let status = format!("{path}/{name}/status");
        script.merge(&format!("{kind}-status"), &status, patch).accept(METADATA);
    }
    compare(script).await
}
