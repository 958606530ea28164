//! Faults, disturbances and restores.

use std::collections::BTreeSet;
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use tokio::time::sleep;

use super::faults::{self, Aim, Mood};
use super::run::Run;
use super::world::{FINALIZER, NAMESPACE, SECOND};

/// More versions than all controllers write before every cache has noticed the restore.
const VERSIONS_BEFORE_RESTORE: u32 = 150;

impl Run {
    pub(crate) fn inject(&mut self) {
        let strict = self.world.settings.strict;
        let aim = Aim {
            resources: ["configmaps", "secrets", "secrets"],
            // Some would lose the response to a write.
            any_verb: !strict,
            stale_lists: !strict,
        };
        // Lost events would need a list to recover, and damaged objects a change.
        let mood = Mood { slow: self.rng.bool(), lossy: false, damaged: false };
        let text = match self.rng.u8(..10) {
            0 | 1 if strict => {
                drop(self.server.faults().control_plane_upgrade());
                "a control plane upgrade".to_owned()
            }
            0 | 1 => faults::scenario(&mut self.rng, &self.server),
            2..5 => faults::inject(&mut self.rng, &self.server, mood, aim),
            5 => self.delay_events(),
            _ => self.break_writes(),
        };
        self.world.note(text);
    }

    /// Makes the caches of children lag behind the writes.
    fn delay_events(&mut self) -> String {
        let late = Duration::from_millis(self.rng.u64(100..20_000));
        let resource = ["configmaps", "secrets", "secrets"][self.rng.usize(..3)];
        let watches = self.server.faults().on(Verb::Watch).resource(resource);
        watches.after_events(0).times(2).inject(Fault::Latency(late));
        format!("events of {resource} come {late:?} late")
    }

    fn break_writes(&mut self) -> String {
        let verbs =
            [Verb::Create, Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::Get];
        let verb = verbs[self.rng.usize(..verbs.len())];
        let times = [1, 1, 2, 4, 10][self.rng.usize(..5)];
        let fault = match self.rng.u8(..if self.world.settings.strict { 8 } else { 14 }) {
            0 => Fault::Refused,
            1 => Fault::Reset,
            2 => Fault::status([500, 503, 504][self.rng.usize(..3)]),
            3 | 4 => Fault::status(409),
            5 => Fault::status_retry_after(429, "1"),
            6 => Fault::status([403, 422][self.rng.usize(..2)]),
            7 => Fault::Latency(Duration::from_millis(self.rng.u64(1..10_000))),
            8..12 => Fault::LostAnswer,
            12 => Fault::Truncated,
            _ => [Fault::HalfOpen, Fault::StalledHeaders][self.rng.usize(..2)].clone(),
        };
        let text = format!("{} on {verb}, {times} times", fault.name());
        self.server.faults().on(verb).times(times).inject(fault);
        text
    }

    /// Fails all requests for leases for a while: a leader may lose its term.
    pub(crate) fn fail_leases(&mut self) {
        let times = self.rng.u64(5..40);
        for verb in [Verb::Get, Verb::Update] {
            let leases = self.server.faults().on(verb).resource("leases").times(times);
            leases.inject(Fault::status(500));
        }
        self.world.note(format!("leases fail {times} times"));
    }

    pub(crate) fn disturb(&mut self) {
        let text = match self.rng.u8(..5) {
            0 => {
                self.server.drop_watches();
                "drop watches".to_owned()
            }
            1 | 2 => {
                self.server.restart();
                "restart".to_owned()
            }
            3 => {
                let top = self.server.store().revision();
                self.server.store().compact(top - self.rng.u64(..3));
                "compact".to_owned()
            }
            _ => format!("{} idle watches are cut", self.network.cut_idle()),
        };
        self.world.note(text);
    }

    /// Restores the server to a snapshot.
    ///
    /// An informer that is ahead must notice before the server reaches the same version again: after that,
    /// nothing shows that this is another history. Therefore many versions are lost, and watches end in a way
    /// that requires a list.
    pub(crate) async fn restore(&mut self) {
        if self.snapshots.is_empty() {
            return;
        }
        self.quiet().await;
        let snapshot = self.snapshots.swap_remove(self.rng.usize(..self.snapshots.len()));
        let revision = snapshot.revision();
        self.snapshots.retain(|other| other.revision() <= revision);
        for _ in 0..VERSIONS_BEFORE_RESTORE {
            self.nudge("Event", "events");
        }
        self.nudge("ConfigMap", "configmaps");
        self.nudge("Secret", "secrets");
        sleep(SECOND).await;
        self.world.note(format!("restore {revision}"));
        self.server.restore(&snapshot);
        self.world.restored(&self.held());
        for _ in 0..20 {
            let top = self.server.store().revision();
            let watches = self.server.watches() as u64;
            if self.versions().all(|version| version <= top) {
                return;
            }
            self.server.faults().on(Verb::Watch).after_events(0).times(watches).inject(Fault::Gone);
            sleep(SECOND / 1000).await;
            self.server.faults().clear();
            sleep(2 * SECOND).await;
        }
        panic!("a restore was not noticed");
    }

    /// Creates and deletes an object of a kind.
    fn nudge(&self, kind: &str, resource: &str) {
        let metadata = serde_json::json!({"namespace": NAMESPACE, "name": "nudge"});
        let mut object =
            serde_json::json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        if kind == "Event" {
            object["involvedObject"] = serde_json::json!({"namespace": NAMESPACE});
        }
        self.server.create(object).expect("nothing has this name");
        self.server.delete(resource, NAMESPACE, "nudge").expect("it is there");
    }

    /// Returns the parents with a finalizer.
    fn held(&self) -> BTreeSet<String> {
        let parents = self.server.list("configmaps", NAMESPACE).into_iter();
        let is_held = |parent: &serde_json::Value| {
            let finalizers = parent["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
        };
        let uid = |parent: serde_json::Value| parent["metadata"]["uid"].as_str().map(str::to_owned);
        parents.filter(is_held).filter_map(uid).collect()
    }

    /// Returns the versions of all caches.
    fn versions(&self) -> impl Iterator<Item = u64> {
        let processes = self.replicas.iter().filter_map(|replica| replica.process.as_ref());
        let both = |process: &super::replica::Process| {
            [process.parents.resource_version(), process.children.resource_version()]
        };
        processes.flat_map(both).filter_map(|version| version.as_str().parse().ok())
    }
}
