//! One object of each common kind, and how a server completes it.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "a"}})
}

/// The name of a kind, the path of its collection, and an object without the fields that are the same for all.
type Example = (&'static str, &'static str, Value);

fn core() -> Vec<Example> {
    vec![
        ("pod", "/api/v1/namespaces/<ns>/pods", json!({"spec": template()["spec"]})),
        (
            "service",
            "/api/v1/namespaces/<ns>/services",
            json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        ),
        ("secret", "/api/v1/namespaces/<ns>/secrets", json!({"stringData": {"k": "v"}})),
        ("serviceaccount", "/api/v1/namespaces/<ns>/serviceaccounts", json!({})),
        ("endpoints", "/api/v1/namespaces/<ns>/endpoints", json!({"subsets": []})),
        ("limitrange", "/api/v1/namespaces/<ns>/limitranges", json!({"spec": {"limits": []}})),
        (
            "resourcequota",
            "/api/v1/namespaces/<ns>/resourcequotas",
            json!({"spec": {"hard": {"pods": "5"}}}),
        ),
        (
            "claim",
            "/api/v1/namespaces/<ns>/persistentvolumeclaims",
            json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}),
        ),
    ]
}

fn workloads() -> Vec<Example> {
    let job = json!({"template": {"spec": {
        "containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never",
    }}});
    vec![
        ("podtemplate", "/api/v1/namespaces/<ns>/podtemplates", json!({"template": template()})),
        (
            "controller",
            "/api/v1/namespaces/<ns>/replicationcontrollers",
            json!({"spec": {
                "selector": {"app": "a"}, "template": template(),
            }}),
        ),
        (
            "deployment",
            "/apis/apps/v1/namespaces/<ns>/deployments",
            json!({"spec": {"selector": selector(), "template": template()}}),
        ),
        (
            "replicaset",
            "/apis/apps/v1/namespaces/<ns>/replicasets",
            json!({"spec": {"selector": selector(), "template": template()}}),
        ),
        (
            "daemonset",
            "/apis/apps/v1/namespaces/<ns>/daemonsets",
            json!({"spec": {"selector": selector(), "template": template()}}),
        ),
        (
            "statefulset",
            "/apis/apps/v1/namespaces/<ns>/statefulsets",
            json!({"spec": {
                "selector": selector(), "template": template(), "serviceName": "s",
            }}),
        ),
        ("job", "/apis/batch/v1/namespaces/<ns>/jobs", json!({"spec": job.clone()})),
        (
            "cronjob",
            "/apis/batch/v1/namespaces/<ns>/cronjobs",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
        ),
    ]
}

fn others() -> Vec<Example> {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    vec![
        (
            "ingress",
            "/apis/networking.k8s.io/v1/namespaces/<ns>/ingresses",
            json!({"spec": {
                "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
            }}),
        ),
        (
            "networkpolicy",
            "/apis/networking.k8s.io/v1/namespaces/<ns>/networkpolicies",
            json!({"spec": {"podSelector": {}}}),
        ),
        (
            "lease",
            "/apis/coordination.k8s.io/v1/namespaces/<ns>/leases",
            json!({"spec": {"holderIdentity": "me"}}),
        ),
        (
            "role",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/<ns>/roles",
            json!({"rules": rules}),
        ),
        (
            "rolebinding",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/<ns>/rolebindings",
            json!({
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
                "subjects": [{"kind": "User", "name": "u"}],
            }),
        ),
        (
            "budget",
            "/apis/policy/v1/namespaces/<ns>/poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1, "selector": selector()}}),
        ),
        (
            "autoscaler",
            "/apis/autoscaling/v2/namespaces/<ns>/horizontalpodautoscalers",
            json!({"spec": {
                "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            }}),
        ),
        (
            "slice",
            "/apis/discovery.k8s.io/v1/namespaces/<ns>/endpointslices",
            json!({"addressType": "IPv4", "endpoints": []}),
        ),
        (
            "event",
            "/api/v1/namespaces/<ns>/events",
            json!({
                "involvedObject": {"kind": "Pod", "name": "a", "namespace": "<ns>"}, "reason": "R", "message": "M", "type": "Normal",
            }),
        ),
    ]
}

fn of_the_cluster() -> Vec<Example> {
    vec![
        ("node", "/api/v1/nodes", json!({})),
        (
            "volume",
            "/api/v1/persistentvolumes",
            json!({"spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"},
            }}),
        ),
        (
            "storageclass",
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"provisioner": "example.com/p"}),
        ),
        ("priorityclass", "/apis/scheduling.k8s.io/v1/priorityclasses", json!({"value": 5})),
        ("clusterrole", "/apis/rbac.authorization.k8s.io/v1/clusterroles", json!({"rules": []})),
        (
            "ingressclass",
            "/apis/networking.k8s.io/v1/ingressclasses",
            json!({"spec": {"controller": "example.com/c"}}),
        ),
        ("runtimeclass", "/apis/node.k8s.io/v1/runtimeclasses", json!({"handler": "h"})),
        ("csidriver", "/apis/storage.k8s.io/v1/csidrivers", json!({"spec": {}})),
    ]
}

#[tokio::test]
async fn objects_of_all_kinds_are_treated_alike() -> Result<()> {
    let mut script = Script::new("kinds");
    let examples = [core(), workloads(), others(), of_the_cluster()];
    for (kind, path, mut object) in examples.into_iter().flatten() {
        object["metadata"] = json!({"name": "compared-a"});
        let one = format!("{path}/compared-a");
        script.post(&format!("{kind}-create"), path, object);
        script.get(&format!("{kind}-table"), &one).accept(TABLE);
        script.merge(&format!("{kind}-label"), &one, json!({"metadata": {"labels": {"x": "y"}}}));
        script.delete(&format!("{kind}-delete"), &format!("{one}?gracePeriodSeconds=0"));
        script.get(&format!("{kind}-after"), &one);
    }
    compare(script).await
}
