//! What goes wrong.

use embedded_apiserver::{ApiServer, Denial, Verb};

use super::faults::{self, Aim};
use super::informers::Informer;
use super::run::Run;

const AIM: Aim =
    Aim { resources: ["pods", "pods", "configmaps"], any_verb: true, stale_lists: true };

/// Forbids something. What it is.
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

    /// The server goes back to a snapshot. Informers cannot but believe what they see, and are
    /// not given a chance to mistake one history for another.
    pub(crate) async fn restore(&mut self) {
        self.settle().await;
        self.check();
        // Where there are several versions, but one is said, nobody knows whether all of them have
        // seen that the server went back.
        if self.snapshots.is_empty() || self.informers.iter().any(Informer::is_in_parts) {
            return;
        }
        let snapshot = self.snapshots.swap_remove(self.rng.usize(..self.snapshots.len()));
        let revision = snapshot.revision();
        // What was after it has never been.
        self.snapshots.retain(|other| other.revision() <= revision);
        let watching =
            self.informers.iter().all(Informer::is_watching) && self.mirror.is_watching();
        // A watch whose client is not ahead of the server may be: it has passed what its client did not ask
        // for. Nothing would ever show what it then leaves out of the new history.
        let ahead = self.versions().all(|version| version > revision);
        let silent = self.rng.bool() && !self.troubled && watching && ahead;
        let ahead = self.versions().filter(|v| *v > revision);
        // Bits of the other history may still be on their way.
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

    /// The store of the mirror takes no lists, or only some, and not every event either.
    pub(crate) fn let_the_store_refuse(&mut self) {
        let lists = [100, 60][self.rng.usize(..2)];
        let events = [0, 0, 30][self.rng.usize(..3)];
        self.note(format!("the store refuses {lists} % of lists, {events} % of events"));
        self.mirror.refuse(lists, events);
    }

    /// Those that informers, and the mirror, are at.
    pub(crate) fn versions(&self) -> impl Iterator<Item = u64> {
        self.informers.iter().filter_map(Informer::version).chain(self.mirror.last_seen())
    }
}
