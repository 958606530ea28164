//! The list-watch protocol as a state machine: no async, no clock, no I/O.
//!
//! The driver calls [`Machine::request`], makes the request, and reports the results to the
//! machine. Times are measured from the start of the reflector, and randomness comes from a seed.

mod follow;

use std::cmp::Ordering;
use std::time::Duration;

use super::backoff::{Backoff, Delays};
use super::phase::{Alarm, Effect, Page, Phase, Request, Seen, Watch};
use super::table::{self, During, Then};
use crate::error::Cause;
use crate::list_watch::ListOptions;
use crate::{Error, Next, ResourceVersion};

/// Watches time out after this to twice this, so that they spread over servers again.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(300);
/// Bookmarks arrive every minute: a watch that is silent for longer than this is dead.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(75);
/// Limit for the time between the last initial event and the bookmark that ends them.
const STREAM_QUIET_MAX: Duration = Duration::from_secs(30);
/// Limit for the duration of a streaming list: some servers never end the initial events.
const STREAM_TOTAL_MAX: Duration = Duration::from_secs(300);
/// A watch that ended sooner is not reopened at once.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// A watch that lasted this long was healthy, whatever ended it: earlier failures no longer count.
const HEALTHY_WATCH: Duration = Duration::from_secs(3);
/// Number of silent watches after which a server that has never sent a bookmark is assumed to send
/// none.
const SILENT_WATCHES_MAX: u32 = 2;
/// How long a watch that was reopened after a failure may be silent before the server is asked for its version.
/// Up to as much again is added at random.
const ASK_VERSION_AFTER: Duration = Duration::from_secs(2);

/// Settings of requests and pauses.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Whether to request streaming lists.
    pub(crate) streaming: bool,
    pub(crate) page_objects: Option<u32>,
    /// Minimum timeout of watches.
    pub(crate) watch_timeout: Duration,
    pub(crate) delays: Delays,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            streaming: true,
            page_objects: None,
            watch_timeout: WATCH_TIMEOUT_MIN,
            delays: Delays::default(),
        }
    }
}

impl Settings {
    /// Sets the page size; zero means none.
    pub(crate) fn set_page_size(&mut self, objects: u32) {
        self.page_objects = Some(objects).filter(|objects| *objects > 0);
    }

    /// Sets the minimum timeout, clamped: zero would leave it to the server, and no server lets a
    /// watch last for a day.
    pub(crate) fn set_watch_timeout(&mut self, least: Duration) {
        self.watch_timeout = least.clamp(Duration::from_secs(1), Duration::from_secs(86_400));
    }
}

/// The state machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    phase: Phase,
    /// The newest version that was seen.
    last: ResourceVersion,
    settings: Settings,
    learned: Learned,
    /// A watch has failed, and nothing has arrived since. The server that responds now may have been restored
    /// from a backup, and stay silent until it reaches the version that it is asked for.
    doubted: bool,
    /// Whether the last watch was given up because it was silent.
    silent: bool,
    /// Whether the current list contains an object that no watch has delivered.
    newer: bool,
    stream_failures: u32,
    lists: Backoff,
    watches: Backoff,
    /// Failures of watches whose version has expired: the server responds, so they do not count as
    /// failed watches.
    expiries: Backoff,
    random: fastrand::Rng,
}

/// Facts that the server has revealed about itself.
#[derive(Clone, Debug, Default)]
struct Learned {
    /// It pages lists that it could have served from its cache: it has none.
    pages_always: bool,
    /// It has sent a bookmark on a watch.
    bookmarks: bool,
    watches: Watches,
    silent_watches: u32,
}

/// Whether watches work.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum Watches {
    /// No watch has delivered anything: there may have been nothing to deliver.
    #[default]
    Unknown,
    /// A watch has delivered something.
    Work,
    /// A list has revealed a change that a silent watch should have delivered.
    Swallowed,
}

impl Machine {
    pub(crate) fn new(settings: Settings, seed: u64) -> Self {
        let mut machine = Self {
            phase: Phase::List { page: Page::default() },
            last: ResourceVersion::default(),
            settings,
            learned: Learned::default(),
            doubted: false,
            silent: false,
            newer: false,
            stream_failures: 0,
            lists: Backoff::default(),
            watches: Backoff::default(),
            expiries: Backoff::default(),
            random: fastrand::Rng::with_seed(seed),
        };
        machine.phase = machine.relist(Duration::ZERO, false);
        machine
    }

    /// Starts from content of an earlier run at this version: watches from there. The server may have been
    /// restored from a backup since then.
    pub(crate) fn resume_from(&mut self, version: ResourceVersion) {
        self.last = version;
        self.doubted = true;
        self.phase = self.resume(Duration::ZERO);
    }

    /// Returns the newest version that was seen.
    #[cfg(test)]
    pub(crate) fn last(&self) -> &ResourceVersion {
        &self.last
    }

    /// Returns the next request. Calling it again changes nothing but the timeout of a watch.
    pub(crate) fn request(&mut self) -> Request {
        match &self.phase {
            Phase::List { page } => Request::List(ListOptions {
                // The token determines the version.
                resource_version: page.asked.clone().filter(|_| page.token.is_none()),
                limit: page.limit,
                continue_token: page.token.clone(),
            }),
            Phase::Stream { asked, .. } => {
                let asked = asked.clone();
                Request::Watch(self.watch_options(asked, true))
            }
            Phase::Watch(Watch { asked, .. }) => {
                let asked = Some(asked.clone()).filter(|asked| !asked.is_empty());
                Request::Watch(self.watch_options(asked, false))
            }
            Phase::Wait { until, .. } => Request::Wait { until: *until },
        }
    }

    /// Reports that the time of a [`Request::Wait`] has come.
    pub(crate) fn waited(&mut self, now: Duration) {
        if let Phase::Wait { then, .. } = &self.phase {
            self.phase = (**then).clone();
            self.begin(now);
        }
    }

    /// Reports that the requested watch or stream is open.
    pub(crate) fn opened(&mut self, now: Duration) {
        let pause = ASK_VERSION_AFTER.mul_f64(1.0 + self.random.f64());
        if let Phase::Watch(watch) = &mut self.phase {
            watch.opened = Some(now);
            watch.ask_version_at = self.doubted.then_some(now + pause);
        }
        self.begin(now);
    }

    /// Reports an object of a list.
    pub(crate) fn item(&mut self, version: &ResourceVersion) {
        self.newer |= !self.last.is_empty() && *version > self.last;
    }

    /// Reports that a page of a list is complete.
    pub(crate) fn page(&mut self, version: &ResourceVersion, token: Option<String>) -> Effect {
        let Phase::List { page } = &mut self.phase else { return Effect::Ignore };
        let version = page.version.get_or_insert_with(|| version.clone()).clone();
        if let Some(token) = token {
            if page.asked.as_ref().is_some_and(|asked| *asked == "0") {
                self.learned.pages_always = true;
            }
            if page.turn(token) {
                return Effect::Gather;
            }
            return Effect::Fail(Error::protocol(
                "the pages of the list never end: the server repeats its continue tokens",
            ));
        }
        let asked = page.asked.clone();
        self.listed(version, asked.as_ref())
    }

    /// Reports an event of a watch or a stream.
    pub(crate) fn seen(&mut self, now: Duration, seen: Seen, version: &ResourceVersion) -> Effect {
        match &mut self.phase {
            Phase::Stream { heard, asked, .. } => match seen {
                Seen::Bookmark { initial_events_end: true } => {
                    let asked = asked.clone();
                    let effect = self.listed(version.clone(), asked.as_ref());
                    self.opened(now);
                    effect
                }
                Seen::Bookmark { .. } => Effect::Ignore,
                Seen::Nothing => Effect::Gather,
                Seen::Added | Seen::Changed => {
                    // Changes while the list is being streamed are no progress of the list.
                    if seen == Seen::Added {
                        *heard = now;
                    }
                    self.item(version);
                    Effect::Gather
                }
            },
            Phase::Watch(watch) => {
                watch.heard = now;
                if seen == Seen::Nothing {
                    return Effect::Apply;
                }
                watch.events += 1;
                if watch.lasted(now) >= HEALTHY_WATCH {
                    self.watches.reset();
                }
                self.watched(seen, version)
            }
            Phase::List { .. } | Phase::Wait { .. } => Effect::Ignore,
        }
    }

    /// Reports the server's version, in response to [`Alarm::AskVersion`].
    pub(crate) fn server_is_at(&mut self, version: &ResourceVersion) -> Effect {
        if version.partial_cmp(&self.last) == Some(Ordering::Less) {
            return Effect::Fail(regressed(version, &self.last));
        }
        self.doubted = false;
        Effect::Ignore
    }

    /// Reports the end of a watch or a stream, which is normal.
    ///
    /// Returns an error if this end is a failure.
    pub(crate) fn ended(&mut self, now: Duration) -> Option<Error> {
        match &self.phase {
            Phase::Watch(watch) => {
                let lasted = watch.lasted(now);
                if lasted < SHORT_WATCH && watch.events == 0 {
                    return Some(Error::new(
                        Cause::Broken,
                        "the watch ended immediately, without an event",
                    ));
                }
                if lasted >= HEALTHY_WATCH {
                    self.watches.reset();
                }
                // Limits a server that ends every watch after an event or two to one request per
                // second.
                let pause = self.until_next_watch(now);
                self.phase = self.resume(now).after(now, pause);
                None
            }
            Phase::Stream { .. } => Some(Error::new(
                Cause::Broken,
                "the streaming list ended before its initial events did",
            )),
            Phase::List { .. } | Phase::Wait { .. } => None,
        }
    }

    /// Returns how long to wait from `now` on for the next item, and what to do if none arrives.
    pub(crate) fn patience(&self, now: Duration) -> Option<(Duration, Alarm)> {
        let (until, alarm) = match &self.phase {
            Phase::Watch(Watch { ask_version_at: Some(at), .. }) if self.doubted => {
                (*at, Alarm::AskVersion)
            }
            Phase::Stream { began, heard, .. } => {
                ((*heard + STREAM_QUIET_MAX).min(*began + STREAM_TOTAL_MAX), Alarm::Silence)
            }
            Phase::Watch(watch) => (watch.heard + self.silence_max(), Alarm::Silence),
            Phase::List { .. } | Phase::Wait { .. } => return None,
        };
        Some((until.saturating_sub(now), alarm))
    }

    /// Returns the error for a watch or stream that has been [silent](Alarm::Silence) for too long.
    pub(crate) fn silence(&self) -> Error {
        let text = match &self.phase {
            Phase::Stream { .. } => {
                "the server does not end the initial events of the streaming list".to_owned()
            }
            _ => format!(
                "nothing came on the watch for {} s, not even a bookmark: its connection is taken for dead",
                self.silence_max().as_secs()
            ),
        };
        Error::new(Cause::Silence, text)
    }

    /// Returns whether the server may have lost versions that were seen before.
    pub(crate) fn doubts(&self) -> bool {
        self.doubted
    }

    /// Reports that the server is being asked for its version; once each time that a watch is
    /// opened.
    pub(crate) fn asking_version(&mut self) {
        if let Phase::Watch(watch) = &mut self.phase {
            watch.ask_version_at = None;
        }
    }

    /// Returns how long a watch may be silent.
    pub(crate) fn silence_max(&self) -> Duration {
        if self.may_be_quiet() {
            // The server ends the watch before that.
            self.settings.watch_timeout * 2 + SILENCE_MAX
        } else {
            SILENCE_MAX
        }
    }

    /// Returns whether silence is normal: without bookmarks a quiet watch is not dead, unless lists
    /// show otherwise.
    fn may_be_quiet(&self) -> bool {
        let Learned { bookmarks, watches, silent_watches, .. } = self.learned;
        !bookmarks
            && watches != Watches::Swallowed
            && silent_watches >= SILENT_WATCHES_MAX
            && !self.doubted
    }

    /// Reports a failure. Returns the reaction to it, and the number of consecutive failures.
    pub(crate) fn failed(&mut self, now: Duration, error: &Error) -> (Next, u32) {
        let fault = table::classify(error);
        let (during, consistent) = self.during(now, fault);
        if matches!(during, During::Watch { lasted: true, .. }) {
            self.watches.reset();
        }
        let fault = self.expected_more(now, fault, during);
        let failures = self.backoff(during, fault).failures(now);
        let (then, pace) = table::decide(fault, during, failures, consistent);
        let after = self.delay(now, during, fault, pace, error);
        self.count(during, fault);
        self.newer = false;
        if then == Then::Poll {
            // If the lists fail too, this does not reset their backoff.
            self.lists = self.watches;
        }
        self.phase = self.follow(now, then).after(now, after);
        let next = match (then, during) {
            (Then::FallBack, _) => Next::FallBackToList,
            (Then::Again, During::Watch { .. }) => Next::Resume { after },
            (Then::Poll, _) => Next::Poll { after },
            _ => Next::Relist { after },
        };
        (next, failures + 1)
    }
}

fn regressed(version: &ResourceVersion, last: &ResourceVersion) -> Error {
    Error::new(
        Cause::Regressed,
        format!(
            "the server is at version {version} but was at {last} before: it lags behind, or has been restored from a backup"
        ),
    )
}

#[cfg(test)]
mod tests;
