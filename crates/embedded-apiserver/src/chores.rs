//! Work that a write leaves for later: dependents to delete, and namespaces to empty. `garbage` does
//! it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::store::{Dependent, Key};

/// A piece of work. Each is done in steps that touch a bounded number of objects.
#[derive(Debug)]
pub(crate) enum Chore {
    /// Deletes the dependents of an owner, or takes the owner from their references. `gone` says
    /// that the owner no longer exists. Otherwise it waits for them. `namespaced` says whether the
    /// owner is.
    Dependents { owner: Arc<str>, namespaced: bool, gone: bool, after: Option<Dependent> },
    /// Decides about one object by its owners.
    Examine { table: Arc<str>, key: Arc<Key> },
    /// Takes a deleted owner from the references of its dependents, and then releases it.
    Orphan { owner: Place, after: Option<Dependent> },
    /// Releases an owner that is deleted in the foreground, unless it has to wait for dependents.
    Unblock(Place),
    /// Deletes the objects of a namespace, table by table.
    Empty { namespace: Arc<str>, table: Arc<str>, after: Option<Key> },
    /// Looks for unfinished work among all objects, table by table.
    Scan { table: Arc<str>, after: Option<Key> },
}

/// An object, with its uid in case that another one takes its name.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) table: Arc<str>,
    pub(crate) key: Arc<Key>,
    pub(crate) uid: Arc<str>,
}

/// The queue of chores. Its length is bounded by the number of objects: each write adds a chore for
/// its object, and one for each of its owners.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    queue: Mutex<Queue>,
    /// Whether there may be chores, so that requests need no lock to see that there are none.
    pending: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    chores: VecDeque<Chore>,
    busy: bool,
}

impl Chores {
    pub(crate) fn push(&self, chore: Chore) {
        self.queue.lock().chores.push_back(chore);
        self.pending.store(true, Ordering::Release);
    }

    /// Puts a chore in front of all others, to be continued.
    pub(crate) fn resume(&self, chore: Chore) {
        self.queue.lock().chores.push_front(chore);
    }

    /// Replaces all chores with one.
    pub(crate) fn restart(&self, chore: Chore) {
        self.queue.lock().chores.clear();
        self.push(chore);
    }

    /// Reserves the queue, if there are chores and no other worker has done so. The caller takes
    /// chores until there are none, or calls [`leave`](Self::leave).
    pub(crate) fn begin(&self) -> bool {
        if !self.pending.load(Ordering::Acquire) {
            return false;
        }
        let mut queue = self.queue.lock();
        !queue.chores.is_empty() && !std::mem::replace(&mut queue.busy, true)
    }

    /// Returns the next chore. If there is none, the worker has left.
    pub(crate) fn take(&self) -> Option<Chore> {
        let mut queue = self.queue.lock();
        let chore = queue.chores.pop_front();
        if chore.is_none() {
            queue.busy = false;
            self.pending.store(false, Ordering::Release);
        }
        chore
    }

    /// Leaves the remaining chores to the next worker.
    pub(crate) fn leave(&self) {
        self.queue.lock().busy = false;
    }
}
