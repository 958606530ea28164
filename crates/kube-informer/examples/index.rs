//! Queries the cache by a label, a field or a function.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Selector, SharedInformerFactory};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.given(pods())?;
    let factory = SharedInformerFactory::new(cluster.client());
    let pods = factory.informer::<Pod>();

    let by_app = pods.index_by_label("app");
    let by_node = pods.index_by_field("spec.nodeName")?;
    let by_image = pods.index_by_field("spec.containers[*].image")?;
    let by_restarts = pods.index_by("restarts", |pod| {
        let counts: Vec<u32> = pod.field("status.containerStatuses[*].restartCount").ok()??;
        Some(if counts.iter().sum::<u32>() > 10 { "many" } else { "few" })
    })?;

    factory.start();
    factory.wait_for_sync().await?;

    for node in by_node.values() {
        println!("{node} runs {} pods", by_node.get(&node).len());
    }
    for pod in by_app.get("web") {
        println!("{} is on track {:?}", pod.key(), pod.labels().get("track"));
    }
    println!("nginx 1.29 runs in {:?}", by_image.keys("nginx:1.29"));
    println!("{} pods restart all the time", by_restarts.get("many").len());

    let lister = pods.lister();
    println!("web-0: {:?}", lister.get(("default", "web-0")).is_some());
    println!("few restarts: {} pods", lister.by_index("restarts", "few")?.len());
    println!("web: {} pods", lister.select(&Selector::label("app", "web")).len());

    let canaries = lister.namespace("default").select(&"app=web,track in (canary,beta)".parse()?);
    println!(
        "{} canaries, read at one version: {}",
        canaries.len(),
        !canaries.resource_version().is_empty()
    );
    factory.shutdown().await;
    Ok(())
}

fn pods() -> Vec<serde_json::Value> {
    let pod = |name: &str, labels: serde_json::Value, node: &str, restarts: u32| {
        let mut pod = cluster::pod("default", name, &labels);
        pod["spec"]["nodeName"] = node.into();
        pod["status"] = json!({"containerStatuses": [{"name": "main", "restartCount": restarts}]});
        pod
    };
    vec![
        pod("web-0", json!({"app": "web", "track": "stable"}), "node-a", 0),
        pod("web-1", json!({"app": "web", "track": "canary"}), "node-b", 99),
        pod("db-0", json!({"app": "db"}), "node-b", 1),
    ]
}
