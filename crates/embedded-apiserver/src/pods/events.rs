//! Events about pods, as the scheduler and kubelets write them, for `kubectl describe`.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::identity;
use crate::clock::seconds;
use crate::print::read::{items, text};
use crate::server::ApiServer;

/// Leaves room for a dot and 16 digits in a name of 253 bytes.
const POD_NAME_BYTES_MAX: usize = 236;

/// A writer of events that deletes the oldest of its own above a limit.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// The namespace and name of each event.
    made: VecDeque<(String, String)>,
    count: u64,
}

/// The content of an event about a pod.
#[derive(Debug)]
struct Note<'a> {
    kind: &'static str,
    reason: &'static str,
    message: String,
    container: Option<&'a Value>,
}

impl Recorder {
    pub(super) fn scheduled(&mut self, server: &ApiServer, pod: &Value, node: &str) {
        let (namespace, name) = place(pod);
        let message = format!("Successfully assigned {namespace}/{name} to {node}");
        let what = Note { kind: "Normal", reason: "Scheduled", message, container: None };
        self.schedulers(server, pod, &what, "Binding");
    }

    pub(super) fn failed_scheduling(&mut self, server: &ApiServer, pod: &Value, why: &str) {
        let message = why.to_owned();
        let what = Note { kind: "Warning", reason: "FailedScheduling", message, container: None };
        self.schedulers(server, pod, &what, "Scheduling");
    }

    pub(super) fn pulling(&mut self, server: &ApiServer, pod: &Value, container: &Value) {
        let message = format!("Pulling image \"{}\"", text(&container["image"]));
        self.kubelets(server, pod, "Pulling", message, container);
    }

    /// Records that the image was pulled and the container started.
    pub(super) fn started(
        &mut self,
        server: &ApiServer,
        pod: &Value,
        container: &Value,
        took: std::time::Duration,
    ) {
        let (name, image) = (text(&container["name"]), text(&container["image"]));
        let (took, size) = (took.as_millis(), identity::rng(&[image]).u32(1_000_000..500_000_000));
        let pulled = format!(
            "Successfully pulled image \"{image}\" in {took}ms ({took}ms including waiting). \
             Image size: {size} bytes."
        );
        self.kubelets(server, pod, "Pulled", pulled, container);
        self.kubelets(server, pod, "Created", format!("Created container: {name}"), container);
        self.kubelets(server, pod, "Started", format!("Started container {name}"), container);
    }

    pub(super) fn killing(&mut self, server: &ApiServer, pod: &Value, container: &Value) {
        let message = format!("Stopping container {}", text(&container["name"]));
        self.kubelets(server, pod, "Killing", message, container);
    }

    /// Writes an event in the scheduler's form: the newer one, with a single time in microseconds.
    fn schedulers(&mut self, server: &ApiServer, pod: &Value, note: &Note<'_>, action: &str) {
        let now = server.shared.clock.now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let source = json!({
            "action": action,
            "eventTime": now,
            "firstTimestamp": null,
            "lastTimestamp": null,
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-embedded",
            "source": {},
        });
        self.write(server, pod, note, source);
    }

    /// Writes an event in the kubelet's form: the older one, with a count and two times.
    fn kubelets(
        &mut self,
        server: &ApiServer,
        pod: &Value,
        reason: &'static str,
        message: String,
        container: &Value,
    ) {
        let what = Note { kind: "Normal", reason, message, container: Some(container) };
        let (now, node) = (seconds(server.shared.clock.now()), &pod["spec"]["nodeName"]);
        let source = json!({
            "count": 1,
            "eventTime": null,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "reportingComponent": "kubelet",
            "reportingInstance": node,
            "source": {"component": "kubelet", "host": node},
        });
        self.write(server, pod, &what, source);
    }

    fn write(&mut self, server: &ApiServer, pod: &Value, note: &Note<'_>, mut event: Value) {
        let (namespace, name) = place(pod);
        let cut = name.get(..POD_NAME_BYTES_MAX).unwrap_or(name).trim_end_matches(['.', '-']);
        self.count += 1;
        // Adds a nanosecond for each event, because many happen at the same time.
        let at = server.shared.clock.now().as_nanosecond() + i128::from(self.count);
        let event_name = format!("{cut}.{at:x}");
        event["apiVersion"] = "v1".into();
        event["kind"] = "Event".into();
        event["metadata"] = json!({"namespace": namespace, "name": event_name});
        event["involvedObject"] = involved(pod, note.container);
        event["type"] = note.kind.into();
        event["reason"] = note.reason.into();
        event["message"] = note.message.as_str().into();
        match server.create(event) {
            Ok(_) => self.made.push_back((namespace.to_owned(), event_name)),
            // The namespace may be terminating. A lost event is only logged.
            Err(status) => tracing::debug!(%status, "an event about a pod was not written"),
        }
        while self.made.len() > server.shared.options.pod_events_max
            && let Some((namespace, name)) = self.made.pop_front()
        {
            // Another client may have deleted it already.
            drop(server.delete("events", &namespace, &name));
        }
    }
}

fn place(pod: &Value) -> (&str, &str) {
    (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]))
}

/// Returns a reference to the pod, or to one of its containers.
fn involved(pod: &Value, container: Option<&Value>) -> Value {
    let metadata = &pod["metadata"];
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    });
    if let Some(container) = container {
        let is_init = items(&pod["spec"]["initContainers"]).contains(container);
        let list = if is_init { "initContainers" } else { "containers" };
        object["fieldPath"] = format!("spec.{list}{{{}}}", text(&container["name"])).into();
    }
    object
}
