//! Events as a stream: the IP address of each pod, as a network agent needs it.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Event, SharedInformerFactory};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    let mut pod = cluster::pod("default", "web-0", &json!({}));
    pod["spec"]["nodeName"] = "worker-1".into();
    pod["status"] = json!({"podIP": "10.244.0.7"});
    cluster.given([pod])?;

    let node = std::env::var("NODE_NAME").unwrap_or_else(|_| "worker-1".to_owned());
    let factory = SharedInformerFactory::new(cluster.client());
    let pods = factory.builder_for::<Pod>().fields(format!("spec.nodeName={node}")).build();
    let mut events = pods.events();
    factory.start();

    let mut addresses = HashMap::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Added { object: pod, .. }
            | Event::Updated { new: pod, .. }
            | Event::Resynced(pod) => {
                addresses.insert(pod.key().clone(), pod.field::<String>("status.podIP")?);
            }
            Event::Deleted(pod) => {
                addresses.remove(pod.key());
            }
            Event::Synced => {
                println!("complete: {addresses:?}");
                // A real agent runs indefinitely; the example ends here.
                factory.stop();
            }
        }
    }
    Ok(())
}
