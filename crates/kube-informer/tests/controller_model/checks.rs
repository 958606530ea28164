//! Checks at quiet points, when there are no more faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::controller::Phase;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::keeper::data;
use super::parents::{AGAIN, Wants, collect_garbage};
use super::replica::Replica;
use super::run::Run;
use super::settings::Kinship;
use super::world::{NAMESPACE, PARENT, SECOND, SLOT, controller, label};

/// Limit for caches to converge, including a dead watch without bookmarks, and for a process to become leader.
/// The backoff of keys comes on top.
const CONVERGE_MAX: Duration = Duration::from_secs(1_100);

impl Run {
    /// Ends all faults, and checks that everything converges in bounded time, and then rests.
    pub(crate) async fn quiet(&mut self) {
        self.world.note("quiet");
        self.check();
        self.server.faults().clear();
        self.server.accept_connections();
        self.world.set_calm(true);
        // Requests without a response would wait indefinitely.
        self.server.restart();
        for at in 0..self.replicas.len() {
            self.replicas[at].supervise().await;
            self.start(at);
        }
        let settings = self.world.settings;
        let (began, mut pause) = (Instant::now(), SECOND / 4);
        loop {
            sleep(pause).await;
            for at in 0..self.replicas.len() {
                self.replicas[at].supervise().await;
                self.start(at);
            }
            if settings.kinship == Kinship::Owner {
                collect_garbage(&self.server);
            }
            self.check();
            let Err(why) = self.converged() else { break };
            let (waited, limit) = (began.elapsed(), CONVERGE_MAX + settings.backoff_max);
            assert!(waited < limit, "after {waited:?}: {why}");
            pause = (pause * 2).min(5 * SECOND);
        }
        self.world.note(format!("converged after {:?}", began.elapsed()));
        self.rest().await;
        self.world.set_calm(false);
    }

    /// Checks that nothing changes any more, and that no unnecessary work is done.
    async fn rest(&mut self) {
        // A failed key is retried once more after its backoff, however late that is.
        sleep(self.world.settings.backoff_max + AGAIN).await;
        let before = self.states();
        sleep(3 * AGAIN).await;
        // A requeued key may be running at this moment.
        let mut turns = 0;
        while let Err(why) = self.converged() {
            assert!(turns < 30, "not any more: {why}");
            turns += 1;
            sleep(SECOND / 7).await;
        }
        self.check();
        assert_eq!(before, self.states(), "something is written although all is well");
        let parents = self.parents();
        let again = parents.values().filter(|(wants, _)| wants.again).count();
        let mut running = 0;
        for replica in &self.replicas {
            let status = replica.status().expect("it runs");
            if status.phase == Phase::Running {
                running += 1;
                let queue = &status.queue;
                let counts = (queue.ready, queue.running, queue.delayed);
                assert_eq!(counts, (0, 0, again), "the queue rests: {status:?}");
            } else {
                assert_eq!((status.phase, status.queue.running), (Phase::Standby, 0));
            }
        }
        assert_eq!(running, 1, "one replica reconciles");
    }

    /// Returns the versions of all parents and children.
    fn states(&self) -> Vec<Value> {
        let all = ["configmaps", "secrets"].map(|resource| self.server.list(resource, NAMESPACE));
        all.into_iter().flatten().map(|mut object| object["metadata"].take()).collect()
    }

    /// Returns the wishes and the name of each parent, by its uid.
    fn parents(&self) -> BTreeMap<String, (Wants, String)> {
        let parents = self.server.list("configmaps", NAMESPACE).into_iter();
        let parents = parents.map(|parent| {
            let parent: ConfigMap = serde_json::from_value(parent).expect("it is one");
            let wants = Wants::of(&parent);
            (
                parent.metadata.uid.unwrap_or_default(),
                (wants, parent.metadata.name.unwrap_or_default()),
            )
        });
        parents.collect()
    }

    /// Checks that the children, and the outside world, are exactly what the parents ask for.
    fn converged(&self) -> Result<(), String> {
        // A reconcile that stops waiting for its cache may undo correct work.
        for process in self.replicas.iter().filter_map(|replica| replica.process.as_ref()) {
            process.is_current(&self.server)?;
        }
        for status in self.replicas.iter().filter_map(Replica::status) {
            let is_idle = status.queue.ready == 0 && status.queue.running == 0;
            if status.phase == Phase::Running && !is_idle {
                return Err(format!("keys are being reconciled: {status:?}"));
            }
        }
        let ending = |parent: &Value| !parent["metadata"]["deletionTimestamp"].is_null();
        if let Some(parent) = self.server.list("configmaps", NAMESPACE).into_iter().find(ending) {
            return Err(format!("a parent is still being deleted: {parent}"));
        }
        let parents = self.parents();
        let mut missing: BTreeSet<(String, String, u32)> = BTreeSet::new();
        for (uid, (wants, _)) in &parents {
            let children = wants.children.iter();
            missing.extend(children.map(|(slot, number)| (uid.clone(), slot.clone(), *number)));
        }
        for child in self.server.list("secrets", NAMESPACE) {
            let Some(uid) = controller(&child) else {
                if self.world.settings.kinship == Kinship::Label {
                    return Err(format!("an orphan is left: {child}"));
                }
                continue;
            };
            let (uid, slot) = (uid.to_owned(), label(&child, SLOT).to_owned());
            let Some((wants, name)) = parents.get(&uid) else {
                return Err(format!("the parent of a child is gone: {child}"));
            };
            let number = wants.children.get(&slot).copied();
            let held: Secret = serde_json::from_value(child.clone()).expect("it is one");
            if number.is_none_or(|number| held.data != Some(data(number)))
                || label(&child, PARENT) != name
            {
                return Err(format!("a child is not as {name} wants it, {wants:?}: {child}"));
            }
            if !missing.remove(&(uid, slot, number.unwrap_or_default())) {
                return Err(format!("a child is there twice: {child}"));
            }
        }
        if !missing.is_empty() {
            return Err(format!("children are missing: {missing:?}"));
        }
        let outside = parents.into_iter().filter(|(_, (wants, _))| wants.outside);
        self.world.check_outside(&outside.map(|(uid, _)| uid).collect())
    }
}
