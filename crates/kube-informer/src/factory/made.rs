//! The informers of a factory.

use std::sync::{Arc, Weak};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::SharedInformer;
use crate::indexer::Alive;
use crate::informer::{Core, Identity};

/// The informers of a factory that are still in use. Shared with the task that waits for the stop signal, which
/// outlives the factory.
///
/// Dropping the last handle of an informer drops the program's closures, and calls `retire`: no handle and no
/// core is dropped while the lock is held.
pub(super) struct Made {
    state: Mutex<State>,
    /// Cancelled when no informer can be started any more: the factory was stopped, or dropped.
    closed: CancellationToken,
}

struct State {
    informers: Vec<Entry>,
    /// Tasks that have not ended yet, of informers that are no longer in the list.
    ending: Vec<TaskTracker>,
    /// Informers that were in use elsewhere when the factory was dropped.
    left: Vec<Weak<Core>>,
    started: bool,
    stop_on: Option<BoxFuture<'static, ()>>,
}

struct Entry {
    identity: Identity,
    core: Arc<Core>,
    alive: Keep,
}

/// Whether the factory keeps an informer running that is not in use elsewhere.
enum Keep {
    /// The informer can be requested again.
    Always(Arc<Alive>),
    /// The informer cannot be requested again, because its closure is equal to no other.
    WhileHeld(Weak<Alive>),
}

impl Entry {
    fn is_held(&self) -> bool {
        match &self.alive {
            Keep::Always(_) => true,
            Keep::WhileHeld(alive) => alive.strong_count() > 0,
        }
    }

    fn informer(&self) -> Option<SharedInformer> {
        let alive = match &self.alive {
            Keep::Always(alive) => alive.clone(),
            Keep::WhileHeld(alive) => alive.upgrade()?,
        };
        Some(SharedInformer::new(self.core.clone(), alive, None))
    }
}

impl State {
    /// Removes informers that have been stopped, or that are not in use.
    fn retire(&mut self) -> Vec<Entry> {
        let over = |entry: &mut Entry| entry.core.is_stopped() || !entry.is_held();
        let retired: Vec<Entry> = self.informers.extract_if(.., over).collect();
        self.ending.extend(retired.iter().map(|entry| entry.core.tasks().clone()));
        self.ending.retain(|tasks| !tasks.is_empty());
        retired
    }
}

impl Made {
    pub(super) fn new(stop_on: Option<BoxFuture<'static, ()>>) -> Self {
        let state = State {
            informers: Vec::new(),
            ending: Vec::new(),
            left: Vec::new(),
            started: false,
            stop_on,
        };
        Self { state: Mutex::new(state), closed: CancellationToken::new() }
    }

    /// Returns the informer with this identity if it runs or can be started. A new informer is kept running as
    /// long as the factory exists, or only while it is in use elsewhere.
    pub(super) fn get_or_make(
        self: &Arc<Self>,
        identity: &Identity,
        keep: bool,
        make: impl FnOnce() -> SharedInformer,
    ) -> SharedInformer {
        // Declared before the lock is taken, and therefore dropped after it is released.
        let _retired;
        let mut state = self.state.lock();
        _retired = state.retire();
        let mut same = state.informers.iter().filter(|entry| entry.identity == *identity);
        if let Some(informer) = same.find_map(Entry::informer) {
            return informer;
        }
        let mut informer = make();
        let alive = if keep {
            Keep::Always(informer.alive().clone())
        } else {
            let list = Arc::downgrade(self);
            informer = informer.ending_with(move || {
                if let Some(list) = list.upgrade() {
                    list.retire();
                }
            });
            Keep::WhileHeld(Arc::downgrade(informer.alive()))
        };
        if self.closed.is_cancelled() {
            informer.stop();
        } else if state.started {
            informer.start();
        }
        let core = informer.core().clone();
        state.informers.push(Entry { identity: identity.clone(), core, alive });
        informer
    }

    fn retire(&self) {
        let retired = self.state.lock().retire();
        drop(retired);
    }

    /// Starts all informers, and those that are created later.
    pub(super) fn start(self: &Arc<Self>) {
        let stop_on = {
            let mut state = self.state.lock();
            state.started = true;
            state.stop_on.take()
        };
        if let Some(stop_on) = stop_on {
            let made = self.clone();
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = made.ended() => {}
                    () = stop_on => made.stop(),
                }
            });
        }
        self.cores().iter().for_each(Core::start);
    }

    /// Returns all informers that are still in use.
    pub(super) fn cores(&self) -> Vec<Arc<Core>> {
        let state = self.state.lock();
        let held = state.informers.iter().filter(|entry| entry.is_held());
        held.map(|entry| entry.core.clone()).collect()
    }

    /// Returns handles of all informers that are still in use.
    pub(super) fn informers(&self) -> Vec<SharedInformer> {
        self.state.lock().informers.iter().filter_map(Entry::informer).collect()
    }

    /// Stops all informers, and those that are created later.
    pub(super) fn stop(&self) {
        self.closed.cancel();
        self.all().iter().for_each(|core| core.stop());
    }

    /// Stops all informers, and waits for the tasks of all that ever existed.
    pub(super) async fn shutdown(&self) {
        self.stop();
        let tasks: Vec<TaskTracker> = {
            let state = self.state.lock();
            let listed = state.informers.iter().map(|entry| entry.core.tasks());
            listed.chain(&state.ending).cloned().collect()
        };
        for tasks in tasks {
            tasks.close();
            tasks.wait().await;
        }
    }

    /// Completes when the factory has been stopped.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Called when the factory is dropped: releases its informers, which can still be stopped.
    pub(super) fn let_go(&self) {
        let informers = {
            let mut state = self.state.lock();
            let informers = std::mem::take(&mut state.informers);
            state.left = informers.iter().map(|entry| Arc::downgrade(&entry.core)).collect();
            informers
        };
        self.closed.cancel();
        drop(informers);
    }

    /// Completes when there is nothing left to stop.
    async fn ended(&self) {
        self.closed.cancelled().await;
        let ended: Vec<_> = self.all().iter().map(|core| core.until_stopped()).collect();
        join_all(ended).await;
    }

    fn all(&self) -> Vec<Arc<Core>> {
        let state = self.state.lock();
        let listed = state.informers.iter().map(|entry| entry.core.clone());
        listed.chain(state.left.iter().filter_map(Weak::upgrade)).collect()
    }
}
