//! The list-watch protocol as a state machine: no async, no clock, no I/O.
//!
//! The driver asks [`Machine::request`] what to do, does it, and tells the machine what came of it.
//! Time comes in as the time since the reflector began, randomness from a seed.

use std::cmp::Ordering;
use std::time::Duration;

use super::backoff::Backoff;
use super::phase::{Effect, Page, Phase, Request, Seen};
use super::table::{self, During, Fault, Pace, STREAM_FAILURES_MAX, Then};
use crate::error::Cause;
use crate::list_watch::{ListOptions, WatchOptions};
use crate::wire::RETRY_AFTER_MAX;
use crate::{Error, Next, ResourceVersion};

/// What client-go asks for; a page of 500 pods is some 5 MB.
const PAGE_OBJECTS: u32 = 500;
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
/// Silent watches after which a server that has never sent a bookmark is believed to send none.
const SILENT_WATCHES_MAX: u32 = 2;

/// The protocol.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is learned by itself")]
pub(crate) struct Machine {
    phase: Phase,
    /// The newest version that was seen.
    last: ResourceVersion,
    page_objects: Option<u32>,
    /// Whether to ask for streaming lists.
    streaming: bool,
    /// The server pages what it could have served from its cache: it has none.
    pages_always: bool,
    /// Whether the server has ever sent a bookmark on a quiet watch.
    bookmarks: bool,
    silent_watches: u32,
    /// A watch has failed and nothing has come since: whoever answers now may have been restored from a
    /// backup, and say nothing until it has come to the version that it is asked for.
    doubted: bool,
    stream_failures: u32,
    lists: Backoff,
    watches: Backoff,
    /// Of watches whose version cannot be had any more: the server answers, so that what came before
    /// does not count.
    expiries: Backoff,
    random: fastrand::Rng,
}

impl Machine {
    pub(crate) fn new(streaming: bool, page_objects: Option<u32>, seed: u64) -> Self {
        let mut machine = Self {
            phase: Phase::List { page: Page::default() },
            last: ResourceVersion::default(),
            page_objects,
            streaming,
            pages_always: false,
            bookmarks: false,
            silent_watches: 0,
            doubted: false,
            stream_failures: 0,
            lists: Backoff::default(),
            watches: Backoff::default(),
            expiries: Backoff::default(),
            random: fastrand::Rng::with_seed(seed),
        };
        machine.phase = machine.relist(Duration::ZERO, false);
        machine
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
            Phase::Watch { asked, .. } => {
                let asked = Some(asked.clone());
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
        if let Phase::Watch { opened, .. } = &mut self.phase {
            *opened = Some(now);
        }
        self.begin(now);
    }

    /// A page of a list has come in full.
    pub(crate) fn page(&mut self, version: &ResourceVersion, token: Option<String>) -> Effect {
        let Phase::List { page } = &mut self.phase else { return Effect::Ignore };
        let version = page.version.get_or_insert_with(|| version.clone()).clone();
        if let Some(token) = token {
            if page.asked.as_ref().is_some_and(|asked| *asked == "0") {
                self.pages_always = true;
            }
            page.token = Some(token);
            return Effect::Gather;
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
                Seen::Added | Seen::Changed => {
                    // What changes while the list is streamed does not show that the list goes on.
                    if seen == Seen::Added {
                        *heard = now;
                    }
                    Effect::Gather
                }
            },
            Phase::Watch { heard, events, .. } => {
                (*heard, *events) = (now, *events + 1);
                self.watched(seen, version)
            }
            Phase::List { .. } | Phase::Wait { .. } => Effect::Ignore,
        }
    }

    /// A watch or a stream has ended, as all of them do.
    ///
    /// Gives the error that this is, if it is one.
    pub(crate) fn ended(&mut self, now: Duration) -> Option<Error> {
        match &self.phase {
            Phase::Watch { asked, opened, events, .. } => {
                let lasted = now.saturating_sub(opened.unwrap_or(now));
                if lasted < SHORT_WATCH && *events == 0 {
                    return Some(Error::new(
                        Cause::Broken,
                        "the watch ended as soon as it had begun, without an event",
                    ));
                }
                // A server that ends every watch after an event or two is asked once a second.
                let until = opened.unwrap_or(now) + SHORT_WATCH;
                let again = Self::watch(self.last_or(asked.clone()), now);
                // That it ended says nothing of its version.
                let doubted = self.doubted && *events == 0;
                self.watch_is_well();
                self.doubted = doubted;
                self.phase = if lasted >= SHORT_WATCH {
                    again
                } else {
                    Phase::Wait { until, then: Box::new(again) }
                };
                None
            }
            Phase::Stream { .. } => Some(Error::new(
                Cause::Broken,
                "the streaming list ended before its initial events did",
            )),
            Phase::List { .. } | Phase::Wait { .. } => None,
        }
    }

    /// How long to wait for the next thing to come, from `now` on; and the error that it is if
    /// nothing does.
    pub(crate) fn patience(&self, now: Duration) -> Option<(Duration, Error)> {
        let (until, text) = match &self.phase {
            Phase::Stream { began, heard, .. } => (
                (*heard + STREAM_QUIET_MAX).min(*began + STREAM_TOTAL_MAX),
                "the server does not end the initial events of the streaming list".to_owned(),
            ),
            Phase::Watch { heard, .. } => (
                *heard + self.silence_max(),
                format!(
                    "nothing came on the watch for {} s, not even a bookmark: its connection is taken for dead",
                    self.silence_max().as_secs()
                ),
            ),
            Phase::List { .. } | Phase::Wait { .. } => return None,
        };
        Some((until.saturating_sub(now), Error::new(Cause::Silence, text)))
    }

    /// How long a watch may be silent.
    pub(crate) fn silence_max(&self) -> Duration {
        if self.bookmarks || self.doubted || self.silent_watches < SILENT_WATCHES_MAX {
            SILENCE_MAX
        } else {
            // The server ends it before that.
            WATCH_TIMEOUT_MIN * 2 + SILENCE_MAX
        }
    }

    /// Something went wrong: says what is done about it, and the how manieth failure in a row it is.
    pub(crate) fn failed(&mut self, now: Duration, error: &Error) -> (Next, u32) {
        let (during, consistent) = self.during();
        let fault = match table::classify(error) {
            Fault::Silence
                if during == During::Watch
                    && (self.doubted || self.bookmarks && self.watches.failures() > 0) =>
            {
                Fault::SilenceAgain
            }
            fault => fault,
        };
        self.doubted |= during == During::Watch && fault != Fault::Silence;
        let failures = self.backoff(during, fault).failures();
        let (then, pace) = table::decide(fault, during, failures, consistent);
        let after = self.delay(during, fault, pace, error);
        self.count_broken_stream(during, fault);
        let phase = self.follow(now, then);
        self.phase = if after.is_zero() {
            phase
        } else {
            Phase::Wait { until: now + after, then: Box::new(phase) }
        };
        let next = match (then, during) {
            (Then::FallBack, _) => Next::FallBackToList,
            (Then::Again, During::Watch) => Next::Resume { after },
            _ => Next::Relist { after },
        };
        (next, failures + 1)
    }
}

impl Machine {
    /// The content is known at this version: watch on from there.
    fn listed(&mut self, version: ResourceVersion, asked: Option<&ResourceVersion>) -> Effect {
        if version.is_empty() {
            return Effect::Fail(Error::protocol(
                "the list has no resourceVersion, so that there is nothing to watch from",
            ));
        }
        let older = version.partial_cmp(&self.last) == Some(Ordering::Less);
        if older && asked.is_some() {
            return Effect::Fail(regressed(&version, &self.last));
        }
        // The most recent version is older than one that we have seen: the server has been restored
        // from a backup. What it says now is what there is.
        self.last = version.clone();
        self.lists.reset();
        self.stream_failures = 0;
        self.doubted = false;
        self.phase = Self::watch(version.clone(), Duration::ZERO);
        Effect::Replace(version)
    }

    fn watched(&mut self, seen: Seen, version: &ResourceVersion) -> Effect {
        if version.partial_cmp(&self.last) == Some(Ordering::Less) {
            let synthetic = seen == Seen::Added && self.is_from_zero();
            return if synthetic {
                Effect::Apply
            } else {
                Effect::Fail(regressed(version, &self.last))
            };
        }
        self.watch_is_well();
        self.bookmarks |= matches!(seen, Seen::Bookmark { .. });
        if seen == Seen::Added && self.is_from_zero() {
            return Effect::Apply;
        }
        if !version.is_empty() {
            self.last = version.clone();
            if let Phase::Watch { asked, .. } = &mut self.phase
                && *asked == "0"
            {
                *asked = version.clone();
            }
        }
        Effect::Apply
    }

    /// A watch from version 0 begins with objects in no order: their versions say nothing.
    fn is_from_zero(&self) -> bool {
        matches!(&self.phase, Phase::Watch { asked, .. } if *asked == "0")
    }

    fn during(&self) -> (During, bool) {
        match &self.phase {
            Phase::List { page } => {
                (During::List { continued: page.token.is_some() }, page.asked.is_none())
            }
            Phase::Stream { asked, .. } => (During::Stream, asked.is_none()),
            Phase::Watch { .. } | Phase::Wait { .. } => (During::Watch, false),
        }
    }

    fn backoff(&mut self, during: During, fault: Fault) -> &mut Backoff {
        match (during, fault) {
            (During::Watch, Fault::Expired { .. } | Fault::TooLarge | Fault::Regressed) => {
                &mut self.expiries
            }
            (During::Watch, _) => &mut self.watches,
            (During::List { .. } | During::Stream, _) => &mut self.lists,
        }
    }

    /// Something came on a watch, or it lasted.
    fn watch_is_well(&mut self) {
        self.doubted = false;
        self.watches.reset();
        self.expiries.reset();
    }

    fn delay(&mut self, during: During, fault: Fault, pace: Pace, error: &Error) -> Duration {
        let random = self.random.f64();
        let backoff = self.backoff(during, fault);
        let delay = match pace {
            Pace::Now => backoff.none(),
            Pace::FirstNow if backoff.failures() == 0 => backoff.none(),
            Pace::FirstNow | Pace::Backoff => backoff.next(random),
            Pace::Slow => backoff.slow(random),
        };
        if fault == Fault::Silence && during == During::Watch {
            self.silent_watches = self.silent_watches.saturating_add(1);
        }
        // Not all at once when the server said the same to everybody.
        let asked = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
        delay.max(asked.mul_f64(1.0 + random / 10.0))
    }

    /// Streams that keep breaking are given up for one list.
    fn count_broken_stream(&mut self, during: During, fault: Fault) {
        let breaks = matches!(fault, Fault::Broken | Fault::Server | Fault::Protocol);
        if during == During::Stream && breaks {
            self.stream_failures += 1;
        }
    }

    fn follow(&mut self, now: Duration, then: Then) -> Phase {
        match then {
            Then::Again => match &self.phase {
                Phase::Watch { asked, .. } => Self::watch(self.last_or(asked.clone()), now),
                Phase::List { page } => {
                    let consistent = page.asked.is_none();
                    self.relist(now, consistent)
                }
                Phase::Stream { asked, .. } => {
                    // The first stream asks for no version because there is none yet.
                    let consistent = asked.is_none() && !self.last.is_empty();
                    self.relist(now, consistent)
                }
                waiting @ Phase::Wait { .. } => waiting.clone(),
            },
            Then::Relist => self.relist(now, false),
            Then::RelistConsistent => self.relist(now, true),
            Then::ListUnpaged => {
                let asked = match &self.phase {
                    Phase::List { page } => page.asked.clone(),
                    _ => None,
                };
                Phase::List { page: Page { asked, ..Page::default() } }
            }
            Then::FallBack => {
                self.streaming = false;
                self.relist(now, false)
            }
        }
    }

    /// The beginning of a list: from any version the first time, then not older than what was seen,
    /// or the most recent.
    fn relist(&self, now: Duration, consistent: bool) -> Phase {
        let seen = Some(self.last.clone()).filter(|last| !consistent && !last.is_empty());
        if self.streaming && self.stream_failures < STREAM_FAILURES_MAX {
            return Phase::Stream { asked: seen, began: now, heard: now };
        }
        let asked = seen.or_else(|| (!consistent).then(|| "0".into()));
        // Servers answer from their cache, in one piece, if they are asked for a version but no
        // page; without a version they have to read their storage, and pages are kinder.
        let from_cache = asked.as_ref().is_some_and(|asked| *asked != "0") && !self.pages_always;
        let limit = self.page_objects.or((!from_cache).then_some(PAGE_OBJECTS));
        Phase::List { page: Page { asked, limit, ..Page::default() } }
    }

    fn watch(asked: ResourceVersion, now: Duration) -> Phase {
        Phase::Watch { asked, opened: None, heard: now, events: 0 }
    }

    fn last_or(&self, asked: ResourceVersion) -> ResourceVersion {
        if self.last.is_empty() { asked } else { self.last.clone() }
    }

    /// What waits for something to come begins to wait now.
    fn begin(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Stream { began, heard, .. } => (*began, *heard) = (now, now),
            Phase::Watch { heard, .. } => *heard = now,
            Phase::List { .. } | Phase::Wait { .. } => {}
        }
    }

    fn watch_options(&mut self, asked: Option<ResourceVersion>, initial: bool) -> WatchOptions {
        let spread = WATCH_TIMEOUT_MIN.mul_f64(self.random.f64());
        WatchOptions {
            resource_version: asked,
            send_initial_events: initial,
            timeout: Some(WATCH_TIMEOUT_MIN + spread),
        }
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
