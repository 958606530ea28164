//! The observable state of an elector.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::leadership::Term;
use super::settings::Settings;
use crate::Error;
use crate::shown::shown;

/// Identities are host names with a suffix; longer ones are truncated in the log.
const IDENTITY_CHARS_MAX: usize = 200;

/// Written by the task that takes part in the election, read by all handles.
#[derive(Default)]
pub(super) struct Shared(Mutex<SharedState>);

#[derive(Default)]
pub(super) struct SharedState {
    pub(super) leader: Option<Arc<str>>,
    pub(super) term: Option<Arc<Term>>,
    pub(super) terms: u64,
    pub(super) slow_path: u64,
    pub(super) last_error: Option<Error>,
}

impl Shared {
    /// Reads the state. `look` must be quick, because the task may have to wait for it.
    pub(super) fn look<T>(&self, look: impl FnOnce(&SharedState) -> T) -> T {
        look(&self.0.lock())
    }

    pub(super) fn took_slow_path(&self) {
        self.0.lock().slow_path += 1;
    }

    pub(super) fn began(&self, term: Arc<Term>) {
        let mut state = self.0.lock();
        state.term = Some(term);
        state.terms += 1;
    }

    pub(super) fn failed(&self, error: &Error) {
        self.0.lock().last_error = Some(error.clone());
    }

    /// Records the holder of the lease, and notifies the program if it has changed.
    pub(super) fn saw_leader(&self, settings: &Settings, holder: Option<&str>) {
        let mut state = self.0.lock();
        if state.leader.as_deref() == holder {
            return;
        }
        state.leader = holder.map(Arc::from);
        drop(state);
        let Some(holder) = holder else { return };
        tracing::info!(
            lease = %settings.lease,
            "the leader is {}", shown(holder, IDENTITY_CHARS_MAX)
        );
        let Some(tell) = &settings.on_new_leader else { return };
        if catch_unwind(AssertUnwindSafe(|| tell(holder))).is_err() {
            tracing::error!(lease = %settings.lease, "the callback for new leaders panicked");
        }
    }
}
