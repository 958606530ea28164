//! Carries out the steps of a pod's life: the writes to the pod, and the events about it.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::kubelet::{self, Moment};
use super::scheduler::place;
use super::step::{self, Step, current_init};
use super::{Cluster, PODS, address, node};
use crate::limits::WRITE_RETRIES_MAX;
use crate::object::Object;
use crate::print::read::{flag, items, text};
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::{Draft, Expected, Key, Ownership};

/// The delay before a pod retries when all addresses are in use.
const ADDRESS_WAIT: Duration = Duration::from_secs(1);

impl Cluster {
    /// Carries out the planned step of a pod. Either this write or the one that conflicts with it
    /// is observed, and leads to the next step.
    pub(super) fn act(&mut self, server: &ApiServer, key: &Arc<Key>) {
        let Some(tracked) = self.pods.get_mut(key) else { return };
        let Some((step, _)) = tracked.planned.take() else { return };
        let uid = tracked.uid.clone();
        for _ in 0..WRITE_RETRIES_MAX {
            let Some(pod) = server.get(PODS, key.namespace(), key.name()) else { return };
            if text(&pod["metadata"]["uid"]) != uid || Step::next(&pod) != Some(step) {
                return;
            }
            match self.do_step(server, key, step, &pod) {
                Ok(()) => return,
                Err(status) if status.code == StatusCode::CONFLICT => {}
                Err(status) => {
                    tracing::debug!(pod = %key, ?step, %status, "a pod does not get on");
                    return;
                }
            }
        }
    }

    fn do_step(
        &mut self,
        server: &ApiServer,
        key: &Arc<Key>,
        step: Step,
        pod: &Value,
    ) -> Result<(), Status> {
        let now = server.shared.clock.now_text();
        let at = Moment { now: &now, host: &self.host_of(pod) };
        let status = match step {
            Step::Schedule => return self.schedule(server, key, pod, &now),
            Step::Remove => return remove(server, key, pod),
            Step::Create => kubelet::create(pod, at),
            Step::EndInit => kubelet::end_init(pod, at),
            Step::Complete => kubelet::stop(pod, super::container::End::Done, at),
            Step::Stop => kubelet::stop(pod, step::end(pod, &self.delays), at),
            Step::StartInit | Step::Start => {
                let Some(address) = self.address_of(key, pod) else {
                    // Retries until another pod releases its address.
                    self.plan(key, Some((step, ADDRESS_WAIT)));
                    return Ok(());
                };
                match step {
                    Step::Start => kubelet::start(pod, &address, at),
                    _ => kubelet::start_init(pod, &address, at),
                }
            }
        };
        write_status(server, pod, status)?;
        self.tell(server, step, pod);
        Ok(())
    }

    fn host_of(&self, pod: &Value) -> String {
        let name = text(&pod["spec"]["nodeName"]);
        let found = self.nodes.iter().find(|node| node.name == name);
        found.map_or(node::ADDRESS, |node| &node.address).to_owned()
    }

    /// Returns the pod's own address, or `None` if all are in use.
    fn address_of(&mut self, key: &Arc<Key>, pod: &Value) -> Option<String> {
        if flag(&pod["spec"]["hostNetwork"]) {
            return Some(String::new());
        }
        let tracked = self.pods.get_mut(key)?;
        tracked.address = tracked.address.or_else(|| self.addresses.take());
        tracked.address.map(address::text)
    }

    fn schedule(
        &mut self,
        server: &ApiServer,
        key: &Arc<Key>,
        pod: &Value,
        now: &str,
    ) -> Result<(), Status> {
        match place(pod, &self.nodes) {
            Ok(node) => {
                bind(server, key, pod, &node.name, now)?;
                self.recorder.scheduled(server, pod, &node.name);
            }
            Err(why) => {
                let status = kubelet::unschedulable(pod, &why, now);
                let known = pod["status"].as_object() == Some(&status);
                write_status(server, pod, status)?;
                if let Some(tracked) = self.pods.get_mut(key) {
                    tracked.unplaced = true;
                }
                if !known {
                    self.recorder.failed_scheduling(server, pod, &why);
                }
            }
        }
        Ok(())
    }

    /// Writes the events about a step. `pod` is the state before it.
    fn tell(&mut self, server: &ApiServer, step: Step, pod: &Value) {
        let inits = items(&pod["spec"]["initContainers"]);
        let containers = items(&pod["spec"]["containers"]);
        let first = inits.iter().chain(containers).next();
        let starting = match step {
            Step::Create => {
                if let Some(first) = first {
                    self.recorder.pulling(server, pod, first);
                }
                return;
            }
            Step::StartInit => {
                current_init(pod).and_then(|(turn, _)| inits.get(turn..=turn)).unwrap_or_default()
            }
            Step::Start => containers,
            _ => return,
        };
        let took = step.delay(pod, &self.delays);
        for container in starting {
            if Some(container) != first {
                self.recorder.pulling(server, pod, container);
            }
            self.recorder.started(server, pod, container, took);
        }
    }
}

/// Replaces the status of a pod, if it has not changed since it was read.
fn write_status(server: &ApiServer, pod: &Value, status: Object) -> Result<(), Status> {
    let mut pod = pod.clone();
    pod["status"] = Value::Object(status);
    server.update_status(pod).map(drop)
}

/// Assigns a pod to a node. The node's name and the condition change in one write, as when a
/// scheduler posts a Binding.
fn bind(
    server: &ApiServer,
    key: &Arc<Key>,
    pod: &Value,
    node: &str,
    now: &str,
) -> Result<(), Status> {
    let shared = &server.shared;
    let resource = shared.registry.read().get("", "v1", PODS).cloned();
    let resource = resource.ok_or_else(Status::no_such_resource)?;
    let mut bound = pod.as_object().cloned().unwrap_or_default();
    bound.insert("status".to_owned(), Value::Object(kubelet::scheduled(pod, now)));
    let Some(Value::Object(spec)) = bound.get_mut("spec") else {
        return Err(Status::bad_request("a pod without a spec"));
    };
    spec.insert("nodeName".to_owned(), node.into());
    let version = text(&pod["metadata"]["resourceVersion"]).parse().unwrap_or(0);
    let current = shared.store.get(&resource.table, key);
    let ownership = current.filter(|current| current.version() == version).map(|current| {
        // A binding has no manager.
        current.ownership().settled(&resource, pod.as_object().unwrap_or(&Object::new()))
    });
    let draft = Draft::encode(&resource, &bound).owned(ownership.unwrap_or(Ownership::Shown));
    let written = shared.store.put(&resource.table, Expected::Version(version), &draft);
    written.map(drop).map_err(|_| {
        Status::conflict(resource.group_resource(), key.name(), "the pod has been modified")
    })
}

/// Completes the deletion of a pod. The uid protects a new pod of the same name.
fn remove(server: &ApiServer, key: &Key, pod: &Value) -> Result<(), Status> {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        "preconditions": {"uid": pod["metadata"]["uid"]},
    });
    server.delete_with(PODS, key.namespace(), key.name(), &options).map(drop)
}
