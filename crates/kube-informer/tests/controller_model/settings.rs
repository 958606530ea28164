//! The settings of a run, all from its seed.

use std::time::Duration;

use super::world::SECOND;

#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each changes one thing, whatever the others are"
)]
pub(crate) struct Settings {
    pub(crate) kinship: Kinship,
    /// Nothing happens that makes a careful controller create a child twice.
    pub(crate) strict: bool,
    /// Reconciles say what they wrote.
    pub(crate) careful: bool,
    /// The server goes back to former states.
    pub(crate) restores: bool,
    pub(crate) elects: bool,
    pub(crate) replicas: usize,
    pub(crate) workers: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) consistency_timeout: Duration,
    /// The longest pause between two tries of a key.
    pub(crate) backoff_max: Duration,
    /// How many of a hundred reconciles fail, panic or are slow on purpose.
    pub(crate) mishaps: u8,
    /// Some parents ask to be reconciled again after a time.
    pub(crate) requeues: bool,
}

/// How a child is known as a parent's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kinship {
    /// By its owner reference: the controller `owns` children. What a parent that is gone has left is
    /// deleted by the garbage collector, as it is in a cluster; an object without an owner is no child.
    Owner,
    /// By a label: the controller `watches` children, adopts orphans, and deletes what a parent that is
    /// gone has left.
    Label,
}

impl Settings {
    pub(crate) fn of(seed: u64) -> Self {
        // Other numbers than those that the run itself is made of.
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x5e77_1265);
        let strict = rng.bool();
        let restores = !strict && rng.u8(..4) == 0;
        let elects = rng.u8(..3) == 0;
        let two = elects && !strict && rng.u8(..3) > 0;
        Self {
            kinship: if rng.bool() { Kinship::Owner } else { Kinship::Label },
            strict,
            careful: true,
            restores,
            elects,
            replicas: if two { 2 } else { 1 },
            workers: rng.usize(1..=8),
            timeout: rng.bool().then(|| SECOND * rng.u32(2..8)),
            // A reconcile on a cache that is behind may do something twice.
            consistency_timeout: if strict { 3600 * SECOND } else { SECOND * rng.u32(1..31) },
            // Candidates and leaders look at their lease all the while.
            backoff_max: SECOND * if rng.u8(..8) == 0 && !elects { 1000 } else { 10 },
            mishaps: [0, 5, 25][rng.usize(..3)],
            requeues: rng.u8(..3) == 0,
        }
    }
}
