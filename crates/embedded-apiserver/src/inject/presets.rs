//! Scenarios that combine several faults.

use std::time::Duration;

use super::Faults;
use crate::faults::{Fault, FaultId};
use crate::request::Verb;
use crate::store::Snapshot;

impl Faults<'_> {
    /// Simulates an upgrade of the control plane. Watches end, connections break, two requests are
    /// refused, and the next two are told to retry after a second because the new server is still
    /// starting. The new server has no earlier history, so watches from older versions receive a
    /// 410.
    pub fn control_plane_upgrade(self) -> Vec<FaultId> {
        self.server.drop_watches();
        self.server.restart();
        self.server.store().compact(u64::MAX);
        vec![
            self.any().times(2).inject(Fault::Refused),
            self.any().times(2).inject(Fault::status_retry_after(429, "1")),
        ]
    }

    /// Simulates a network that loses connections. With the given probability each, a request is
    /// delayed, is reset before or after it is carried out, or its response breaks off within the
    /// first bytes; and a watch is reset after each event. Lasts until the rules are removed.
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

    /// Simulates a restore of etcd from a backup. Objects and versions revert to the snapshot,
    /// connections break, and the first three requests are refused while the servers start.
    pub fn etcd_restore(self, snapshot: &Snapshot) -> Vec<FaultId> {
        self.server.restore(snapshot);
        vec![self.any().times(3).inject(Fault::Refused)]
    }

    /// Simulates a lagging server behind a load balancer. With the given probability, a list is
    /// `versions` versions old. Lasts until the rule is removed. Watches are not affected.
    pub fn stale_lists(self, versions: u64, probability: f64) -> Vec<FaultId> {
        let list = self.on(Verb::List).always().probability(probability);
        vec![list.inject(Fault::StaleList { versions })]
    }
}
