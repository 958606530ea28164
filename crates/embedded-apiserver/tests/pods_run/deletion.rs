//! Termination of pods.

use std::time::Duration;

use embedded_apiserver::PodDelays;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use crate::{builder, phase, pod, pods, until_quiet, watch};

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_no_node_goes_at_once() {
    let server = builder().build();
    let mut picky = pod("picky");
    picky["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    server.create(picky).unwrap();
    sleep(Duration::from_secs(5)).await;
    server.delete("pods", "default", "picky").unwrap();
    assert_eq!(server.get("pods", "default", "picky"), None);
}

#[tokio::test(start_paused = true)]
async fn finalizers_keep_a_pod_that_has_ended() {
    let server = builder().build();
    let mut kept = pod("kept");
    kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
    server.create(kept).unwrap();
    sleep(Duration::from_secs(5)).await;
    let pods = pods(&server);
    let mut events = watch(&server).await;
    pods.delete("kept", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        until_quiet(&mut events).await,
        [
            "MODIFIED Running node=embedded-node [running] ready ip deleted(30)",
            "MODIFIED Succeeded node=embedded-node [terminated(Completed)] ip deleted(30)",
            "MODIFIED Succeeded node=embedded-node [terminated(Completed)] ip deleted(0)",
        ]
    );
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("kept", &PatchParams::default(), &release).await.unwrap();
    assert_eq!(
        until_quiet(&mut events).await,
        ["DELETED Succeeded node=embedded-node [terminated(Completed)] ip deleted(0)"]
    );
}

#[tokio::test(start_paused = true)]
async fn force_deletes_at_once() {
    let server = builder().build();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_secs(5)).await;
    let pods = pods(&server);
    pods.delete("nginx", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("nginx").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_too_short_a_grace_period_is_killed() {
    let delays = PodDelays { stop: Duration::from_secs(10), jitter: 0.0, ..Default::default() };
    let server = builder().pod_delays(delays).build();
    server.create(pod("slow")).unwrap();
    sleep(Duration::from_secs(5)).await;
    let pods = pods(&server);
    let mut events = watch(&server).await;
    pods.delete("slow", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&pods, "slow").await, "Running");
    // A second delete shortens it.
    pods.delete("slow", &DeleteParams::default().grace_period(1)).await.unwrap();
    sleep(Duration::from_millis(1100)).await;
    assert!(pods.get_opt("slow").await.unwrap().is_none());
    assert_eq!(
        until_quiet(&mut events).await,
        [
            "MODIFIED Running node=embedded-node [running] ready ip deleted(30)",
            "MODIFIED Running node=embedded-node [running] ready ip deleted(1)",
            "MODIFIED Failed node=embedded-node [terminated(Error)] ip deleted(1)",
            "MODIFIED Failed node=embedded-node [terminated(Error)] ip deleted(0)",
            "DELETED Failed node=embedded-node [terminated(Error)] ip deleted(0)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_is_a_new_pod() {
    let server = builder().build();
    let pods = pods(&server);
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_secs(2)).await;
    let old = pods.get("nginx").await.unwrap();
    // While the old pod would still be terminating.
    pods.delete("nginx", &DeleteParams::default()).await.unwrap();
    pods.delete("nginx", &DeleteParams::default().grace_period(0)).await.unwrap();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(phase(&pods, "nginx").await, "Pending");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&pods, "nginx").await, "Running");
    let new = pods.get("nginx").await.unwrap();
    assert_ne!(new.metadata.uid, old.metadata.uid);
    let containers = |pod: Pod| pod.status.unwrap().container_statuses.unwrap();
    assert_ne!(containers(new)[0].container_id, containers(old)[0].container_id);
}
