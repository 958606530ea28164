//! What is known of a running informer from the outside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::reflector::{Observer, SILENCE_MAX};
use crate::wait::Progress;
use crate::{Error, ErrorReport, Next, ResourceVersion, State};

/// Objects between two signs of life while the first list comes in.
const PROGRESS_EVERY: u64 = 64;

pub(crate) type OnError = Arc<dyn Fn(&ErrorReport) + Send + Sync>;

/// Written by the reflector, read by everybody.
pub(crate) struct Observed {
    pub(super) state: watch::Sender<State>,
    pub(super) progress: watch::Sender<Progress>,
    seen: Mutex<Seen>,
    received: AtomicU64,
    on_error: RwLock<Vec<OnError>>,
}

struct Seen {
    since: Instant,
    /// When anything came.
    heard: Option<Instant>,
    /// When the server last said a version: all up to that was here.
    confirmed: Option<Instant>,
    silence_max: Duration,
    last_error: Option<Error>,
}

impl Observed {
    pub(super) fn new() -> Self {
        let seen = Seen {
            since: Instant::now(),
            heard: None,
            confirmed: None,
            silence_max: SILENCE_MAX,
            last_error: None,
        };
        Self {
            state: watch::Sender::new(State::Idle),
            progress: watch::Sender::new(Progress::default()),
            seen: Mutex::new(seen),
            received: AtomicU64::new(0),
            on_error: RwLock::default(),
        }
    }

    pub(super) fn add_on_error(&self, on_error: OnError) {
        self.on_error.write().push(on_error);
    }

    pub(super) fn since(&self) -> Instant {
        self.seen.lock().since
    }

    pub(super) fn last_error(&self) -> Option<Error> {
        self.seen.lock().last_error.clone()
    }

    pub(super) fn staleness(&self) -> Option<Duration> {
        self.seen.lock().confirmed.map(|confirmed| confirmed.elapsed())
    }

    pub(super) fn is_live(&self) -> bool {
        let watching = matches!(*self.state.borrow(), State::Watching);
        let seen = self.seen.lock();
        watching && seen.heard.is_some_and(|heard| heard.elapsed() < seen.silence_max)
    }
}

impl Observer for Observed {
    fn state(&self, state: &State) {
        self.seen.lock().since = Instant::now();
        self.state.send_replace(state.clone());
    }

    fn error(&self, report: &ErrorReport) {
        if report.next != Next::SkipObject {
            self.seen.lock().last_error = Some(report.error.clone());
        }
        // Users' code: not under a lock.
        let on_error = self.on_error.read().clone();
        for tell in on_error {
            if catch_unwind(AssertUnwindSafe(|| tell(report))).is_err() {
                tracing::error!(informer = %report.informer, "an error handler panicked");
            }
        }
    }

    fn heard(&self, version: Option<&ResourceVersion>) {
        let now = Instant::now();
        {
            let mut seen = self.seen.lock();
            seen.heard = Some(now);
            if version.is_some() {
                seen.confirmed = Some(now);
            }
        }
        let received = self.received.fetch_add(1, Ordering::Relaxed) + 1;
        // Only who waits for the first list wants to know.
        if received % PROGRESS_EVERY == 1 && !self.progress.borrow().synced {
            self.progress.send_modify(|progress| progress.received = received);
        }
    }

    fn patience(&self, silence_max: Duration) {
        self.seen.lock().silence_max = silence_max;
    }
}
