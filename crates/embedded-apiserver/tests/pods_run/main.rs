//! Simulated pods, as watchers of a real cluster see them, under paused time.

mod deletion;
mod task;

use std::time::Duration;

use embedded_apiserver::{ApiServer, Builder};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, WatchEvent, WatchParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use tokio::time::sleep;

fn builder() -> Builder {
    ApiServer::builder().pods_run(true)
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"run": name}},
        "spec": {"containers": [{"name": name, "image": "nginx"}]},
    })
}

fn pods(server: &ApiServer) -> Api<Pod> {
    Api::default_namespaced(server.client())
}

async fn phase(pods: &Api<Pod>, name: &str) -> String {
    pods.get(name).await.unwrap().status.unwrap().phase.unwrap()
}

/// Returns a pod on one line: its phase, node and containers, and whether it is ready, has an
/// address, and is deleted.
fn line(kind: &str, pod: &Pod) -> String {
    let pod = serde_json::to_value(pod).unwrap();
    let status = &pod["status"];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let state = |container: &Value| {
        let (state, more) = container["state"].as_object().unwrap().iter().next().unwrap();
        format!("{state}{}", more["reason"].as_str().map(|r| format!("({r})")).unwrap_or_default())
    };
    let all = |list: &str| -> Vec<String> {
        status[list].as_array().into_iter().flatten().map(state).collect()
    };
    let containers = [all("initContainerStatuses"), all("containerStatuses")].concat();
    let ready = status["conditions"].as_array().into_iter().flatten();
    let ready = ready.filter(|c| c["type"] == "Ready").any(|c| c["status"] == "True");
    format!(
        "{kind} {} node={} [{}]{}{}{}",
        text(&status["phase"]),
        text(&pod["spec"]["nodeName"]),
        containers.join(" "),
        if ready { " ready" } else { "" },
        if status["podIP"].is_string() { " ip" } else { "" },
        match &pod["metadata"]["deletionGracePeriodSeconds"] {
            Value::Null => String::new(),
            grace => format!(" deleted({grace})"),
        },
    )
}

/// Watches all pods from now on, as lines.
async fn watch(server: &ApiServer) -> impl Stream<Item = String> + Unpin {
    let version = server.store().revision().to_string();
    let events = pods(server).watch(&WatchParams::default(), &version).await.unwrap();
    Box::pin(events.map(|event| match event.unwrap() {
        WatchEvent::Added(pod) => line("ADDED", &pod),
        WatchEvent::Modified(pod) => line("MODIFIED", &pod),
        WatchEvent::Deleted(pod) => line("DELETED", &pod),
        other => format!("{other:?}"),
    }))
}

/// Returns all events until none arrives for longer than any step takes.
async fn until_quiet(watch: &mut (impl Stream<Item = String> + Unpin)) -> Vec<String> {
    let mut lines = Vec::new();
    while let Ok(Some(line)) = tokio::time::timeout(Duration::from_secs(20), watch.next()).await {
        lines.push(line);
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_run_and_deleted_as_the_articles_show() {
    let server = builder().build();
    let mut events = watch(&server).await;
    server.create(pod("nginx")).unwrap();
    assert_eq!(
        until_quiet(&mut events).await,
        [
            "ADDED Pending node=- []",
            "MODIFIED Pending node=embedded-node []",
            "MODIFIED Pending node=embedded-node [waiting(ContainerCreating)]",
            "MODIFIED Running node=embedded-node [running] ready ip",
        ]
    );
    pods(&server).delete("nginx", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        until_quiet(&mut events).await,
        [
            "MODIFIED Running node=embedded-node [running] ready ip deleted(30)",
            "MODIFIED Succeeded node=embedded-node [terminated(Completed)] ip deleted(30)",
            "MODIFIED Succeeded node=embedded-node [terminated(Completed)] ip deleted(0)",
            "DELETED Succeeded node=embedded-node [terminated(Completed)] ip deleted(0)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_says_all_that_a_kubelet_would() {
    let at = "2026-03-01T10:00:00Z".parse().unwrap();
    let server = builder().starting_at(at).seed(7).build();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_secs(2)).await;
    let status = server.get("pods", "default", "nginx").unwrap()["status"].clone();
    assert_eq!(status["podIP"], "10.244.0.1");
    assert_eq!(status["podIPs"], json!([{"ip": "10.244.0.1"}]));
    assert_eq!(status["hostIP"], "172.18.0.2");
    assert_eq!(status["qosClass"], "BestEffort");
    assert_eq!(status["startTime"], "2026-03-01T10:00:00Z");
    let container = &status["containerStatuses"][0];
    assert_eq!(container["image"], "docker.io/library/nginx:latest");
    let (id, image) = (container["containerID"].as_str(), container["imageID"].as_str());
    assert!(id.unwrap().starts_with("containerd://"), "{id:?}");
    assert!(image.unwrap().starts_with("docker.io/library/nginx@sha256:"), "{image:?}");
    let kinds: Vec<_> = status["conditions"].as_array().unwrap().iter().collect();
    assert_eq!(kinds.len(), 5);
    for condition in kinds {
        assert_eq!(condition["status"], "True", "{condition}");
        assert!(condition["lastTransitionTime"].is_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_within_two_seconds() {
    let server = builder().build();
    let pods = pods(&server);
    let start = tokio::time::Instant::now();
    server.create(pod("nginx")).unwrap();
    await_condition(pods.clone(), "nginx", conditions::is_pod_running()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let uid = pods.get("nginx").await.unwrap().metadata.uid.unwrap();
    pods.delete("nginx", &DeleteParams::default()).await.unwrap();
    await_condition(pods, "nginx", conditions::is_deleted(&uid)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn init_containers_come_first() {
    let server = builder().build();
    let mut events = watch(&server).await;
    let mut pod = pod("web");
    pod["spec"]["initContainers"] = json!([
        {"name": "proxy", "image": "p", "restartPolicy": "Always"},
        {"name": "migrate", "image": "m"},
    ]);
    server.create(pod).unwrap();
    let lines = until_quiet(&mut events).await;
    let states: Vec<_> = lines.iter().skip(2).map(|line| line.split(['[', ']']).nth(1)).collect();
    assert_eq!(
        states.into_iter().flatten().collect::<Vec<_>>(),
        [
            "waiting(PodInitializing) waiting(PodInitializing) waiting(PodInitializing)",
            "running waiting(PodInitializing) waiting(PodInitializing)",
            "running running waiting(PodInitializing)",
            "running terminated(Completed) waiting(PodInitializing)",
            "running terminated(Completed) running",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_no_node_waits_for_one() {
    let server = builder().build();
    let mut events = watch(&server).await;
    let mut picky = pod("picky");
    picky["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    server.create(picky).unwrap();
    let lines = until_quiet(&mut events).await;
    assert_eq!(lines, ["ADDED Pending node=- []", "MODIFIED Pending node=- []"]);
    let condition = &server.get("pods", "default", "picky").unwrap()["status"]["conditions"][0];
    assert_eq!(condition["type"], "PodScheduled");
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(
        condition["message"],
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. \
         preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    );

    let labels = json!({"disk": "ssd"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "fast", "labels": labels},
    });
    server.create(node).unwrap();
    let lines = until_quiet(&mut events).await;
    assert_eq!(lines.last().unwrap(), "MODIFIED Running node=fast [running] ready ip");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_names_its_node_is_not_scheduled_but_runs() {
    let server = builder().build();
    let mut events = watch(&server).await;
    let mut placed = pod("placed");
    placed["spec"]["nodeName"] = "elsewhere".into();
    server.create(placed).unwrap();
    assert_eq!(
        until_quiet(&mut events).await,
        [
            "ADDED Pending node=elsewhere []",
            "MODIFIED Pending node=elsewhere [waiting(ContainerCreating)]",
            "MODIFIED Running node=elsewhere [running] ready ip",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_node_is_a_ready_one() {
    let server = builder().build();
    let nodes: Api<Node> = Api::all(server.client());
    let node = nodes.get("embedded-node").await.unwrap();
    assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/hostname"], "embedded-node");
    let status = node.status.unwrap();
    let conditions = status.conditions.unwrap();
    assert!(conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"));
    assert!(status.capacity.unwrap().contains_key("cpu"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_restarted_may_complete() {
    let server = builder().build();
    let mut job = pod("job");
    job["spec"]["restartPolicy"] = "Never".into();
    job["metadata"]["annotations"] = json!({"embedded-apiserver/complete-after-seconds": "3"});
    server.create(job).unwrap();
    let pods = pods(&server);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&pods, "job").await, "Running");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(phase(&pods, "job").await, "Succeeded");
    // Nothing is left to stop.
    server.delete("pods", "default", "job").unwrap();
    assert_eq!(server.get("pods", "default", "job"), None);
}

#[tokio::test(start_paused = true)]
async fn events_tell_what_happened() {
    let server = builder().build();
    server.create(pod("nginx")).unwrap();
    sleep(Duration::from_secs(2)).await;
    server.delete("pods", "default", "nginx").unwrap();
    sleep(Duration::from_secs(2)).await;
    let events: Api<Event> = Api::default_namespaced(server.client());
    let mine = ListParams::default().fields("involvedObject.name=nginx");
    let mut events = events.list(&mine).await.unwrap().items;
    events.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let told: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(told, ["Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing"]);
    let first = events[0].message.as_deref();
    assert_eq!(first, Some("Successfully assigned default/nginx to embedded-node"));
    assert_eq!(events[1].involved_object.field_path.as_deref(), Some("spec.containers{nginx}"));
}
