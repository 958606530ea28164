//! Objects that could not be stored.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::{Delta, Error, ObjectKey};

/// Number of objects without a readable key that are listed; more are only counted.
const NAMELESS_MAX: usize = 100;

/// The objects that could not be stored since the last list, by key if it is known.
#[derive(Default)]
pub(super) struct Failures {
    /// Makes queries free in the usual case that there are no failures.
    count: AtomicUsize,
    by_part: Mutex<BTreeMap<usize, Failed>>,
}

#[derive(Default)]
struct Failed {
    by_key: BTreeMap<ObjectKey, Error>,
    nameless: Vec<Error>,
    nameless_more: usize,
}

impl Failed {
    fn len(&self) -> usize {
        self.by_key.len() + self.nameless.len() + self.nameless_more
    }

    fn add(&mut self, error: Error) {
        match error.key().cloned() {
            Some(key) => _ = self.by_key.insert(key, error),
            None if self.nameless.len() < NAMELESS_MAX => self.nameless.push(error),
            None => self.nameless_more += 1,
        }
    }
}

impl Failures {
    /// Updates the failures of a part from its changes.
    pub(super) fn note(&self, part: usize, deltas: &[Delta]) {
        for delta in deltas {
            match delta {
                Delta::ReplacedAll { unreadable, .. } => self.replace(part, unreadable),
                Delta::Unreadable { error, deleted, .. } => match error.key() {
                    Some(key) if *deleted => self.remove(part, key),
                    _ => self.add(part, error.clone()),
                },
                _ => {
                    if let Some(object) = delta.object() {
                        self.remove(part, object.key());
                    }
                }
            }
        }
    }

    /// Replaces all failures of a part after a list.
    fn replace(&self, part: usize, errors: &[Error]) {
        if errors.is_empty() && self.len() == 0 {
            return;
        }
        self.change(|by_part| {
            let mut failed = Failed::default();
            for error in errors {
                failed.add(error.clone());
            }
            by_part.insert(part, failed);
        });
    }

    fn add(&self, part: usize, error: Error) {
        self.change(|by_part| by_part.entry(part).or_default().add(error));
    }

    /// Removes the failure of an object that could be stored after all, or is gone.
    fn remove(&self, part: usize, key: &ObjectKey) {
        if self.len() > 0 {
            self.change(|by_part| {
                let failed = by_part.get_mut(&part);
                failed.map(|failed| failed.by_key.remove(key));
            });
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<usize, Failed>)) {
        let mut by_part = self.by_part.lock();
        change(&mut by_part);
        self.count.store(by_part.values().map(Failed::len).sum(), Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn list(&self) -> Vec<Error> {
        let by_part = self.by_part.lock();
        let all =
            by_part.values().flat_map(|failed| failed.by_key.values().chain(&failed.nameless));
        all.cloned().collect()
    }
}
