//! One namespace, with label and field selectors: the server filters, so nothing else is sent or
//! cached.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube_informer::{Selector, SharedInformerFactory};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.given([
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        cluster::pod("shop", "web-0", &json!({"app": "web", "track": "stable"})),
        cluster::pod("shop", "web-1", &json!({"app": "web", "track": "canary"})),
        cluster::pod("shop", "db-0", &json!({"app": "db"})),
        cluster::pod("default", "web-9", &json!({"app": "web"})),
    ])?;

    // All informers of this factory cache the namespace `shop` …
    let factory = SharedInformerFactory::builder(cluster.client()).namespace("shop").build();
    // … and this one only pods with the label that have not failed.
    let web = factory.builder_for::<Pod>().labels("app=web").fields("status.phase!=Failed").build();
    let services = factory.informer::<Service>();

    web.handler().on_add(|pod, _| println!("{} is a web pod", pod.key())).register();
    factory.start();
    factory.wait_for_sync().await?;

    // The cache can be queried by labels as well.
    let canaries = web.lister().select(&Selector::label("track", "canary"));
    println!("{} of {} are canaries", canaries.len(), web.lister().len());
    println!("{} services", services.lister().len());

    factory.shutdown().await;
    Ok(())
}
