//! Objects that could not be kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::{Error, ObjectKey};

/// Of objects whose key cannot be read this many are listed; more are counted.
const NAMELESS_MAX: usize = 100;

/// What could not be kept, since the last list: by key where that is known.
#[derive(Default)]
pub(super) struct Failures {
    /// So that asking costs nothing where all is well, which is nearly always.
    count: AtomicUsize,
    failed: Mutex<Failed>,
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
    /// A list has come: it says everything anew.
    pub(super) fn replace(&self, errors: Vec<Error>) {
        if errors.is_empty() && self.len() == 0 {
            return;
        }
        self.change(|failed| {
            *failed = Failed::default();
            for error in errors {
                failed.add(error);
            }
        });
    }

    pub(super) fn add(&self, error: Error) {
        self.change(|failed| failed.add(error));
    }

    /// The object could be kept after all, or is gone.
    pub(super) fn remove(&self, key: &ObjectKey) {
        if self.len() > 0 {
            self.change(|failed| _ = failed.by_key.remove(key));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Failed)) {
        let mut failed = self.failed.lock();
        change(&mut failed);
        self.count.store(failed.len(), Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn list(&self) -> Vec<Error> {
        let failed = self.failed.lock();
        failed.by_key.values().chain(&failed.nameless).cloned().collect()
    }
}
