//! Pods of a given size: containers with environment, probes, resources and mounts, as in real
//! clusters, and an annotation that fills the rest.

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) fn bodies(count: usize, bytes: usize) -> Vec<Bytes> {
    (0..count).map(|at| body(at, bytes)).collect()
}

/// Returns a pod's JSON of approximately `bytes` bytes.
pub(crate) fn body(at: usize, bytes: usize) -> Bytes {
    let mut pod = pod(at);
    let rest = bytes.saturating_sub(pod.to_string().len() + 20);
    pod["metadata"]["annotations"]["padding"] = json!("x".repeat(rest));
    pod.to_string().into()
}

pub(crate) fn name(at: usize) -> String {
    format!("app-{}-{at:06}", at % 200)
}

fn pod(at: usize) -> Value {
    let app = format!("app-{}", at % 200);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name(at),
            "labels": {"app": app, "tier": "backend", "pod-template-hash": format!("{at:x}")},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app,
                "uid": format!("{at:08x}-0000-4000-8000-000000000000"),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": format!("node-{}", at % 500),
            "serviceAccountName": "default",
            "containers": [container("main", at), container("sidecar", at)],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf"}}],
        },
    })
}

fn container(name: &str, at: usize) -> Value {
    let env: Vec<Value> = (0..10)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("{at}-{n}")}))
        .collect();
    let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10});
    json!({
        "name": name,
        "image": format!("registry.example.com/team/{name}:v1.{at}"),
        "args": ["--port=8080", "--log-level=info"],
        "env": env,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "conf", "mountPath": "/etc/conf"}],
    })
}
