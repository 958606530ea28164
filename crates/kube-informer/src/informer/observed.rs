//! What is known of a running informer from the outside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::reflector::{Observer, SILENCE_MAX};
use crate::wait::Progress;
use crate::{Error, ErrorReport, Next, ResourceVersion, State};

/// Who waits for the first list is given a sign of life this often while something of it comes.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(crate) type OnError = Arc<dyn Fn(&ErrorReport) + Send + Sync>;

/// Written by the reflectors, read by everybody.
pub(crate) struct Observed {
    pub(super) state: watch::Sender<State>,
    pub(super) progress: watch::Sender<Progress>,
    seen: Mutex<Seen>,
    on_error: RwLock<Vec<OnError>>,
}

struct Seen {
    since: Instant,
    last_error: Option<Error>,
    /// How much has come, and when somebody was last told.
    received: u64,
    told: Option<Instant>,
    parts: Vec<Part>,
}

/// What is known of a reflector.
struct Part {
    state: State,
    /// When anything came.
    heard: Option<Instant>,
    /// When the server last said a version: all up to that was here.
    confirmed: Option<Instant>,
    silence_max: Duration,
}

impl Part {
    fn is_live(&self) -> bool {
        let heard = self.heard.is_some_and(|heard| heard.elapsed() < self.silence_max);
        matches!(self.state, State::Watching) && heard
    }
}

impl Observed {
    pub(super) fn new(parts: usize) -> Self {
        let part =
            || Part { state: State::Idle, heard: None, confirmed: None, silence_max: SILENCE_MAX };
        let parts = std::iter::repeat_with(part).take(parts).collect();
        Self {
            state: watch::Sender::new(State::Idle),
            progress: watch::Sender::new(Progress::default()),
            seen: Mutex::new(Seen {
                since: Instant::now(),
                last_error: None,
                received: 0,
                told: None,
                parts,
            }),
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

    pub(super) fn received(&self) -> u64 {
        self.seen.lock().received
    }

    /// That of the part that was confirmed longest ago.
    pub(super) fn staleness(&self) -> Option<Duration> {
        let confirmed: Option<Vec<_>> =
            self.seen.lock().parts.iter().map(|part| part.confirmed).collect();
        Some(confirmed?.into_iter().min()?.elapsed())
    }

    pub(super) fn is_live(&self) -> bool {
        self.seen.lock().parts.iter().all(Part::is_live)
    }

    /// It is over, for all parts.
    pub(super) fn stopped(&self) {
        self.enter(State::Stopped);
        self.progress.send_modify(|progress| progress.stopped = true);
    }

    fn enter(&self, state: State) {
        self.seen.lock().since = Instant::now();
        self.state.send_replace(state);
    }
}

/// Of several states the one that is farthest from all being well.
fn worst(parts: &[Part]) -> State {
    let rank = |state: &State| match state {
        State::BackingOff { .. } => 0,
        State::Idle => 1,
        State::Listing => 2,
        State::Streaming => 3,
        State::Watching => 4,
        State::Stopped => 5,
    };
    let worst = parts.iter().map(|part| &part.state).min_by_key(|state| rank(state));
    worst.cloned().unwrap_or(State::Idle)
}

/// What one of the reflectors says.
pub(super) struct PartObserver {
    pub(super) observed: Arc<Observed>,
    pub(super) part: usize,
}

impl PartObserver {
    fn part<T>(&self, change: impl FnOnce(&mut Part) -> T) -> Option<T> {
        self.observed.seen.lock().parts.get_mut(self.part).map(change)
    }
}

impl Observer for PartObserver {
    fn state(&self, state: &State) {
        self.part(|part| part.state = state.clone());
        let worst = worst(&self.observed.seen.lock().parts);
        self.observed.enter(worst);
    }

    fn error(&self, report: &ErrorReport) {
        if report.next != Next::SkipObject {
            self.observed.seen.lock().last_error = Some(report.error.clone());
        }
        // Users' code: not under a lock.
        let on_error = self.observed.on_error.read().clone();
        for tell in on_error {
            if catch_unwind(AssertUnwindSafe(|| tell(report))).is_err() {
                tracing::error!(informer = %report.informer, "an error handler panicked");
            }
        }
    }

    fn heard(&self, version: Option<&ResourceVersion>) {
        let now = Instant::now();
        let mut seen = self.observed.seen.lock();
        let Some(part) = seen.parts.get_mut(self.part) else { return };
        part.heard = Some(now);
        if version.is_some() {
            part.confirmed = Some(now);
        }
        // What one part watches is no progress of another that cannot be listed.
        if !matches!(part.state, State::Listing | State::Streaming) {
            return;
        }
        seen.received += 1;
        if seen.told.is_some_and(|told| now.duration_since(told) < PROGRESS_EVERY) {
            return;
        }
        seen.told = Some(now);
        let received = seen.received;
        drop(seen);
        // Only who waits for the first list wants to know.
        if !self.observed.progress.borrow().synced {
            self.observed.progress.send_modify(|progress| progress.received = received);
        }
    }

    fn patience(&self, silence_max: Duration) {
        self.part(|part| part.silence_max = silence_max);
    }
}
