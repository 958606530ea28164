//! The list-watch protocol as a state machine: no async, no clock, no I/O.
//!
//! The driver asks [`Machine::request`] what to do, does it, and tells the machine what came of it.
//! Time comes in as the time since the reflector began, randomness from a seed.

mod follow;

use std::cmp::Ordering;
use std::time::Duration;

use super::backoff::{Backoff, Delays};
use super::phase::{Alarm, Effect, Page, Phase, Request, Seen, Watch};
use super::table::{self, During, Then};
use crate::error::Cause;
use crate::list_watch::ListOptions;
use crate::{Error, Next, ResourceVersion};

/// Watches end by themselves after this to twice this, so that they spread over servers again.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(300);
/// Bookmarks come every minute: a watch that is silent for longer than that is dead.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(75);
/// How long after the last initial event the end of the initial events must have come.
const STREAM_QUIET_MAX: Duration = Duration::from_secs(30);
/// How long a streaming list may take in all: some servers never say that it is over.
const STREAM_TOTAL_MAX: Duration = Duration::from_secs(300);
/// A watch that ends sooner is not begun again at once.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// A watch that lasted this long was healthy, whatever ended it: what went wrong before it does not
/// count any more.
const HEALTHY_WATCH: Duration = Duration::from_secs(3);
/// Silent watches after which a server that has never sent a bookmark is believed to send none.
const SILENT_WATCHES_MAX: u32 = 2;
/// How long a watch that was reopened after a failure may be silent before the server is asked for its
/// version. Up to as much again is added at random.
const ASK_VERSION_AFTER: Duration = Duration::from_secs(2);

/// How to ask, and how to wait.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Whether to ask for streaming lists.
    pub(crate) streaming: bool,
    pub(crate) page_objects: Option<u32>,
    /// The least time that watches are asked to last.
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
    /// Zero is no page size.
    pub(crate) fn set_page_size(&mut self, objects: u32) {
        self.page_objects = Some(objects).filter(|objects| *objects > 0);
    }

    /// Zero would leave it to the server; a day is longer than any server lets one last.
    pub(crate) fn set_watch_timeout(&mut self, least: Duration) {
        self.watch_timeout = least.clamp(Duration::from_secs(1), Duration::from_secs(86_400));
    }
}

/// The protocol.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    phase: Phase,
    /// The newest version that was seen.
    last: ResourceVersion,
    settings: Settings,
    learned: Learned,
    /// A watch has failed, and nothing has come since. The server that answers now may have been
    /// restored from a backup, and say nothing until it has come to the version that it is asked for.
    doubted: bool,
    /// The last watch was given up because it was silent.
    silent: bool,
    /// The list that is being read has an object that no watch has brought.
    newer: bool,
    stream_failures: u32,
    lists: Backoff,
    watches: Backoff,
    /// Of watches whose version cannot be had any more: the server answers, so that the failures of
    /// watches do not count.
    expiries: Backoff,
    random: fastrand::Rng,
}

/// Facts that the server has shown about itself.
#[derive(Clone, Debug, Default)]
struct Learned {
    /// It pages what it could have served from its cache: it has none.
    pages_always: bool,
    /// It has sent a bookmark on a watch.
    bookmarks: bool,
    watches: Watches,
    silent_watches: u32,
}

/// Whether watches work.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum Watches {
    /// Nothing has come on any: there may have been nothing to bring.
    #[default]
    Unknown,
    /// Something has come.
    Work,
    /// A list has shown what a silent watch should have brought.
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

    /// The content at this version is known from an earlier run: watch from there. Since then the server may
    /// have been restored from a backup.
    pub(crate) fn resume_from(&mut self, version: ResourceVersion) {
        self.last = version;
        self.doubted = true;
        self.phase = self.resume(Duration::ZERO);
    }

    /// The newest version that was seen.
    #[cfg(test)]
    pub(crate) fn last(&self) -> &ResourceVersion {
        &self.last
    }

    /// What to do now. Asking again changes nothing but a watch's timeout.
    pub(crate) fn request(&mut self) -> Request {
        match &self.phase {
            Phase::List { page } => Request::List(ListOptions {
                // A token says which version it continues.
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

    /// The time has come that a [`Request::Wait`] named.
    pub(crate) fn waited(&mut self, now: Duration) {
        if let Phase::Wait { then, .. } = &self.phase {
            self.phase = (**then).clone();
            self.begin(now);
        }
    }

    /// The watch or stream that was asked for is open.
    pub(crate) fn opened(&mut self, now: Duration) {
        let pause = ASK_VERSION_AFTER.mul_f64(1.0 + self.random.f64());
        if let Phase::Watch(watch) = &mut self.phase {
            watch.opened = Some(now);
            watch.ask_version_at = self.doubted.then_some(now + pause);
        }
        self.begin(now);
    }

    /// An object of a list has come.
    pub(crate) fn item(&mut self, version: &ResourceVersion) {
        self.newer |= !self.last.is_empty() && *version > self.last;
    }

    /// A page of a list has come in full.
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

    /// Something has come on a watch or a stream.
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
                    // What changes while the list is streamed does not show that the list goes on.
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

    /// The server has said which version it is at, since it was [asked](Alarm::AskVersion).
    pub(crate) fn server_is_at(&mut self, version: &ResourceVersion) -> Effect {
        if version.partial_cmp(&self.last) == Some(Ordering::Less) {
            return Effect::Fail(regressed(version, &self.last));
        }
        self.doubted = false;
        Effect::Ignore
    }

    /// A watch or a stream has ended, as all of them do.
    ///
    /// Returns the error that this is, if it is one.
    pub(crate) fn ended(&mut self, now: Duration) -> Option<Error> {
        match &self.phase {
            Phase::Watch(watch) => {
                let lasted = watch.lasted(now);
                if lasted < SHORT_WATCH && watch.events == 0 {
                    return Some(Error::new(
                        Cause::Broken,
                        "the watch ended as soon as it had begun, without an event",
                    ));
                }
                if lasted >= HEALTHY_WATCH {
                    self.watches.reset();
                }
                // A server that ends every watch after an event or two is asked once a second.
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

    /// How long to wait for the next thing to come, from `now` on, and what to do if nothing does.
    pub(crate) fn patience(&self, now: Duration) -> Option<(Duration, Alarm)> {
        let (until, text) = match &self.phase {
            Phase::Watch(Watch { ask_version_at: Some(at), .. }) if self.doubted => {
                return Some((at.saturating_sub(now), Alarm::AskVersion));
            }
            Phase::Stream { began, heard, .. } => (
                (*heard + STREAM_QUIET_MAX).min(*began + STREAM_TOTAL_MAX),
                "the server does not end the initial events of the streaming list".to_owned(),
            ),
            Phase::Watch(watch) => (
                watch.heard + self.silence_max(),
                format!(
                    "nothing came on the watch for {} s, not even a bookmark: its connection is taken for dead",
                    self.silence_max().as_secs()
                ),
            ),
            Phase::List { .. } | Phase::Wait { .. } => return None,
        };
        let silence = Alarm::Silence(Error::new(Cause::Silence, text));
        Some((until.saturating_sub(now), silence))
    }

    /// Whether it is still in doubt that the server has what was seen of it before.
    pub(crate) fn doubts(&self) -> bool {
        self.doubted
    }

    /// The server is being asked for its version; once for each time that a watch is opened.
    pub(crate) fn asking_version(&mut self) {
        if let Phase::Watch(watch) = &mut self.phase {
            watch.ask_version_at = None;
        }
    }

    /// How long a watch may be silent.
    pub(crate) fn silence_max(&self) -> Duration {
        if self.may_be_quiet() {
            // The server ends it before that.
            self.settings.watch_timeout * 2 + SILENCE_MAX
        } else {
            SILENCE_MAX
        }
    }

    /// Without bookmarks a quiet watch is not a dead one, unless lists show otherwise.
    fn may_be_quiet(&self) -> bool {
        let Learned { bookmarks, watches, silent_watches, .. } = self.learned;
        !bookmarks
            && watches != Watches::Swallowed
            && silent_watches >= SILENT_WATCHES_MAX
            && !self.doubted
    }

    /// Something went wrong. Returns what is done about it, and the number of consecutive failures.
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
            // If the lists fail too, they are no reason to begin anew.
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
            "the server says {version} where it has said {last} before: it lags behind, or has been restored from a backup"
        ),
    )
}

#[cfg(test)]
mod tests;
