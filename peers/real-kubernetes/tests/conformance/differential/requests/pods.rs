//! Pods, which terminate gracefully.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;

const PODS: &str = "/api/v1/namespaces/<ns>/pods";
/// Used where the defaults of a spec do not matter.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

fn pod(name: &str, node: Option<&str>) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "nodeName": node,
    }})
}

fn at(name: &str) -> String {
    format!("{PODS}/{name}")
}

#[tokio::test]
async fn pods_come_and_go_alike() -> Result<()> {
    let mut script = Script::new("pods");
    script.get("list", PODS).save("start", "/metadata/resourceVersion");
    script.post("create", PODS, pod("a", None)).accept(METADATA);
    script
        .get("pending", &format!("{PODS}?fieldSelector=status.phase%3DPending,spec.nodeName%3D"))
        .accept("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let status = json!({"status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"},
    ]}});
    script.merge("run", &format!("{}/status", at("a")), status).accept(METADATA);
    let running = format!("{PODS}?fieldSelector=status.phase%3DRunning,status.podIP%3D10.0.0.1");
    script.get("running", &running).accept(TABLE);
    script.merge("label", &at("a"), json!({"metadata": {"labels": {"app": "b"}}})).accept(METADATA);
    script.delete("delete", &at("a")).accept(METADATA);
    script.get("gone", &at("a"));
    let watch = |query: &str| format!("{PODS}?watch=1&resourceVersion=<start>{query}");
    script.watch("watch", &watch(""), 5).accept(METADATA);
    let of_node = "&fieldSelector=spec.nodeName%3Dn";
    script.post("create-on-a-node", PODS, pod("b", Some("n"))).accept(METADATA);
    script.watch("watch-of-a-node", &watch(of_node), 1).accept(METADATA);
    script.delete("delete-now", &format!("{}?gracePeriodSeconds=0", at("b"))).accept(METADATA);
    script.get("gone-now", &at("b"));
    script.post("create-slow", PODS, pod("c", Some("n"))).accept(METADATA);
    script.delete("delete-slowly", &at("c")).accept(METADATA);
    script.get("going", &at("c")).accept(METADATA);
    script.delete("delete-faster", &format!("{}?gracePeriodSeconds=5", at("c"))).accept(METADATA);
    script.delete("delete-at-last", &format!("{}?gracePeriodSeconds=0", at("c"))).accept(METADATA);
    script.get("gone-at-last", &at("c"));
    script.post("without-containers", PODS, json!({"metadata": {"name": "d"}, "spec": {}}));
    script.post("without-spec", PODS, json!({"metadata": {"name": "e"}}));
    compare(script).await
}
