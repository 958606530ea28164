//! The encoding and the storage that the informers of a run use, which the seed chooses.

use std::fmt;

use kube_informer::Storage;

const STORAGES: [Storage; 3] = [Storage::Packed, Storage::Plain, Storage::Decoded];

/// How informers read and store objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combination {
    /// All informers of the run read and store objects in this way.
    Same { protobuf: bool, storage: Storage },
    /// Each informer has its own combination, so that readers of both encodings share a server.
    Mixed,
}

impl Combination {
    const COUNT: usize = 8;

    fn nth(at: usize) -> Self {
        match STORAGES.get(at / 2) {
            Some(&storage) => Self::Same { protobuf: at.is_multiple_of(2), storage },
            None => Self::Mixed,
        }
    }

    /// Returns the combination of a seed. It is independent of everything else that the seed decides.
    pub(crate) fn of(seed: u64) -> Self {
        Self::nth(fastrand::Rng::with_seed(!seed).usize(..Self::COUNT))
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self::nth)
    }

    /// Returns whether the next informer requests protobuf. A mixed run only peeks at the next random number, so that
    /// a seed does the same in every combination.
    pub(crate) fn protobuf(self, rng: &fastrand::Rng) -> bool {
        match self {
            Self::Same { protobuf, .. } => protobuf,
            Self::Mixed => rng.clone().u64(..) & (1 << 17) == 0,
        }
    }

    pub(crate) fn storage(self, rng: &mut fastrand::Rng) -> Storage {
        let drawn = STORAGES[rng.usize(..STORAGES.len())];
        match self {
            Self::Same { storage, .. } => storage,
            Self::Mixed => drawn,
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same { protobuf: true, storage } => write!(f, "protobuf and {storage:?}"),
            Self::Same { protobuf: false, storage } => write!(f, "JSON and {storage:?}"),
            Self::Mixed => f.write_str("mixed encodings and storages"),
        }
    }
}
