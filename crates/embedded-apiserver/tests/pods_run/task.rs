//! The task that simulates pods: with many pods, under disturbances, and when it ends.

use std::time::Duration;

use embedded_apiserver::PodDelays;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::{builder, phase, pod, pods, watch};

#[tokio::test(start_paused = true)]
async fn many_pods_run_each_at_its_own_address() {
    const COUNT: usize = 500;
    let server = builder().build();
    for at in 0..COUNT {
        server.create(pod(&format!("pod-{at}"))).unwrap();
    }
    sleep(Duration::from_secs(2)).await;
    let all = pods(&server).list(&ListParams::default()).await.unwrap().items;
    let statuses: Vec<_> = all.into_iter().filter_map(|pod| pod.status).collect();
    assert!(statuses.iter().all(|status| status.phase.as_deref() == Some("Running")));
    let addresses: std::collections::BTreeSet<_> =
        statuses.into_iter().filter_map(|status| status.pod_ip).collect();
    assert_eq!(addresses.len(), COUNT);
    assert!(server.count("events", "default") <= embedded_apiserver::limits::POD_EVENTS_MAX);
}

#[tokio::test(start_paused = true)]
async fn pods_go_on_from_where_a_restore_puts_them() {
    let server = builder().build();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_millis(200)).await;
    let pending = server.store().snapshot();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&pods(&server), "nginx").await, "Running");
    server.restore(&pending);
    // These writes advance the version past the earlier one, which therefore does not reveal the
    // restore.
    for at in 0..20 {
        server.create(pod(&format!("other-{at}"))).unwrap();
    }
    assert_eq!(phase(&pods(&server), "nginx").await, "Pending");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&pods(&server), "nginx").await, "Running");
}

#[tokio::test(start_paused = true)]
async fn pods_run_even_when_nobody_remembers_what_changed() {
    let server = builder().build();
    server.create(pod("a")).unwrap();
    server.store().compact(u64::MAX);
    server.create(pod("b")).unwrap();
    sleep(Duration::from_secs(2)).await;
    for name in ["a", "b"] {
        assert_eq!(phase(&pods(&server), name).await, "Running");
    }
}

#[tokio::test(start_paused = true)]
async fn without_delays_no_time_passes() {
    let [schedule, create, start, stop] = [Duration::ZERO; 4];
    let delays = PodDelays { schedule, create, start, stop, ..PodDelays::default() };
    let server = builder().pod_delays(delays).build();
    let mut events = watch(&server).await;
    let start = tokio::time::Instant::now();
    server.create(pod("nginx")).unwrap();
    for _ in 0..4 {
        events.next().await.unwrap();
    }
    server.delete("pods", "default", "nginx").unwrap();
    for _ in 0..3 {
        events.next().await.unwrap();
    }
    assert!(events.next().await.unwrap().starts_with("DELETED Succeeded"));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_keeps_pods_pending() {
    let delays = PodDelays { schedule: Duration::MAX, ..PodDelays::default() };
    let server = builder().pod_delays(delays).build();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(phase(&pods(&server), "nginx").await, "Pending");
}

#[tokio::test(start_paused = true)]
async fn a_change_by_a_client_in_between_is_kept() {
    let server = builder().build();
    let pods = pods(&server);
    server.create(pod("nginx")).unwrap();
    for at in 0..300 {
        sleep(Duration::from_millis(5)).await;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"at": at.to_string()}}}));
        pods.patch("nginx", &PatchParams::default(), &patch).await.unwrap();
    }
    let pod = pods.get("nginx").await.unwrap();
    assert_eq!(pod.metadata.labels.unwrap()["at"], "299");
    // Changes did not delay it.
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_last_who_could_see_it() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 0);
    let server = builder().build();
    let pods = pods(&server);
    pods.create(&PostParams::default(), &serde_json::from_value(pod("nginx")).unwrap())
        .await
        .unwrap();
    drop(server);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&pods, "nginx").await, "Running");
    drop(pods);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_pods_left_on_the_way() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let server = builder().build();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(tasks(), 1);
    drop(server);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(tasks(), 0);
}

/// Returns the complete history of pods and events.
async fn one_run() -> String {
    let at = "2026-03-01T10:00:00Z".parse().unwrap();
    let server = builder().seed(42).starting_at(at).build();
    for name in ["a", "b", "c"] {
        server.create(pod(name)).unwrap();
        sleep(Duration::from_millis(15)).await;
    }
    sleep(Duration::from_secs(2)).await;
    server.delete("pods", "default", "b").unwrap();
    sleep(Duration::from_secs(2)).await;
    let pods = ["a", "b", "c"].map(|name| server.history("pods", "default", name));
    let events: Api<Event> = Api::default_namespaced(server.client());
    let events = events.list(&ListParams::default()).await.unwrap();
    format!("{pods:?} {}", serde_json::to_string(&events.items).unwrap())
}

#[tokio::test(start_paused = true)]
async fn two_runs_give_the_same() {
    assert_eq!(one_run().await, one_run().await);
}
