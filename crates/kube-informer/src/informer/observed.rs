//! The observable state of a running informer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use super::reflections::Reflections;
use crate::reflector::{Observer, SILENCE_MAX};
use crate::wait::Progress;
use crate::{Error, ErrorReport, Next, RequestCounts, State};

/// Interval at which waiters for the first list receive progress updates while items arrive.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

type ErrorObserver = dyn Fn(&ErrorReport) + Send + Sync;
pub(crate) type OnError = Arc<ErrorObserver>;

/// Written by the reflectors and the writer of the cache, read by all handles.
pub(crate) struct Observed {
    pub(super) state: watch::Sender<State>,
    pub(super) progress: watch::Sender<Progress>,
    /// Changes together with `state`, atomically. Locked after `state`, never before.
    seen: Mutex<Seen>,
    pub(super) reflections: Reflections,
    /// Each belongs to a handle, and is removed with it.
    on_error: RwLock<Vec<Weak<ErrorObserver>>>,
}

struct Seen {
    since: Instant,
    last_error: Option<Error>,
    /// Time of the last progress update to waiters.
    told: Option<Instant>,
    stopped: bool,
    parts: Vec<Part>,
}

/// The state of one reflector, and how much of what it delivered the cache has applied.
struct Part {
    state: State,
    /// Time at which anything last arrived.
    heard: Option<Instant>,
    /// Arrival time of the oldest change that the cache has not applied yet.
    waiting: Option<Instant>,
    /// Time at which the cache last caught up with the server.
    applied: Option<Instant>,
    /// Whether the cache is being filled from an earlier run, which says nothing about its
    /// freshness.
    resuming: bool,
    silence_max: Duration,
    /// Number of objects that the current list has delivered, and the largest number that any list
    /// has: only what exceeds it is progress.
    received: u64,
    furthest: u64,
    /// The list or watch that is being read: since when, and how many events of a watch were applied.
    request: Option<(Instant, u64)>,
    /// Number of events of all watches.
    events: u64,
}

impl Part {
    fn new() -> Self {
        Self {
            state: State::Idle,
            heard: None,
            waiting: None,
            applied: None,
            resuming: false,
            silence_max: SILENCE_MAX,
            received: 0,
            furthest: 0,
            request: None,
            events: 0,
        }
    }

    /// Enters another state, and records the watch that ends with that.
    fn enter(&mut self, state: &State, reflections: &Reflections) {
        if let (State::Watching, Some((began, events))) = (&self.state, self.request.take()) {
            reflections.watched(began.elapsed(), events);
        }
        self.state = state.clone();
        match state {
            State::Listing | State::Streaming => {
                self.received = 0;
                self.request = Some((Instant::now(), 0));
                reflections.lists.add();
            }
            State::Watching => {
                self.request = Some((Instant::now(), 0));
                reflections.watches.add();
            }
            _ => {}
        }
    }

    /// A cache that applies nothing is not live, however much arrives from the server.
    fn is_live(&self) -> bool {
        let heard = self.heard.is_some_and(|heard| heard.elapsed() < self.silence_max);
        let stuck = self.waiting.is_some_and(|since| since.elapsed() >= self.silence_max);
        matches!(self.state, State::Watching) && heard && !stuck
    }

    /// Counts an object of a list. Returns whether the list has got further than any before.
    fn receive(&mut self) -> bool {
        self.received += 1;
        let further = self.received > self.furthest;
        self.furthest = self.furthest.max(self.received);
        further
    }
}

impl Observed {
    pub(super) fn new(parts: usize) -> Self {
        Self {
            state: watch::Sender::new(State::Idle),
            progress: watch::Sender::new(Progress::default()),
            seen: Mutex::new(Seen {
                since: Instant::now(),
                last_error: None,
                told: None,
                stopped: false,
                parts: std::iter::repeat_with(Part::new).take(parts).collect(),
            }),
            reflections: Reflections::new(),
            on_error: RwLock::default(),
        }
    }

    pub(super) fn observe_errors(&self, on_error: &[OnError]) {
        let mut all = self.on_error.write();
        all.retain(|known| known.strong_count() > 0);
        all.extend(on_error.iter().map(Arc::downgrade));
    }

    pub(super) fn since(&self) -> Instant {
        self.seen.lock().since
    }

    pub(super) fn last_error(&self) -> Option<Error> {
        self.seen.lock().last_error.clone()
    }

    /// Returns the number of objects that the longest list of each part has delivered.
    pub(super) fn received(&self) -> u64 {
        self.seen.lock().received()
    }

    /// Returns how long the oldest change has been waiting for the cache.
    pub(super) fn lag(&self) -> Option<Duration> {
        let seen = self.seen.lock();
        Some(seen.parts.iter().filter_map(|part| part.waiting).min()?.elapsed())
    }

    pub(super) fn silence_limit(&self) -> Duration {
        let seen = self.seen.lock();
        seen.parts.iter().map(|part| part.silence_max).max().unwrap_or(SILENCE_MAX)
    }

    pub(super) fn requests(&self) -> RequestCounts {
        let events = self.seen.lock().parts.iter().map(|part| part.events).sum();
        self.reflections.counts(events)
    }

    /// Returns the staleness of the part that was confirmed longest ago.
    pub(super) fn staleness(&self) -> Option<Duration> {
        let applied: Option<Vec<_>> =
            self.seen.lock().parts.iter().map(|part| part.applied).collect();
        Some(applied?.into_iter().min()?.elapsed())
    }

    pub(super) fn is_live(&self) -> bool {
        self.seen.lock().parts.iter().all(Part::is_live)
    }

    /// Records that the cache has applied what a part delivered.
    pub(super) fn applied(&self, part: usize) {
        if let Some(part) = self.seen.lock().parts.get_mut(part) {
            if !part.resuming {
                part.applied = Some(Instant::now());
            }
            // If more is waiting, the next arrival records it.
            part.waiting = None;
        }
    }

    /// Records the stop, for all parts.
    pub(super) fn stopped(&self) {
        self.change(|seen| seen.stopped = true);
        self.progress.send_modify(|progress| progress.stopped = true);
    }

    /// Changes the state and publishes it atomically. Otherwise an older state of one part could be published
    /// over a newer one of another.
    ///
    /// `state` is locked before `seen`, here and everywhere: a reader that holds the published state may ask
    /// for the rest.
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        self.state.send_modify(|published| {
            let mut seen = self.seen.lock();
            change(&mut seen);
            seen.since = Instant::now();
            *published = if seen.stopped { State::Stopped } else { worst(&seen.parts) };
        });
    }
}

impl Seen {
    fn received(&self) -> u64 {
        self.parts.iter().map(|part| part.furthest).sum()
    }
}

/// Returns the least healthy of several states.
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

/// The observer of one reflector.
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
        self.observed.change(|seen| {
            let Some(part) = seen.parts.get_mut(self.part) else { return };
            part.enter(state, &self.observed.reflections);
        });
    }

    fn error(&self, report: &ErrorReport) {
        self.observed.reflections.failed(report);
        if report.next != Next::SkipObject {
            self.observed.seen.lock().last_error = Some(report.error.clone());
        }
        // Observers are the program's code, so they do not run under a lock.
        let on_error: Vec<_> =
            self.observed.on_error.read().iter().filter_map(Weak::upgrade).collect();
        for tell in on_error {
            if catch_unwind(AssertUnwindSafe(|| tell(report))).is_err() {
                tracing::error!(informer = %report.informer, "an error handler panicked");
            }
        }
    }

    fn received(&self) {
        let now = Instant::now();
        let mut seen = self.observed.seen.lock();
        let further = seen.parts.get_mut(self.part).is_some_and(Part::receive);
        let recently = seen.told.is_some_and(|told| now.duration_since(told) < PROGRESS_EVERY);
        if !further || recently {
            return;
        }
        seen.told = Some(now);
        let received = seen.received();
        drop(seen);
        // Only waiters for the first sync need progress updates.
        if !self.observed.progress.borrow().synced {
            self.observed.progress.send_modify(|progress| progress.received = received);
        }
    }

    fn listed(&self) {
        self.part(|part| {
            if let Some((began, _)) = part.request {
                self.observed.reflections.listed(began.elapsed(), part.received);
            }
        });
    }

    fn heard(&self) {
        self.part(|part| part.heard = Some(Instant::now()));
    }

    fn storing(&self) {
        self.part(|part| {
            let now = Instant::now();
            part.resuming = false;
            part.heard = Some(now);
            part.waiting.get_or_insert(now);
            part.events += 1;
            if let Some((_, events)) = &mut part.request {
                *events += 1;
            }
        });
    }

    fn resuming(&self) {
        self.part(|part| part.resuming = true);
    }

    fn patience(&self, silence_max: Duration) {
        self.part(|part| part.silence_max = silence_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: usize) -> (Arc<Observed>, Vec<PartObserver>) {
        let observed = Arc::new(Observed::new(count));
        let part = |part| PartObserver { observed: observed.clone(), part };
        (observed.clone(), (0..count).map(part).collect())
    }

    /// An index function may be stuck, or a handler with `every_state` may be full.
    #[tokio::test(start_paused = true)]
    async fn l2_a_cache_that_applies_nothing_is_not_live() {
        let (observed, parts) = parts(1);
        parts[0].state(&State::Watching);
        parts[0].heard();
        observed.applied(0);
        assert!(observed.is_live());
        for _ in 0..100 {
            parts[0].heard();
            parts[0].storing();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(!observed.is_live());
        assert_eq!(observed.staleness(), Some(Duration::from_secs(100)));
        observed.applied(0);
        assert!(observed.is_live());
        assert_eq!(observed.staleness(), Some(Duration::ZERO));
    }

    /// When it was computed and published under separate locks, an outdated state could stay.
    #[test]
    fn the_last_state_change_of_several_parts_is_published() {
        for _ in 0..2000 {
            let (observed, parts) = parts(2);
            std::thread::scope(|scope| {
                for part in &parts {
                    scope.spawn(|| {
                        part.state(&State::Listing);
                        part.state(&State::Watching);
                    });
                }
            });
            assert!(matches!(*observed.state.borrow(), State::Watching));
        }
    }

    /// When `seen` was locked before `state`, a reader of both and a state change waited for each other.
    #[test]
    fn readers_and_state_changes_never_deadlock() {
        const CHANGES: usize = 20_000;
        let (observed, parts) = parts(1);
        let (done, ended) = std::sync::mpsc::channel();
        let (writer, reader) = (done.clone(), done);
        std::thread::spawn(move || {
            for _ in 0..CHANGES {
                parts[0].state(&State::Listing);
                parts[0].state(&State::Watching);
            }
            writer.send(())
        });
        std::thread::spawn(move || {
            for _ in 0..CHANGES {
                let state = observed.state.borrow();
                assert!(!observed.is_live(), "nothing was heard in {:?}", *state);
            }
            reader.send(())
        });
        for _ in 0..2 {
            ended.recv_timeout(Duration::from_secs(120)).expect("they wait for each other");
        }
    }

    #[test]
    fn l4_only_what_goes_beyond_the_furthest_list_is_progress() {
        let (observed, parts) = parts(1);
        for objects in [3, 2, 3, 5, 4] {
            parts[0].state(&State::Listing);
            (0..objects).for_each(|_| parts[0].received());
        }
        assert_eq!(observed.received(), 5);
    }
}
