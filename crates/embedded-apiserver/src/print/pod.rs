//! Pods, whose status summarises all of their containers.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{
    age, condition, flag, int, is_deleting, items, name, text as string, text_or, time,
};
use super::{AGE, NAME, Printer, age::since, text, wide};

pub(super) static POD: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many of the containers are ready."),
        text("Status", "What the containers are doing, or what is wrong with them."),
        text("Restarts", "How often containers were restarted, and how long ago the last one was."),
        AGE,
        wide("IP", "The pod's address."),
        wide("Node", "The node that the pod runs on."),
        wide("Nominated Node", "The node that the pod will run on once it is cleared of others."),
        wide("Readiness Gates", "How many of the further conditions of readiness are met."),
    ],
    cells,
};

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let summary = Summary::of(pod);
    let restarts = match summary.restarts {
        Restarts { count, last: Some(last) } if count != 0 => {
            format!("{count} ({} ago)", since(Some(last), now))
        }
        Restarts { count, .. } => count.to_string(),
    };
    vec![
        name(pod).into(),
        format!("{}/{}", summary.ready, container_count(spec)).into(),
        summary.reason.into(),
        restarts.into(),
        age(pod, now).into(),
        // If the two fields for addresses differ, the older one takes precedence.
        text_or(&status["podIP"], text_or(&status["podIPs"][0]["ip"], "<none>")).into(),
        text_or(&spec["nodeName"], "<none>").into(),
        text_or(&status["nominatedNodeName"], "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

/// Returns the number of containers that run as long as the pod does.
fn container_count(spec: &Value) -> usize {
    let sidecars = items(&spec["initContainers"]).iter().filter(|container| is_sidecar(container));
    items(&spec["containers"]).len() + sidecars.count()
}

/// Returns whether an init container is restarted, and so keeps running beside the others.
fn is_sidecar(container: &Value) -> bool {
    string(&container["restartPolicy"]) == "Always"
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let met = |gate: &&Value| condition(pod, string(&gate["conditionType"])) == "True";
    format!("{}/{}", gates.iter().filter(met).count(), gates.len())
}

#[derive(Debug, Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += i64::from(int(&container["restartCount"]));
        let finished = time(&container["lastState"]["terminated"]["finishedAt"]);
        self.last = self.last.max(finished);
    }
}

/// A summary of a pod's containers.
#[derive(Debug)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: Restarts,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let mut summary =
            Self { reason: phase_reason(status), ready: 0, restarts: Restarts::default() };
        let (initializing, sidecar_restarts) = summary.add_init_containers(pod);
        if !initializing || condition(pod, "Initialized") == "True" {
            // Restarts before the pod was initialized no longer count.
            summary.restarts = sidecar_restarts;
            summary.add_containers(pod);
        }
        let finished = matches!(string(&status["phase"]), "Succeeded" | "Failed");
        if is_deleting(pod) && string(&status["reason"]) == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if is_deleting(pod) && !finished {
            "Terminating".clone_into(&mut summary.reason);
        }
        summary
    }

    /// Adds the init containers up to the first that is not complete, if any. Returns whether there
    /// is one, and the restarts of the sidecars before it.
    fn add_init_containers(&mut self, pod: &Value) -> (bool, Restarts) {
        let specs = items(&pod["spec"]["initContainers"]);
        let mut sidecar_restarts = Restarts::default();
        for (index, container) in items(&pod["status"]["initContainerStatuses"]).iter().enumerate()
        {
            self.restarts.add(container);
            let sidecar = is_sidecar_status(container, specs);
            if sidecar {
                sidecar_restarts.add(container);
            }
            let state = &container["state"];
            let exited = exit_code(state);
            if exited == Some(0) {
                continue;
            }
            if sidecar && flag(&container["started"]) {
                self.ready += usize::from(flag(&container["ready"]));
                continue;
            }
            self.reason = match (exited, string(&state["waiting"]["reason"])) {
                (Some(_), _) => format!("Init:{}", termination(state)),
                (None, "" | "PodInitializing") => format!("Init:{index}/{}", specs.len()),
                (None, waiting) => format!("Init:{waiting}"),
            };
            return (true, sidecar_restarts);
        }
        (false, sidecar_restarts)
    }

    /// Adds the containers from the last to the first, so that the first with a reason takes
    /// precedence.
    fn add_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for container in items(&pod["status"]["containerStatuses"]).iter().rev() {
            self.restarts.add(container);
            let state = &container["state"];
            match (string(&state["waiting"]["reason"]), exit_code(state)) {
                ("", Some(code)) => {
                    self.reason = termination(state);
                    if code != 0 {
                        failure = Some(self.reason.clone());
                    }
                }
                ("", None) if flag(&container["ready"]) && state["running"].is_object() => {
                    running = true;
                    self.ready += 1;
                }
                ("", None) => {}
                (waiting, _) => waiting.clone_into(&mut self.reason),
            }
        }
        // A completed container does not complete a pod in which others still run.
        if self.reason == "Completed" {
            if running && has_condition(pod, "Ready", "True") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

/// Returns the reason of the pod itself.
fn phase_reason(status: &Value) -> String {
    let gated = items(&status["conditions"]).iter().any(|condition| {
        string(&condition["type"]) == "PodScheduled"
            && string(&condition["reason"]) == "SchedulingGated"
    });
    if gated {
        return "SchedulingGated".to_owned();
    }
    text_or(&status["reason"], string(&status["phase"])).to_owned()
}

/// Returns whether the pod has a condition of this type and status.
fn has_condition(pod: &Value, kind: &str, status: &str) -> bool {
    items(&pod["status"]["conditions"]).iter().any(|condition| {
        string(&condition["type"]) == kind && string(&condition["status"]) == status
    })
}

/// Returns whether the container of a status is a sidecar in the pod's spec.
fn is_sidecar_status(container: &Value, specs: &[Value]) -> bool {
    let name = string(&container["name"]);
    specs.iter().rfind(|spec| string(&spec["name"]) == name).is_some_and(is_sidecar)
}

/// Returns the exit code of a terminated container.
fn exit_code(state: &Value) -> Option<i32> {
    state["terminated"].is_object().then(|| int(&state["terminated"]["exitCode"]))
}

/// Returns why a container has terminated: `Error`, `Signal:9`, `ExitCode:1`.
fn termination(state: &Value) -> String {
    let terminated = &state["terminated"];
    match (string(&terminated["reason"]), int(&terminated["signal"])) {
        ("", 0) => format!("ExitCode:{}", int(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
