//! The classic example: prints the events of pods, then lists them from the cache.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::SharedInformerFactory;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    let client = cluster.client(); // elsewhere: kube_informer::client(Config::infer().await?)?
    let factory = SharedInformerFactory::builder(client).resync(Duration::from_secs(1)).build();
    let pods = factory.informer::<Pod>();

    pods.handler()
        .on_add(|pod, _| println!("Add: {}", pod.name()))
        .on_update(|old, new| {
            let (before, after) = (old.resource_version(), new.resource_version());
            println!("Update: {}, old RV: {before}, new RV: {after}", new.name());
        })
        .on_delete(|pod| println!("Delete: {}", pod.name()))
        .register();

    factory.start();
    factory.wait_for_sync().await?;

    for pod in pods.lister().namespace("default").list() {
        let phase: Option<String> = pod.field("status.phase")?;
        println!("{} is {}", pod.name(), phase.unwrap_or_default());
    }

    factory.run(cluster.play()).await; // on a real cluster: until Ctrl-C
    Ok(())
}
