//! The world that the reconcilers of a run share: the server, things outside the cluster, and a record of their
//! work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use kube_informer::{BoxError, ObjectKey};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::panics::ON_PURPOSE;
use super::settings::Settings;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const NAMESPACE: &str = "default";
/// The label with the name of a child's parent.
pub(crate) const PARENT: &str = "model.example.com/parent";
/// The label with the slot of a child.
pub(crate) const SLOT: &str = "model.example.com/slot";
pub(crate) const FINALIZER: &str = "model.example.com/outside";

pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) settings: Settings,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    rng: fastrand::Rng,
    /// Whether intentional faults have ended.
    calm: bool,
    /// The uids of parents that have something outside the cluster.
    outside: BTreeSet<String>,
    /// Those of them that received it when their finalizer no longer held them: a cache was stale.
    unheld: BTreeSet<String>,
    /// Keys that are being reconciled, with the instance.
    active: Vec<(usize, ObjectKey)>,
    violations: Vec<String>,
    log: Vec<String>,
}

impl World {
    pub(crate) fn new(server: ApiServer, settings: Settings, seed: u64) -> Self {
        let state = State {
            rng: fastrand::Rng::with_seed(seed),
            calm: false,
            outside: BTreeSet::new(),
            unheld: BTreeSet::new(),
            active: Vec::new(),
            violations: Vec::new(),
            log: Vec::new(),
        };
        Self { server, settings, began: Instant::now(), state: Mutex::new(state) }
    }

    pub(crate) fn note(&self, line: impl AsRef<str>) {
        let at = self.began.elapsed().as_secs_f64();
        self.state.lock().log.push(format!("{at:10.3} {}", line.as_ref()));
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.state.lock().log.clone()
    }

    /// Records the violation of an invariant. The run fails at its next step, because a reconcile that panicked
    /// would be retried.
    fn violated(&self, what: String) {
        self.note(&what);
        self.state.lock().violations.push(what);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }

    pub(crate) fn set_calm(&self, calm: bool) {
        self.state.lock().calm = calm;
    }

    pub(crate) fn rng<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.state.lock().rng)
    }

    /// Records the start of a reconcile, which ends when the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>, instance: usize, key: &ObjectKey) -> Reconciling {
        let turn = (instance, key.clone());
        let active = self.state.lock().active.clone();
        if active.contains(&turn) {
            self.violated(format!("{instance} reconciles {key} twice at once"));
        }
        let elects = self.settings.elects && !self.settings.restores;
        if let Some((other, _)) = active.iter().find(|(other, _)| elects && *other != instance) {
            self.violated(format!("{instance} and {other} reconcile at once"));
        }
        self.state.lock().active.push(turn.clone());
        Reconciling { world: self.clone(), turn }
    }

    pub(crate) fn is_active(&self, instance: usize) -> bool {
        self.state.lock().active.iter().any(|(other, _)| *other == instance)
    }

    /// Lets a reconcile fail, panic or be slow at random.
    pub(crate) async fn mishap(&self) -> Result<(), BoxError> {
        let (calm, percent, kind) = {
            let mut state = self.state.lock();
            (state.calm, state.rng.u8(..100), state.rng.u8(..4))
        };
        if calm || percent >= self.settings.mishaps {
            self.dawdle().await;
            return Ok(());
        }
        match kind {
            0 => {
                self.note("a reconcile fails on purpose");
                Err("it fails on purpose".into())
            }
            1 => {
                self.note("a reconcile panics on purpose");
                std::panic::panic_any(ON_PURPOSE);
            }
            _ => {
                self.note("a reconcile takes its time");
                sleep(self.rng(|rng| SECOND * rng.u32(1..20))).await;
                Ok(())
            }
        }
    }

    /// Yields, so that anything else can happen in the middle of a reconcile.
    pub(crate) async fn dawdle(&self) {
        let milliseconds = self.rng(|rng| [0, 0, 1, rng.u64(1..100)][rng.usize(..4)]);
        if milliseconds > 0 {
            sleep(Duration::from_millis(milliseconds)).await;
        }
    }

    /// Records the creation of a child: in a strict run there must be no other one.
    pub(crate) fn created(&self, parent: &str, slot: &str) {
        if !self.settings.strict {
            return;
        }
        let secrets = self.server.list("secrets", NAMESPACE);
        let same = |child: &&Value| controller(child) == Some(parent) && label(child, SLOT) == slot;
        if secrets.iter().filter(same).count() < 2 {
            return;
        }
        let text = format!("a second copy of {slot} of {parent}");
        if self.settings.careful {
            self.violated(text);
        } else {
            self.note(text);
        }
    }

    /// Creates something outside the cluster for a parent.
    pub(crate) fn make_outside(&self, name: &str, uid: &str) {
        let object = self.server.get("configmaps", NAMESPACE, name);
        let is_held = object.is_some_and(|object| {
            let finalizers = object["metadata"]["finalizers"].as_array();
            object["metadata"]["uid"] == uid
                && finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
        });
        if !is_held && self.settings.strict {
            self.violated(format!("outside: made for {name} ({uid}), which nothing holds"));
        }
        let mut state = self.state.lock();
        if is_held {
            state.unheld.remove(uid);
        } else {
            state.unheld.insert(uid.to_owned());
        }
        let is_new = state.outside.insert(uid.to_owned());
        drop(state);
        if is_new {
            self.note(format!("outside: made for {name} ({uid})"));
        }
    }

    pub(crate) fn remove_outside(&self, name: &str, uid: &str) {
        let mut state = self.state.lock();
        state.unheld.remove(uid);
        let was_there = state.outside.remove(uid);
        drop(state);
        if was_there {
            self.note(format!("outside: removed for {name} ({uid})"));
        }
    }

    /// Records that the server was restored to a state without some objects, or their finalizers.
    pub(crate) fn restored(&self, held: &BTreeSet<String>) {
        let mut state = self.state.lock();
        let lost: Vec<_> = state.outside.difference(held).cloned().collect();
        state.unheld.extend(lost);
    }

    /// Compares the world outside with the parents that should have something there.
    pub(crate) fn check_outside(&self, expected: &BTreeSet<String>) -> Result<(), String> {
        let state = self.state.lock();
        let missing: Vec<_> = expected.difference(&state.outside).collect();
        let left: Vec<_> = state.outside.difference(expected).collect();
        if missing.is_empty() && left.iter().all(|uid| state.unheld.contains(*uid)) {
            return Ok(());
        }
        Err(format!("outside of the cluster {missing:?} are missing and {left:?} are left"))
    }
}

/// A running reconcile.
pub(crate) struct Reconciling {
    world: Arc<World>,
    turn: (usize, ObjectKey),
}

impl Drop for Reconciling {
    fn drop(&mut self) {
        let mut state = self.world.state.lock();
        if let Some(at) = state.active.iter().position(|turn| *turn == self.turn) {
            state.active.swap_remove(at);
        }
    }
}

/// Returns the uid of an object's controller.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

pub(crate) fn label<'a>(object: &'a Value, label: &str) -> &'a str {
    object["metadata"]["labels"][label].as_str().unwrap_or_default()
}
