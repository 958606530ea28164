//! Scenarios of several faults, as they come together.

use std::time::Duration;

use super::Faults;
use crate::faults::{Fault, FaultId};
use crate::request::Verb;
use crate::store::Snapshot;

impl Faults<'_> {
    /// The server is replaced by a newer one: watches end, connections break, two requests are
    /// refused, and the next two told to come back in a second, as the new one is not warm yet. It
    /// has no history from before its start, so that watches from older versions get a 410.
    pub fn control_plane_upgrade(self) -> Vec<FaultId> {
        self.server.drop_watches();
        self.server.restart();
        self.server.store().compact(u64::MAX);
        vec![
            self.any().times(2).inject(Fault::Refused),
            self.any().times(2).inject(Fault::status_retry_after(429, "1")),
        ]
    }

    /// A network that loses connections: with the given probability each, a request comes late, is
    /// reset before it is carried out, or after it, or its answer breaks off within the first
    /// bytes; and after each event a watch is reset. Lasts until the rules are removed.
    pub fn flaky_network(self, probability: f64) -> Vec<FaultId> {
        let any = || self.any().always().probability(probability);
        let watch = || self.on(Verb::Watch).always().probability(probability);
        vec![
            any().inject(Fault::Latency(Duration::from_millis(300))),
            any().inject(Fault::Reset),
            any().inject(Fault::LostAnswer),
            any().after_bytes(40).inject(Fault::Reset),
            watch().after_events(1).inject(Fault::Reset),
        ]
    }

    /// etcd is restored from a backup: objects and versions go back to the snapshot, connections
    /// break, and the first three requests are refused while the servers start.
    pub fn etcd_restore(self, snapshot: &Snapshot) -> Vec<FaultId> {
        self.server.restore(snapshot);
        vec![self.any().times(3).inject(Fault::Refused)]
    }

    /// Behind a load balancer, a server that lags is asked by chance: with the given probability a
    /// list is as old as `versions` ago. Lasts until the rule is removed. It is about lists only:
    /// watches are told everything, in time.
    pub fn stale_lists(self, versions: u64, probability: f64) -> Vec<FaultId> {
        let list = self.on(Verb::List).always().probability(probability);
        vec![list.inject(Fault::StaleList { versions })]
    }
}
