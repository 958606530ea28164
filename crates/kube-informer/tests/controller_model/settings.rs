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
    /// Whether faults that make even a careful controller create a child twice are excluded.
    pub(crate) strict: bool,
    /// Whether reconciles record what they wrote.
    pub(crate) careful: bool,
    /// Whether the server is restored to earlier states.
    pub(crate) restores: bool,
    pub(crate) elects: bool,
    pub(crate) replicas: usize,
    pub(crate) workers: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) consistency_timeout: Duration,
    /// The longest pause between two attempts of a key.
    pub(crate) backoff_max: Duration,
    /// How many of a hundred reconciles fail, panic or are slow on purpose.
    pub(crate) mishaps: u8,
    /// Whether some parents ask for periodic reconciles.
    pub(crate) requeues: bool,
}

/// How a child is recognised as a parent's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kinship {
    /// By its owner reference: the controller `owns` children. The garbage collector deletes the children of a
    /// deleted parent, as in a cluster; an object without an owner is no child.
    Owner,
    /// By a label: the controller `watches` children, adopts orphans, and deletes the children of a deleted
    /// parent.
    Label,
}

impl Settings {
    pub(crate) fn of(seed: u64) -> Self {
        // Different random numbers from those of the run itself.
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
            // A reconcile with a stale cache may do something twice.
            consistency_timeout: if strict { 3600 * SECOND } else { SECOND * rng.u32(1..31) },
            // Candidates and leaders use their lease all the time.
            backoff_max: SECOND * if rng.u8(..8) == 0 && !elects { 1000 } else { 10 },
            mishaps: [0, 5, 25][rng.usize(..3)],
            requeues: rng.u8(..3) == 0,
        }
    }
}
