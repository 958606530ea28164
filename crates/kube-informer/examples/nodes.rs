//! An async handler with a filter: an alert for every node that is not ready.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use k8s_openapi::api::core::v1::Node;
use kube_informer::{Event, Object, SharedInformerFactory};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.given([node("well", "True"), node("ill", "False")])?;
    let factory = SharedInformerFactory::new(cluster.client());
    let nodes = factory.informer::<Node>();
    let mut events = nodes.handler().filter(not_ready).only_changes().stream();
    factory.start();

    while let Some(event) = events.next().await {
        match event {
            Event::Added { object: node, .. } => alert(node.name(), true).await?,
            Event::Deleted(node) => alert(node.name(), false).await?, // ready again, or gone
            Event::Synced => factory.stop(), // an operator goes on for ever; an example ends here
            Event::Updated { .. } | Event::Resynced(_) => {}
        }
    }
    Ok(())
}

fn not_ready(node: &Object<Node>) -> bool {
    let Ok(node) = node.decode() else { return false };
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status != "True")
}

#[expect(clippy::unused_async, reason = "a real one posts")]
async fn alert(node: &str, firing: bool) -> anyhow::Result<()> {
    println!("POST /api/v2/alerts {node} firing: {firing}");
    Ok(())
}

fn node(name: &str, ready: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    })
}
