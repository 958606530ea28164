//! Data that many objects have in common, stored once.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use super::header::{FoundLabels, FoundOwner};
use super::{Labels, Owner};

/// With fewer entries than this, looking for dead ones is not worth it.
const PRUNE_ENTRIES_MIN: usize = 256;

/// The labels and owners of one informer's objects.
#[derive(Default)]
pub(super) struct Shared {
    none: Arc<Labels>,
    pools: Mutex<Pools>,
}

#[derive(Default)]
struct Pools {
    labels: Pool<Labels>,
    owners: Pool<Owner>,
}

impl Shared {
    /// Shares the labels and the owner of an object. If two labels have the same name, the last one counts.
    pub(super) fn share(
        &self,
        labels: &mut FoundLabels<'_>,
        owner: Option<&FoundOwner<'_>>,
    ) -> (Arc<Labels>, Option<Arc<Owner>>) {
        if labels.is_empty() && owner.is_none() {
            return (self.none.clone(), None);
        }
        sort(labels);
        let mut pools = self.pools.lock();
        let shared =
            if labels.is_empty() { self.none.clone() } else { pools.labels.share_labels(labels) };
        (shared, owner.map(|owner| pools.owners.share_owner(owner)))
    }

    /// Returns how many labels and owners are remembered, including dead ones.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let pools = self.pools.lock();
        (pools.labels.known.len(), pools.owners.known.len())
    }
}

/// Sorts labels by name, without duplicates. The sort is stable, so the last of several equal names wins.
fn sort(found: &mut FoundLabels<'_>) {
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            std::mem::swap(later, earlier);
        }
        same
    });
}

fn pairs<'a>(found: &'a FoundLabels<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    found.iter().map(|(name, value)| (&**name, &**value))
}

impl Pool<Labels> {
    /// Shares labels that are sorted.
    fn share_labels(&mut self, found: &FoundLabels<'_>) -> Arc<Labels> {
        self.share(
            found,
            |labels| labels.len() == found.len() && labels.iter().eq(pairs(found)),
            || Labels::sorted(pairs(found)),
        )
    }
}

impl Pool<Owner> {
    fn share_owner(&mut self, found: &FoundOwner<'_>) -> Arc<Owner> {
        self.share(
            found,
            |owner| {
                *owner.uid == found.uid
                    && *owner.name == found.name
                    && *owner.kind == found.kind
                    && *owner.api_version == found.api_version
            },
            || Owner {
                api_version: (*found.api_version).into(),
                kind: (*found.kind).into(),
                name: (*found.name).into(),
                uid: (*found.uid).into(),
            },
        )
    }
}

/// A table of values that are in use somewhere. It keeps none of them alive.
///
/// Dead entries are removed in two ways, both at a constant amortized cost per call. A search removes the
/// dead entries that it comes across, so a value that comes and goes leaves nothing behind for the next
/// search. The others are looked for after as many calls as there were live entries the last time, so dead
/// entries disappear soon while the table is in use.
struct Pool<T, S = DefaultHashBuilder> {
    /// Each with its hash, which cannot be computed for a dead value.
    known: HashTable<(u64, Weak<T>)>,
    hasher: S,
    /// The number of calls until dead entries are looked for.
    prune_in: usize,
}

impl<T, S: BuildHasher> Pool<T, S> {
    /// Returns the value that `is_it` accepts, or a new one.
    fn share(
        &mut self,
        found: &impl Hash,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.prune();
        let hash = self.hasher.hash_one(found);
        // The value, or a dead entry.
        let ends_search = |(known, weak): &(u64, Weak<T>)| {
            *known == hash && weak.upgrade().is_none_or(|value| is_it(&value))
        };
        while let Ok(entry) = self.known.find_entry(hash, ends_search) {
            if let Some(value) = entry.get().1.upgrade() {
                return value;
            }
            entry.remove();
        }
        let value = Arc::new(make());
        self.known.insert_unique(hash, (hash, Arc::downgrade(&value)), |(hash, _)| *hash);
        value
    }

    fn prune(&mut self) {
        if self.prune_in > 0 {
            self.prune_in -= 1;
            return;
        }
        self.known.retain(|(_, weak)| weak.strong_count() > 0);
        self.prune_in = self.known.len().max(PRUNE_ENTRIES_MIN);
        if self.known.capacity() / 4 > self.known.len() {
            self.known.shrink_to(self.known.len() * 2, |(hash, _)| *hash);
        }
    }
}

impl<T, S: Default> Default for Pool<T, S> {
    fn default() -> Self {
        Self { known: HashTable::new(), hasher: S::default(), prune_in: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::{BuildHasherDefault, Hasher};

    use super::*;

    /// A hasher that gives everything the same hash.
    #[derive(Default)]
    struct Same;
    impl Hasher for Same {
        fn finish(&self) -> u64 {
            7
        }
        fn write(&mut self, _: &[u8]) {}
    }

    fn share<S: BuildHasher>(pool: &mut Pool<u32, S>, value: u32) -> Arc<u32> {
        pool.share(&value, |known| *known == value, || value)
    }

    /// A regression: dead entries piled up until there were as many as live ones, at 1.2 ms per object.
    #[test]
    fn what_comes_and_goes_leaves_nothing_behind() {
        let mut pool: Pool<u32> = Pool::default();
        let live: Vec<_> = (0..5000).map(|value| share(&mut pool, value)).collect();
        for _ in 0..4000 {
            drop(share(&mut pool, 1_000_000));
            drop(share(&mut pool, 1_000_001));
            assert!(pool.known.len() <= live.len() + 2);
        }
    }

    #[test]
    fn dead_ones_of_the_same_hash_are_passed_once() {
        let mut pool: Pool<u32, BuildHasherDefault<Same>> = Pool::default();
        let dead: Vec<_> = (0..200).map(|value| share(&mut pool, value)).collect();
        drop(dead);
        let live = share(&mut pool, 1000);
        assert_eq!(pool.known.len(), 1, "the search has removed all that it came across");
        for value in 0..10_000 {
            let looked_at = Cell::new(0);
            let is_it = |known: &u32| {
                looked_at.set(looked_at.get() + 1);
                *known == value
            };
            drop(pool.share(&value, is_it, || value));
            // One more after a dead entry has been removed.
            assert!(looked_at.get() <= 2 && pool.known.len() <= 2);
        }
        assert!(Arc::ptr_eq(&live, &share(&mut pool, 1000)));
    }

    #[test]
    fn what_is_dead_goes_without_being_searched_for() {
        let mut pool: Pool<u32> = Pool::default();
        let mut most = 0;
        for value in 0..100_000 {
            drop(share(&mut pool, value));
            most = most.max(pool.known.len());
        }
        assert!(most <= PRUNE_ENTRIES_MIN + 1, "{most}");
    }
}
