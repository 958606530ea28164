//! Observers of a reflector, and its log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{ErrorReport, ListWatch, Next, State};

/// Skipped objects are logged one by one, but in each period no more than these: there can be as many as
/// the server sends.
const SKIPS_LOGGED_MAX: u32 = 100;
const SKIPS_PERIOD: Duration = Duration::from_secs(60);

/// Told what a reflector does. All of these are quick.
pub(crate) trait Observer: Send + Sync {
    fn state(&self, state: &State) {
        let _ = state;
    }
    fn error(&self, report: &ErrorReport) {
        let _ = report;
    }
    /// An object of a list came.
    fn received(&self) {}
    /// A watch was opened, or brought something.
    fn heard(&self) {}
    /// The store is about to be given something.
    fn storing(&self) {}
    /// The store is about to be given what an earlier run knew, and nothing of the server.
    fn resuming(&self) {}
    /// How long silence may last, now.
    fn patience(&self, silence_max: Duration) {
        let _ = silence_max;
    }
}

pub(super) struct OnError<F>(pub(super) F);
impl<F: Fn(&ErrorReport) + Send + Sync> Observer for OnError<F> {
    fn error(&self, report: &ErrorReport) {
        (self.0)(report);
    }
}

pub(super) struct OnState<F>(pub(super) F);
impl<F: Fn(State) + Send + Sync> Observer for OnState<F> {
    fn state(&self, state: &State) {
        (self.0)(state.clone());
    }
}

/// All observers, and the log: each error is logged once when it begins, again when it changes, and
/// when it is over, not once per retry.
pub(super) struct Observers<'a> {
    all: &'a [Arc<dyn Observer>],
    name: Arc<str>,
    trouble: Option<Trouble>,
    skips: Skips,
}

/// The skipped objects that were logged since then.
#[derive(Default)]
struct Skips {
    since: Option<Instant>,
    logged: u32,
}

impl Skips {
    /// Whether another is to be logged, and how many that makes.
    fn log(&mut self) -> Option<u32> {
        if self.since.is_none_or(|since| since.elapsed() >= SKIPS_PERIOD) {
            *self = Self { since: Some(Instant::now()), logged: 0 };
        }
        self.logged = self.logged.saturating_add(1);
        (self.logged <= SKIPS_LOGGED_MAX).then_some(self.logged)
    }
}

/// The error that was logged last and is not over yet.
struct Trouble {
    text: String,
    /// Lists have taken the place of watches.
    polling: bool,
    /// It is over when a watch brings something; a list alone would get through all the same.
    of_watch: bool,
}

impl<'a> Observers<'a> {
    pub(super) fn new(all: &'a [Arc<dyn Observer>], list_watch: &dyn ListWatch) -> Self {
        Self { all, name: list_watch.name().into(), trouble: None, skips: Skips::default() }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn state(&self, state: &State) {
        tracing::debug!(informer = %self.name, %state, "state");
        self.each(|observer| observer.state(state));
    }

    // The next five are ours, never a user's: there is nothing to contain.

    pub(super) fn received(&self) {
        self.all.iter().for_each(|observer| observer.received());
    }

    pub(super) fn heard(&self) {
        self.all.iter().for_each(|observer| observer.heard());
    }

    pub(super) fn storing(&self) {
        self.all.iter().for_each(|observer| observer.storing());
    }

    pub(super) fn resuming(&self) {
        self.all.iter().for_each(|observer| observer.resuming());
    }

    pub(super) fn patience(&self, silence_max: Duration) {
        self.all.iter().for_each(|observer| observer.patience(silence_max));
    }

    pub(super) fn error(&mut self, report: &ErrorReport) {
        let text = report.error.to_string();
        let polling = matches!(report.next, Next::Poll { .. });
        let known = |trouble: &Trouble| trouble.text == text && trouble.polling == polling;
        if report.next == Next::SkipObject {
            self.skipped(report);
        } else if !self.trouble.as_ref().is_some_and(known) {
            let expired = report.error.is_expired();
            if expired {
                tracing::info!(informer = %self.name, "{report}");
            } else {
                tracing::warn!(informer = %self.name, "{report}");
            }
            let of_watch = matches!(report.during, State::Watching) && !expired;
            self.trouble = Some(Trouble { text, polling, of_watch });
        }
        self.each(|observer| observer.error(report));
    }

    fn skipped(&mut self, report: &ErrorReport) {
        match self.skips.log() {
            Some(SKIPS_LOGGED_MAX) => tracing::warn!(
                informer = %self.name,
                "{report} (others are not logged until {} s after the first of these {SKIPS_LOGGED_MAX})",
                SKIPS_PERIOD.as_secs()
            ),
            Some(_) => tracing::warn!(informer = %self.name, "{report}"),
            None => {}
        }
    }

    /// A list has come in full.
    pub(super) fn listed(&mut self) {
        if self.trouble.as_ref().is_some_and(|trouble| !trouble.of_watch) {
            self.well();
        }
    }

    /// A watch has brought something.
    pub(super) fn well(&mut self) {
        if let Some(Trouble { text, .. }) = self.trouble.take() {
            tracing::info!(informer = %self.name, "{}: recovered from: {text}", self.name);
        }
    }

    /// Observers are users' code.
    fn each(&self, tell: impl Fn(&dyn Observer)) {
        for observer in self.all {
            if catch_unwind(AssertUnwindSafe(|| tell(&**observer))).is_err() {
                tracing::error!(informer = %self.name, "an observer of the informer panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn e1_skipped_objects_do_not_flood_the_log() {
        let mut skips = Skips::default();
        for _ in 0..3 {
            let logged = (0..10_000).filter(|_| skips.log().is_some()).count();
            assert_eq!(logged, SKIPS_LOGGED_MAX as usize);
            tokio::time::advance(SKIPS_PERIOD).await;
        }
    }
}
