//! Simulated pods: one task that acts as the scheduler and as the kubelet of every node.
//!
//! It is a client like any other, without the wire: it lists and watches pods, and writes with the
//! version that it has read. The next step of a pod depends only on the pod ([`Step::next`]), never
//! on earlier steps. The only other state is when the step is due.
//!
//! # Architecture invariants
//! - There is one task, at most one timer for each pod, and none for pods that wait for others.
//! - The task does not keep the server alive: it holds a reference for a single turn, never while
//!   it waits.

mod act;
mod address;
mod condition;
mod container;
mod delays;
mod events;
mod identity;
mod kubelet;
mod node;
pub(crate) mod qos;
mod scheduler;
mod step;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use address::Addresses;
pub use delays::PodDelays;
use events::Recorder;
use scheduler::Node;
use step::Step;

use crate::print::read::{items, text};
use crate::server::{ApiServer, Shared};
use crate::store::{Key, PageRequest, Revision, Subscription};

const PODS: &str = "pods";
const NODES: &str = "nodes";

/// The number of changes that are read, and of steps that are done, before the task yields.
const TURN_MAX: usize = 64;

/// Creates the node, and simulates pods until the server is dropped. Requires a tokio runtime.
pub(crate) fn start(server: &ApiServer) {
    let mut node = server.create(node::object()).expect("a new server has no such node");
    node["status"] = node::status(&server.shared.clock.now_text());
    server.update_status(node).expect("the node was just made");
    let store = server.store();
    let subscribe = |table| store.subscribe(table).expect("built-in resources are always served");
    let cluster = Cluster {
        delays: server.shared.options.pod_delays.clone(),
        changes: subscribe(PODS),
        node_changes: subscribe(NODES),
        position: None,
        restores: 0,
        pods: BTreeMap::new(),
        nodes: Vec::new(),
        timers: BTreeMap::new(),
        timer_count: 0,
        addresses: Addresses::default(),
        recorder: Recorder::default(),
    };
    tokio::spawn(run(Arc::downgrade(&server.shared), store.subscribe_revision(), cluster));
}

/// Runs the task. `written` signals all writes, including restores of snapshots, for which tables
/// send no signal.
async fn run(shared: Weak<Shared>, mut written: watch::Receiver<u64>, mut cluster: Cluster) {
    loop {
        written.borrow_and_update();
        let Some(shared) = shared.upgrade() else { return };
        let busy = cluster.turn(&ApiServer { shared });
        if busy {
            tokio::task::yield_now().await;
            continue;
        }
        let due = cluster.timers.first_key_value().map(|((due, _), _)| *due);
        tokio::select! {
            biased;
            changed = written.changed() => if changed.is_err() { return },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

/// When a timer fires, and a number that distinguishes it from others at the same time.
type Timer = (Instant, u64);

/// The state of the task.
#[derive(Debug)]
struct Cluster {
    delays: PodDelays,
    changes: Subscription,
    node_changes: Subscription,
    /// The version up to which all changes of pods are known. `None` before the first list.
    position: Option<u64>,
    /// The number of restores of the store at that version.
    restores: u64,
    pods: BTreeMap<Arc<Key>, Tracked>,
    nodes: Vec<Node>,
    timers: BTreeMap<Timer, Arc<Key>>,
    timer_count: u64,
    addresses: Addresses,
    recorder: Recorder,
}

/// The task's state for a pod.
#[derive(Debug, Default)]
struct Tracked {
    uid: String,
    address: Option<u16>,
    planned: Option<(Step, Timer)>,
    /// Whether no node was found at the last attempt. It is retried when the nodes change.
    unplaced: bool,
}

impl Cluster {
    /// Reads changes and carries out steps that are due, up to a limit. Returns whether there is
    /// more to do.
    fn turn(&mut self, server: &ApiServer) -> bool {
        let unread = self.read_pods(server);
        self.read_nodes(server);
        let now = Instant::now();
        for _ in 0..TURN_MAX {
            match self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
                None => return unread,
                Some(timer) => {
                    let key = timer.remove();
                    self.act(server, &key);
                }
            }
        }
        true
    }

    /// Reads changes of pods. Returns whether there are more.
    fn read_pods(&mut self, server: &ApiServer) -> bool {
        let store = server.store();
        let after = self.position.filter(|_| self.restores == store.restores());
        let batch = after.map(|after| store.events_after(PODS, &self.changes, after, TURN_MAX));
        let Some(Ok(batch)) = batch else {
            self.list_pods(server);
            return false;
        };
        self.position = Some(batch.seen);
        for event in batch.events {
            if event.revision.is_deleted() {
                self.forget(event.revision.key());
            } else {
                self.observe(server, &event.revision);
            }
        }
        batch.remaining > 0
    }

    /// Starts over, as after a restart of the scheduler and kubelets.
    fn list_pods(&mut self, server: &ApiServer) {
        self.restores = server.store().restores();
        self.pods.clear();
        self.timers.clear();
        self.addresses = Addresses::default();
        self.node_changes.changed.mark_news();
        let (version, pods) = everything(server, PODS);
        self.position = Some(version);
        for pod in &pods {
            self.observe(server, pod);
        }
    }

    /// Reads the nodes if they have changed, and retries unplaced pods.
    fn read_nodes(&mut self, server: &ApiServer) {
        if !self.node_changes.changed.has_news() {
            return;
        }
        self.node_changes.changed.mark_seen();
        let (_, nodes) = everything(server, NODES);
        self.nodes = nodes.iter().map(|node| Node::read(&value(node))).collect();
        let mut waiting = Vec::new();
        for (key, tracked) in &mut self.pods {
            if std::mem::replace(&mut tracked.unplaced, false) {
                waiting.push(Arc::clone(key));
            }
        }
        for pod in waiting.iter().filter_map(|key| server.store().get(PODS, key)) {
            self.observe(server, &pod);
        }
    }

    /// Plans the next step of a pod.
    fn observe(&mut self, server: &ApiServer, revision: &Revision) {
        let (key, pod) = (revision.key(), value(revision));
        let uid = text(&pod["metadata"]["uid"]);
        if self.pods.get(key).is_some_and(|tracked| tracked.uid != uid) {
            self.forget(key);
        }
        let tracked = self.pods.entry(Arc::clone(key)).or_default();
        uid.clone_into(&mut tracked.uid);
        if tracked.address.is_none() {
            tracked.address = self.addresses.claim(text(&pod["status"]["podIP"]));
        }
        let next = Step::next(&pod);
        let before = tracked.planned.map(|(step, _)| step);
        if next == Some(Step::Stop) && before != next {
            self.tell_killing(server, &pod);
        }
        self.plan(key, next.map(|step| (step, step.delay(&pod, &self.delays))));
    }

    /// Sets the only timer of a pod.
    fn plan(&mut self, key: &Arc<Key>, next: Option<(Step, Duration)>) {
        let Some(tracked) = self.pods.get_mut(key) else { return };
        let old = tracked.planned.take();
        if let Some((_, timer)) = old {
            self.timers.remove(&timer);
        }
        let Some((step, delay)) = next else { return };
        // A time too far in the future is never reached.
        let due = Instant::now().checked_add(delay);
        // A change of the pod does not delay a step that is already planned.
        let planned = old.filter(|(planned, _)| *planned == step).map(|(_, (due, _))| due);
        let Some(due) = due.into_iter().chain(planned).min() else { return };
        self.timer_count += 1;
        let timer = (due, self.timer_count);
        tracked.planned = Some((step, timer));
        self.timers.insert(timer, Arc::clone(key));
    }

    fn tell_killing(&mut self, server: &ApiServer, pod: &Value) {
        for (specs, statuses) in
            [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")]
        {
            let statuses = items(&pod["status"][statuses]);
            for spec in items(&pod["spec"][specs]) {
                let own = statuses.iter().find(|status| status["name"] == spec["name"]);
                if own.is_some_and(container::is_running) {
                    self.recorder.killing(server, pod, spec);
                }
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(tracked) = self.pods.remove(key) else { return };
        if let Some((_, timer)) = tracked.planned {
            self.timers.remove(&timer);
        }
        if let Some(address) = tracked.address {
            self.addresses.free(address);
        }
    }
}

/// Returns all objects of a built-in resource, and the version at which they were read.
fn everything(server: &ApiServer, table: &str) -> (u64, Vec<Arc<Revision>>) {
    let page = server.store().list(table, None, &PageRequest::default());
    page.map(|page| (page.version, page.items)).expect("built-in resources are always served")
}

fn value(revision: &Revision) -> Value {
    Value::Object(revision.to_map())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_server_is_freed_while_the_task_waits() {
        let server = ApiServer::builder().pods_run(true).build();
        let shared = Arc::downgrade(&server.shared);
        tokio::task::yield_now().await;
        drop(server);
        assert_eq!(shared.strong_count(), 0);
    }
}
