//! Creates pods, and reports the status of failing ones as a kubelet would.
//!
//! The server simulates pods itself, but never lets a container fail. This module simulates the
//! failures.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, name, owned_by};

/// The nodes and their addresses.
pub(super) const NODES: [(&str, &str); 3] =
    [("node-a", "172.18.0.11"), ("node-b", "172.18.0.12"), ("node-c", "172.18.0.13")];

/// Returns a pod from a template, not yet created, on a random node.
pub(super) fn of_template(world: &mut World, owner: &Value, template: &Value) -> Value {
    let mut metadata = owned_by(owner, &template["metadata"]["labels"]);
    metadata["generateName"] = format!("{}-", name(owner)).into();
    if template["metadata"]["annotations"].is_object() {
        metadata["annotations"] = template["metadata"]["annotations"].clone();
    }
    let mut spec = template["spec"].clone();
    let nodes: Vec<Value> = world.list("nodes");
    if let Some(node) = world.one(nodes)
        && spec.is_object()
    {
        spec["nodeName"] = name(&node).into();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Returns the status of a pod that has been running for some time.
pub(super) fn long_running(world: &World, pod: &Value, address: u8, age: Duration) -> Value {
    let started = world.ago(age);
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let host = NODES.iter().find(|(name, _)| *name == node).map_or("", |(_, address)| address);
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": started,
            "observedGeneration": 1,
        })
    };
    let container = |spec: &Value| {
        let image = spec["image"].as_str().unwrap_or_default();
        let repository = image.split(':').next().unwrap_or_default();
        json!({
            "name": spec["name"],
            "image": format!("docker.io/{image}"),
            "imageID": format!("docker.io/{repository}@sha256:{}", digest(image)),
            "containerID": format!("containerd://{}", digest(name(pod))),
            "ready": true, "started": true, "restartCount": 0, "lastState": {},
            "state": {"running": {"startedAt": started}},
        })
    };
    let own = format!("10.244.0.{address}");
    json!({
        "phase": "Running", "qosClass": "BestEffort", "startTime": started, "observedGeneration": 1,
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}],
        "conditions": [
            condition("PodReadyToStartContainers"), condition("Initialized"), condition("Ready"),
            condition("ContainersReady"), condition("PodScheduled"),
        ],
        "containerStatuses":
            pod["spec"]["containers"].as_array().into_iter().flatten().map(container)
                .collect::<Value>(),
    })
}

/// Returns something that looks like a digest, and is the same for the same text.
fn digest(text: &str) -> String {
    let part = |part: u8| {
        let mut hasher = DefaultHasher::new();
        (text, part).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}{:016x}{:016x}", part(0), part(1), part(2), part(3))
}

pub(super) fn is_ready(pod: &Value) -> bool {
    conditions(pod).any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns whether the pod's containers should be running but will not restart by themselves.
pub(super) fn is_failing(pod: &Value) -> bool {
    let state = &container(pod)["state"];
    pod["status"]["phase"] == "Running"
        && (state["terminated"].is_object() || state["waiting"]["reason"] == "CrashLoopBackOff")
}

pub(super) fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Returns the status after the container has failed.
pub(super) fn crashed(world: &World, pod: &Value) -> Value {
    let (now, old) = (world.now(), container(pod));
    let state = json!({"terminated": {
        "exitCode": 1, "reason": "Error", "containerID": old["containerID"],
        "startedAt": old["state"]["running"]["startedAt"], "finishedAt": now,
    }});
    with_state(pod, &now, &state, &old["lastState"].clone(), false)
}

/// Returns the status while the container waits to be restarted.
pub(super) fn backing_off(world: &World, pod: &Value) -> Value {
    let (now, old) = (world.now(), container(pod));
    let name = old["name"].as_str().unwrap_or_default();
    let message =
        format!("back-off 10s restarting failed container={name} pod={}", self::name(pod));
    let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
    with_state(pod, &now, &state, &last_state(old), false)
}

/// Returns the status after the container has been restarted.
pub(super) fn restarted(world: &World, pod: &Value) -> Value {
    let now = world.now();
    let last = last_state(container(pod));
    let mut status = with_state(pod, &now, &json!({"running": {"startedAt": now}}), &last, true);
    let restarts = container(pod)["restartCount"].as_u64().unwrap_or(0) + 1;
    status["containerStatuses"][0]["restartCount"] = restarts.into();
    status
}

/// Returns how the container last terminated.
fn last_state(container: &Value) -> Value {
    let state = &container["state"];
    if state["terminated"].is_object() { state.clone() } else { container["lastState"].clone() }
}

fn with_state(pod: &Value, now: &str, state: &Value, last: &Value, ready: bool) -> Value {
    let mut status = pod["status"].clone();
    let Some(container) = status["containerStatuses"].get_mut(0) else { return status };
    if !container.is_object() {
        return status;
    }
    container["state"] = state.clone();
    container["lastState"] = last.clone();
    container["ready"] = ready.into();
    container["started"] = ready.into();
    let word = if ready { "True" } else { "False" };
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let of_containers = condition["type"] == "Ready" || condition["type"] == "ContainersReady";
        if of_containers && condition["status"] != word {
            condition["status"] = word.into();
            condition["lastTransitionTime"] = now.into();
        }
    }
    status
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn conditions(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["status"]["conditions"].as_array().into_iter().flatten()
}
