//! Faults beyond single requests.

use embedded_apiserver::{ApiServer, Denial, Verb};

use super::faults::{self, Aim};
use super::informers::Informer;
use super::run::Run;

const AIM: Aim =
    Aim { resources: ["pods", "pods", "configmaps"], any_verb: true, stale_lists: true };

/// Injects a denial, and describes it.
pub(crate) fn deny(rng: &mut fastrand::Rng, server: &ApiServer) -> String {
    let verbs = [vec![Verb::Watch], vec![Verb::List], vec![Verb::List, Verb::Watch]];
    let verbs = verbs[rng.usize(..3)].clone();
    let resource = ["pods", "configmaps"][rng.usize(..2)];
    let text = format!("deny {verbs:?} of {resource}");
    server.access().deny(Denial::verbs(verbs).resource(resource));
    text
}

impl Run {
    pub(crate) fn inject(&mut self) {
        self.troubled = true;
        let text = match self.rng.u8(..8) {
            0 => faults::scenario(&mut self.rng, &self.server),
            _ => faults::inject(&mut self.rng, &self.server, self.mood, AIM),
        };
        self.note(text);
    }

    pub(crate) fn disturb(&mut self) {
        let text = match self.rng.u8(..6) {
            0 | 1 => {
                self.server.drop_watches();
                "drop watches"
            }
            2 | 3 => {
                self.server.restart();
                "restart"
            }
            _ => {
                self.server.store().compact(self.history.top() - self.rng.u64(..3));
                "compact"
            }
        };
        self.note(text);
    }

    pub(crate) fn forbid_or_allow(&mut self) {
        let text = match self.rng.u8(..4) {
            0 => {
                self.server.refuse_connections();
                "refuse".to_owned()
            }
            1 => deny(&mut self.rng, &self.server),
            _ => {
                self.server.accept_connections();
                self.server.access().allow_everything();
                "accept and allow".to_owned()
            }
        };
        self.troubled = true;
        self.note(text);
    }

    /// Restores the server to a snapshot. Informers have to believe what they see, so the run never lets them mistake
    /// one history for another.
    pub(crate) async fn restore(&mut self) {
        self.settle().await;
        self.check();
        // With several namespaces only one version is reported, so it is unknown whether all of them have seen that
        // the server went back.
        if self.snapshots.is_empty() || self.informers.iter().any(Informer::is_in_parts) {
            return;
        }
        let snapshot = self.snapshots.swap_remove(self.rng.usize(..self.snapshots.len()));
        let revision = snapshot.revision();
        // Later snapshots belong to a history that never happened.
        self.snapshots.retain(|other| other.revision() <= revision);
        let watching =
            self.informers.iter().all(Informer::is_watching) && self.mirror.is_watching();
        // A watch may be ahead of the server even if its client is not: it has passed changes outside of the client's
        // selection. Nothing would ever reveal what it then omits from the new history.
        let ahead = self.versions().all(|version| version > revision);
        let silent = self.rng.bool() && !self.troubled && watching && ahead;
        let ahead = self.versions().filter(|v| *v > revision);
        // Data of the old history may still be in transit.
        let underway = (self.troubled && self.mood.slow).then_some(revision + 1);
        self.limit = ahead.chain(underway).chain(self.limit).min();
        self.note(format!("restore {revision}, silent={silent}, limit={:?}", self.limit));
        if silent {
            self.server.restore_silently(&snapshot);
        } else {
            self.server.restore(&snapshot);
        }
        self.history.branch(revision);
    }

    /// Makes the mirror's store refuse all or some lists, and some events.
    pub(crate) fn let_the_store_refuse(&mut self) {
        let lists = [100, 60][self.rng.usize(..2)];
        let events = [0, 0, 30][self.rng.usize(..3)];
        self.note(format!("the store refuses {lists} % of lists, {events} % of events"));
        self.mirror.refuse(lists, events);
    }

    /// Returns the versions of the informers and of the mirror.
    pub(crate) fn versions(&self) -> impl Iterator<Item = u64> {
        self.informers.iter().filter_map(Informer::version).chain(self.mirror.last_seen())
    }
}
