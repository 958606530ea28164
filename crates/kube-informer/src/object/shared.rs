//! What many objects have in common, kept once.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use super::header::FoundOwner;
use super::{Labels, Owner};

/// Looking through fewer entries than this for dead ones is not worth it.
const PRUNE_ENTRIES_MIN: usize = 256;

/// The labels and owners of one informer's objects.
#[derive(Default)]
pub(super) struct Shared {
    none: Arc<Labels>,
    labels: Mutex<Pool<Labels>>,
    owners: Mutex<Pool<Owner>>,
}

impl Shared {
    /// Labels as they were found, in any order; of two with the same name the last counts.
    pub(super) fn labels(&self, mut found: Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Arc<Labels> {
        if found.is_empty() {
            return self.none.clone();
        }
        // The sort is stable, so that of equal names the last stays last.
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        self.labels.lock().share(
            &found,
            |labels| labels.len() == found.len() && labels.iter().eq(pairs(&found)),
            || Labels::sorted(pairs(&found)),
        )
    }

    pub(super) fn owner(&self, found: &FoundOwner<'_>) -> Arc<Owner> {
        self.owners.lock().share(
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

    /// How many labels and owners are remembered, dead ones too.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.labels.lock().known.len(), self.owners.lock().known.len())
    }
}

fn pairs<'a>(
    found: &'a [(Cow<'_, str>, Cow<'_, str>)],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    found.iter().map(|(name, value)| (&**name, &**value))
}

/// Values that are in use somewhere. It keeps none of them alive.
///
/// Dead ones are looked for after as many calls as there were live ones the last time: this costs
/// every call the same on average, and what is dead is soon gone while anything happens at all.
struct Pool<T> {
    /// With their hashes, which dead ones could not be asked for.
    known: HashTable<(u64, Weak<T>)>,
    hasher: DefaultHashBuilder,
    /// After how many calls to look for dead ones.
    prune_in: usize,
}

impl<T> Pool<T> {
    /// The value that `is_it` knows, or a new one.
    fn share(
        &mut self,
        found: &impl Hash,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.prune();
        let hash = self.hasher.hash_one(found);
        let alive = |weak: &Weak<T>| weak.upgrade().filter(|value| is_it(value));
        let entry = self.known.find(hash, |(known, weak)| *known == hash && alive(weak).is_some());
        if let Some(value) = entry.and_then(|(_, weak)| weak.upgrade()) {
            return value;
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

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { known: HashTable::new(), hasher: DefaultHashBuilder::default(), prune_in: 0 }
    }
}
