//! What many objects have in common, kept once.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use super::header::{FoundLabels, FoundOwner};
use super::{Labels, Owner};

/// Looking through fewer entries than this for dead ones is not worth it.
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
    /// Shares the labels and the owner of an object. Of two labels with the same name the last counts.
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

    /// How many labels and owners are remembered, dead ones too.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let pools = self.pools.lock();
        (pools.labels.known.len(), pools.owners.known.len())
    }
}

/// By name, each once. The sort is stable, so that of equal names the last stays last.
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
    /// The labels, which are sorted.
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

/// Values that are in use somewhere. It keeps none of them alive.
///
/// Dead ones go in two ways, each of which costs every call the same on average. Those that a search comes
/// across are removed by it: a value that comes and goes leaves nothing behind that the next search for it
/// would have to pass. The others are looked for after as many calls as there were live ones the last time:
/// what is dead is soon gone while anything happens at all.
struct Pool<T, S = DefaultHashBuilder> {
    /// With their hashes, which dead ones could not be asked for.
    known: HashTable<(u64, Weak<T>)>,
    hasher: S,
    /// After how many calls to look for dead ones.
    prune_in: usize,
}

impl<T, S: BuildHasher> Pool<T, S> {
    /// The value that `is_it` knows, or a new one.
    fn share(
        &mut self,
        found: &impl Hash,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.prune();
        let hash = self.hasher.hash_one(found);
        // It, or one that is dead.
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

    /// Everything has the same hash.
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

    /// They were collected until there were as many as live ones: 1.2 ms for every object.
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
            // Once more after a dead one has been removed.
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
