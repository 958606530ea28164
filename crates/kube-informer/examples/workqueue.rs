//! client-go's work queue example: a handler fills a queue, workers drain it.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Lister, ObjectKey, SharedInformerFactory, WorkQueue};

const ATTEMPTS: u32 = 3;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::new(cluster.client());
    let pods = factory.informer::<Pod>();
    let queue = WorkQueue::new();
    pods.handler().enqueue(&queue);
    factory.start();
    factory.wait_for_sync().await?;

    for _ in 0..4 {
        tokio::spawn(worker(queue.clone(), pods.lister()));
    }

    cluster.play().await?; // on a real cluster: until Ctrl-C
    queue.drain().await;
    factory.shutdown().await;
    Ok(())
}

async fn worker(queue: WorkQueue, pods: Lister<Pod>) {
    while let Some(key) = queue.get().await {
        match work(&pods, &key).await {
            Ok(()) => key.done(),
            Err(error) if key.failures() < ATTEMPTS => {
                println!("{key}: {error:#}, once more");
                key.retry();
            }
            Err(error) => {
                println!("{key}: {error:#}, giving up");
                key.done();
            }
        }
    }
}

#[expect(clippy::unused_async, reason = "a real one calls something")]
async fn work(pods: &Lister<Pod>, key: &ObjectKey) -> anyhow::Result<()> {
    let Some(pod) = pods.get(key) else {
        println!("{key} is gone");
        return Ok(());
    };
    anyhow::ensure!(pod.labels().get("foo").is_some(), "no label foo");
    println!("{key} is well");
    Ok(())
}
