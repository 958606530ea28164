//! Subresources of pods.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;

const PODS: &str = "/api/v1/namespaces/<ns>/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/<ns>/poddisruptionbudgets";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}},
           "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test]
async fn subresources_respond_alike() -> Result<()> {
    let mut script = Script::new("subresources");
    for name in ["a", "b", "c"] {
        script.post(&format!("scene-{name}"), PODS, pod(name));
    }
    let bind =
        |name: &str, node: &str| json!({"metadata": {"name": name}, "target": {"name": node}});
    script.post("bind", &format!("{PODS}/a/binding"), bind("a", "n1"));
    script.post("bind-again", &format!("{PODS}/a/binding"), bind("a", "n2"));
    script.post("bind-another", &format!("{PODS}/a/binding"), bind("b", "n2"));
    script.post("bind-none", &format!("{PODS}/none/binding"), bind("none", "n2"));
    script.post("bind-dry", &format!("{PODS}/b/binding?dryRun=All"), bind("b", "n2"));
    script.post("bindings", "/api/v1/namespaces/<ns>/bindings", bind("b", "n2"));
    script.get("bindings-list", "/api/v1/namespaces/<ns>/bindings");
    script.get("binding-get", &format!("{PODS}/a/binding"));
    let evict = |name: &str| format!("{PODS}/{name}/eviction");
    script.post("evict-another", &evict("a"), named("b"));
    script.post("evict-none", &evict("none"), named("none"));
    let ready = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True"},
    ]}});
    script.merge("scene-ready", &format!("{PODS}/b/status"), ready);
    let budget = json!({"metadata": {"name": "x"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "b"}},
    }});
    script.post("scene-budget", BUDGETS, budget);
    script.post("evict-unprocessed", &evict("b"), named("b"));
    let status = |allowed: i64| {
        json!({"status": {
            "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1,
        }})
    };
    let budget_status = format!("{BUDGETS}/x/status");
    script.merge("scene-exhausted", &budget_status, status(0));
    script.post("evict-exhausted", &evict("b"), named("b"));
    script.merge("scene-allowed", &budget_status, status(1));
    script.post("evict-dry", &format!("{}?dryRun=All", evict("b")), named("b"));
    script.get("budget-after-dry", &format!("{BUDGETS}/x"));
    script.post("evict-pending", &evict("c"), named("c"));
    script.get("pending-gone", &format!("{PODS}/c"));
    script.get("log-none", &format!("{PODS}/none/log"));
    script.get("log-container", &format!("{PODS}/a/log?container=x"));
    script.get("log-options", &format!("{PODS}/a/log?tailLines=-1&limitBytes=0&sinceSeconds=0"));
    script.get("log-no-number", &format!("{PODS}/a/log?tailLines=x"));
    script.send("exec-put", "PUT", &format!("{PODS}/a/exec"));
    compare(script).await
}
