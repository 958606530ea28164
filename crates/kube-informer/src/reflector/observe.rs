//! Observers of a reflector, and its log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{ErrorReport, ListWatch, Next, State};

/// Limit for log lines about skipped objects in each period: there can be as many as the server sends.
const SKIPS_LOGGED_MAX: u32 = 100;
const SKIPS_PERIOD: Duration = Duration::from_secs(60);

/// Observes a reflector. All methods are quick.
pub(crate) trait Observer: Send + Sync {
    fn state(&self, state: &State) {
        let _ = state;
    }
    fn error(&self, report: &ErrorReport) {
        let _ = report;
    }
    /// An object of a list has arrived.
    fn received(&self) {}
    /// The store has taken a list.
    fn listed(&self) {}
    /// A watch was opened, or has received something that is not for the store.
    fn heard(&self) {}
    /// Something has arrived that the store is about to receive.
    fn storing(&self) {}
    /// The store is about to receive the content of an earlier run, and nothing from the server.
    fn resuming(&self) {}
    /// The limit for the silence of the watch has changed.
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

/// All observers, and the log. Each error is logged when it starts, when it changes and when it
/// clears, not with every retry.
pub(super) struct Observers<'a> {
    all: &'a [Arc<dyn Observer>],
    name: Arc<str>,
    trouble: Option<Trouble>,
    skips: Skips,
}

/// The number of skipped objects that were logged in the current period.
#[derive(Default)]
struct Skips {
    since: Option<Instant>,
    logged: u32,
}

impl Skips {
    /// Counts a skipped object. Returns the count if it is to be logged.
    fn log(&mut self) -> Option<u32> {
        if self.since.is_none_or(|since| since.elapsed() >= SKIPS_PERIOD) {
            *self = Self { since: Some(Instant::now()), logged: 0 };
        }
        self.logged = self.logged.saturating_add(1);
        (self.logged <= SKIPS_LOGGED_MAX).then_some(self.logged)
    }
}

/// The last logged error that persists.
struct Trouble {
    text: String,
    /// Whether lists have replaced watches.
    polling: bool,
    /// Whether only an event of a watch clears the error; a list would succeed all the same.
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

    // The next five are implemented only in this crate, so their panics need not be contained.

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
                "{report} (further ones are not logged until {} s after the first of these {SKIPS_LOGGED_MAX})",
                SKIPS_PERIOD.as_secs()
            ),
            Some(_) => tracing::warn!(informer = %self.name, "{report}"),
            None => {}
        }
    }

    /// Records that a list is complete.
    pub(super) fn listed(&mut self) {
        self.all.iter().for_each(|observer| observer.listed());
        if self.trouble.as_ref().is_some_and(|trouble| !trouble.of_watch) {
            self.well();
        }
    }

    /// Records that a watch has received something.
    pub(super) fn well(&mut self) {
        if let Some(Trouble { text, .. }) = self.trouble.take() {
            tracing::info!(informer = %self.name, "{}: recovered from: {text}", self.name);
        }
    }

    /// Observers are the program's code, so panics are contained.
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
