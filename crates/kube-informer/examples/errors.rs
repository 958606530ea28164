//! Prints every error of an informer, and how it recovers.
//!
//! On a real cluster, stop its API server or revoke permissions while this runs.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use embedded_apiserver::{ApiServer, Denial, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::SharedInformerFactory;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.given([map("kept"), map("doomed")])?;
    let factory = SharedInformerFactory::builder(cluster.client())
        .on_error(|report| println!("{report}"))
        .build();
    let maps = factory.builder_for::<ConfigMap>().namespace("default").build();
    maps.handler()
        .only_changes()
        .on_delete(|map| println!("{} is gone, final state {:?}", map.key(), map.final_state))
        .register();

    let mut states = maps.watch_state();
    tokio::spawn(async move {
        while states.changed().await.is_ok() {
            println!("-- {}", states.borrow_and_update().as_str());
        }
    });

    factory.start();
    factory.wait_for_sync().await?;
    match cluster.server() {
        Some(server) => trouble(server).await?,
        None => tokio::signal::ctrl_c().await?,
    }
    println!("{} objects, live: {}", maps.lister().len(), maps.is_live());
    factory.shutdown().await;
    Ok(())
}

async fn trouble(server: &ApiServer) -> anyhow::Result<()> {
    let minute = Duration::from_secs(60);
    println!("## connections are refused for ten seconds");
    server.refuse_connections();
    sleep(Duration::from_secs(10)).await;
    server.accept_connections();
    sleep(minute).await;

    println!("## an object is deleted, and the history compacted, while the watch is down");
    server.drop_watches();
    server.delete("configmaps", "default", "doomed")?;
    server.create(map("new"))?;
    server.store().compact(u64::MAX);
    sleep(minute).await;

    println!("## the permission to watch is revoked for a minute");
    let denied = server.access().deny(Denial::verbs([Verb::Watch]).resource("configmaps"));
    server.drop_watches();
    sleep(minute).await;
    server.access().allow(denied);
    sleep(minute * 2).await;
    Ok(())
}

fn map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}})
}
