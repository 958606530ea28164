//! The status of a pod at each stage of its life, as a kubelet writes it: pure functions from a pod
//! to its next status.

use serde_json::{Value, json};

use super::condition::{self, Condition};
use super::container::{self, End};
use super::step::current_init;
use crate::object::Object;
use crate::print::read::{flag, items, text};

/// The time and place of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) now: &'a str,
    /// The address of its node.
    pub(super) host: &'a str,
}

/// Returns the status when the node has seen the pod and is creating its containers.
pub(super) fn create(pod: &Value, at: Moment<'_>) -> Object {
    let mut status = status_of(pod);
    let inits = items(&pod["spec"]["initContainers"]);
    let reason = if inits.is_empty() { "ContainerCreating" } else { "PodInitializing" };
    let waiting = |specs: &[Value]| -> Value {
        specs.iter().map(|spec| container::waiting(spec, reason)).collect()
    };
    status.insert("phase".to_owned(), json!("Pending"));
    status.insert("startTime".to_owned(), json!(at.now));
    status.insert("hostIP".to_owned(), json!(at.host));
    status.insert("hostIPs".to_owned(), json!([{"ip": at.host}]));
    if !inits.is_empty() {
        status.insert("initContainerStatuses".to_owned(), waiting(inits));
    }
    status.insert("containerStatuses".to_owned(), waiting(items(&pod["spec"]["containers"])));
    concluded(pod, status, at)
}

/// Returns the status when the next init container starts.
pub(super) fn start_init(pod: &Value, address: &str, at: Moment<'_>) -> Object {
    let mut status = with_address(pod, address, at);
    if let Some((turn, old)) = current_init(pod) {
        let spec = items(&pod["spec"]["initContainers"]).get(turn).unwrap_or(old);
        let ready = container::is_sidecar(spec);
        let running = container::running(spec, uid(pod), ready, at.now);
        replace(&mut status, turn, running);
    }
    concluded(pod, status, at)
}

/// Returns the status when the current init container has completed.
pub(super) fn end_init(pod: &Value, at: Moment<'_>) -> Object {
    let mut status = status_of(pod);
    if let Some((turn, old)) = current_init(pod) {
        let mut ended = container::ended(old, End::Done, at.now);
        // For an init container, this means that those after it need not wait.
        ended["ready"] = json!(true);
        replace(&mut status, turn, ended);
    }
    concluded(pod, status, at)
}

fn replace(status: &mut Object, turn: usize, container: Value) {
    let statuses = status.get_mut("initContainerStatuses").and_then(Value::as_array_mut);
    if let Some(place) = statuses.and_then(|statuses| statuses.get_mut(turn)) {
        *place = container;
    }
}

/// Returns the status when all containers run.
pub(super) fn start(pod: &Value, address: &str, at: Moment<'_>) -> Object {
    let mut status = with_address(pod, address, at);
    let containers = items(&pod["spec"]["containers"]).iter();
    let running: Value =
        containers.map(|spec| container::running(spec, uid(pod), true, at.now)).collect();
    status.insert("phase".to_owned(), json!("Running"));
    status.insert("containerStatuses".to_owned(), running);
    concluded(pod, status, at)
}

/// Returns the status when all containers have terminated.
pub(super) fn stop(pod: &Value, end: End, at: Moment<'_>) -> Object {
    let mut status = status_of(pod);
    let mut failed = false;
    for list in ["initContainerStatuses", "containerStatuses"] {
        let Some(Value::Array(statuses)) = status.get_mut(list) else { continue };
        for status in statuses {
            *status = container::ended(status, end, at.now);
            failed |= status["state"]["terminated"]["exitCode"] != 0;
        }
    }
    status.insert("phase".to_owned(), json!(if failed { "Failed" } else { "Succeeded" }));
    concluded(pod, status, at)
}

/// Returns the status when the scheduler found no node.
pub(super) fn unschedulable(pod: &Value, why: &str, now: &str) -> Object {
    let mut status = status_of(pod);
    let condition = Condition::unmet("PodScheduled", "Unschedulable", why.to_owned());
    condition::put(&mut status, &[condition], generation(pod), now);
    status
}

/// Returns the status when the scheduler found a node.
pub(super) fn scheduled(pod: &Value, now: &str) -> Object {
    let mut status = status_of(pod);
    condition::put(&mut status, &[Condition::met("PodScheduled")], generation(pod), now);
    status
}

/// Returns the pod's status. A client may have written any JSON in its place.
fn status_of(pod: &Value) -> Object {
    pod["status"].as_object().cloned().unwrap_or_default()
}

fn uid(pod: &Value) -> &str {
    text(&pod["metadata"]["uid"])
}

fn generation(pod: &Value) -> &Value {
    &pod["metadata"]["generation"]
}

fn with_address(pod: &Value, address: &str, at: Moment<'_>) -> Object {
    let mut status = status_of(pod);
    let own = if flag(&pod["spec"]["hostNetwork"]) { at.host } else { address };
    status.insert("podIP".to_owned(), json!(own));
    status.insert("podIPs".to_owned(), json!([{"ip": own}]));
    status
}

/// Sets the fields that follow from the state of the containers.
fn concluded(pod: &Value, mut status: Object, at: Moment<'_>) -> Object {
    if generation(pod).is_i64() {
        status.insert("observedGeneration".to_owned(), generation(pod).clone());
    }
    let conditions = conditions(pod, &Value::Object(status.clone()));
    condition::put(&mut status, &conditions, generation(pod), at.now);
    status
}

fn conditions(pod: &Value, status: &Value) -> [Condition; 5] {
    const SANDBOX: &str = "PodReadyToStartContainers";
    let ended = match text(&status["phase"]) {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ => None,
    };
    let has_sandbox = ended.is_none() && !text(&status["podIP"]).is_empty();
    let sandbox = if has_sandbox {
        Condition::met(SANDBOX)
    } else {
        Condition::unmet(SANDBOX, "", String::new())
    };
    [
        sandbox,
        initialized(pod, status),
        ready("Ready", status, ended),
        ready("ContainersReady", status, ended),
        Condition::met("PodScheduled"),
    ]
}

fn initialized(pod: &Value, status: &Value) -> Condition {
    const KIND: &str = "Initialized";
    let after = json!({"spec": pod["spec"], "status": status});
    let Some((turn, _)) = current_init(&after) else {
        let completed = text(&status["phase"]) == "Succeeded";
        let reason = if completed { "PodCompleted" } else { "" };
        return Condition { reason, ..Condition::met(KIND) };
    };
    let waiting = names(items(&status["initContainerStatuses"]).iter().skip(turn));
    let message = format!("containers with incomplete status: [{waiting}]");
    Condition::unmet(KIND, "ContainersNotInitialized", message)
}

fn ready(kind: &'static str, status: &Value, ended: Option<&'static str>) -> Condition {
    if let Some(reason) = ended {
        return Condition::unmet(kind, reason, String::new());
    }
    let containers = items(&status["containerStatuses"]);
    let unready = names(containers.iter().filter(|status| !flag(&status["ready"])));
    if unready.is_empty() {
        return Condition::met(kind);
    }
    let message = format!("containers with unready status: [{unready}]");
    Condition::unmet(kind, "ContainersNotReady", message)
}

/// Formats names as Go prints a list.
fn names<'a>(statuses: impl Iterator<Item = &'a Value>) -> String {
    statuses.map(|status| text(&status["name"])).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
