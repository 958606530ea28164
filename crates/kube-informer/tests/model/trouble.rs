//! What goes wrong.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Denial, Fault, FaultRule, Verb};

use super::informers::Informer;
use super::run::Run;

/// How long the server is down at most.
pub(crate) const DOWN_MAX: Duration = Duration::from_secs(100);

/// What a run allows itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mood {
    /// Answers come late, or in bits.
    pub(crate) slow: bool,
    /// Events get lost without a trace.
    pub(crate) lossy: bool,
    /// Objects are damaged on their way.
    pub(crate) damaged: bool,
}

/// One more rule. What it is.
pub(crate) fn inject(rng: &mut fastrand::Rng, server: &ApiServer, mood: Mood) -> String {
    let verb = [Verb::List, Verb::Watch, Verb::Watch][rng.usize(..3)];
    let mut rule = if rng.u8(..6) == 0 { server.faults().any() } else { server.faults().on(verb) };
    let mut text = format!("{verb}");
    if rng.bool() {
        let resource = ["pods", "pods", "configmaps"][rng.usize(..3)];
        rule = rule.resource(resource);
        text = format!("{text} of {resource}");
    }
    match rng.u8(..4) {
        0 => {
            let nth = rng.u64(1..4);
            rule = rule.nth(nth);
            text = format!("{text} nth {nth}");
        }
        1 => rule = rule.probability(0.5),
        _ => {}
    }
    (rule, text) = point(rng, rule, text);
    let times = [1, 1, 1, 2, 4, 7][rng.usize(..6)];
    let fault = any(rng, mood);
    let text = format!("{} on {text}, {times} times", fault.name());
    rule.times(times).inject(fault);
    text
}

fn point<'a>(
    rng: &mut fastrand::Rng,
    rule: FaultRule<'a>,
    text: String,
) -> (FaultRule<'a>, String) {
    match rng.u8(..4) {
        0 | 1 => {
            let events = [0, 0, 1, 2, 5][rng.usize(..5)];
            (rule.after_events(events), format!("{text} after {events} events"))
        }
        2 => {
            let bytes = rng.u64(1..3000);
            (rule.after_bytes(bytes), format!("{text} after {bytes} bytes"))
        }
        _ => (rule, text),
    }
}

fn any(rng: &mut fastrand::Rng, mood: Mood) -> Fault {
    if mood.damaged && rng.u8(..3) == 0 {
        return damage(rng);
    }
    if mood.slow && rng.u8(..6) == 0 {
        return delay(rng);
    }
    if mood.lossy && rng.u8(..6) == 0 {
        return [Fault::DropEvent, Fault::ReorderEvents][rng.usize(..2)].clone();
    }
    match rng.u8(..27) {
        0 => Fault::Refused,
        1 => Fault::Down(DOWN_MAX.mul_f64(rng.f64())),
        2 | 3 => Fault::Reset,
        4 => Fault::LostAnswer,
        5 | 6 => Fault::HalfOpen,
        7 => Fault::StalledHeaders,
        8 => Fault::StalledBody,
        9 => Fault::status([401, 403, 404, 500, 503][rng.usize(..5)]),
        10 => Fault::status([400, 422, 504, 409][rng.usize(..4)]),
        11 => Fault::status_retry_after(429, ["1", "20", "soon", "-3"][rng.usize(..4)]),
        12..15 => Fault::Gone,
        15 => Fault::html([200, 502][rng.usize(..2)]),
        16 => Fault::content_type("text/html"),
        17 => Fault::StaleList { versions: rng.u64(1..20) },
        18 => Fault::Compact,
        19 => Fault::DropWatches,
        20 => Fault::Restart,
        21 | 22 => Fault::DuplicateEvent,
        23 => Fault::BookmarkLost,
        24 => Fault::EndBookmarkMissing,
        25 => Fault::SplitUtf8,
        _ => Fault::Truncated,
    }
}

fn delay(rng: &mut fastrand::Rng) -> Fault {
    let late = Duration::from_millis(rng.u64(1..40_000));
    // At least a kilobyte a second: some dozen events come within half a minute.
    let (bytes, every) = (rng.usize(100..500), Duration::from_millis(rng.u64(10..100)));
    if rng.bool() { Fault::Latency(late) } else { Fault::SlowBytes { bytes, every } }
}

fn damage(rng: &mut fastrand::Rng) -> Fault {
    match rng.u8(..4) {
        0 => Fault::WrongType,
        1 => Fault::Oversized { bytes: 50_000 },
        2 => Fault::TooDeep { levels: 2_000 },
        _ => Fault::MalformedUtf8,
    }
}

/// Several that come together: everything has to be listed again, and that goes wrong, too.
pub(crate) fn scenario(rng: &mut fastrand::Rng, server: &ApiServer) -> String {
    let faults = server.faults();
    let relist = || faults.on(Verb::Watch).after_events(0).times(3).inject(Fault::Gone);
    let lists = |fault| faults.on(Verb::List).times(3).inject(fault);
    let text = match rng.u8(..7) {
        0 => {
            drop(faults.control_plane_upgrade());
            "a control plane upgrade"
        }
        1 => {
            drop(faults.flaky_network(0.2));
            "a flaky network"
        }
        2 | 3 => {
            relist();
            lists(Fault::StaleList { versions: rng.u64(1..8) });
            "relists from servers that lag"
        }
        4 => {
            relist();
            faults.on(Verb::List).after_bytes(rng.u64(100..2000)).times(3).inject(Fault::Reset);
            "relists that break"
        }
        5 => {
            relist();
            faults.on(Verb::List).nth(2).times(2).inject(Fault::Compact);
            "relists whose pages expire"
        }
        _ => {
            relist();
            faults.on(Verb::Watch).nth(1).times(2).inject(Fault::EndBookmarkMissing);
            "relists without an end"
        }
    };
    text.to_owned()
}

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
            0 => scenario(&mut self.rng, &self.server),
            _ => inject(&mut self.rng, &self.server, self.mood),
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
