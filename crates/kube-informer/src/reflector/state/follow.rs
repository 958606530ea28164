//! The transitions of the state machine.

use std::cmp::Ordering;
use std::time::Duration;

use super::super::backoff::Backoff;
use super::super::phase::{Effect, Page, Phase, Seen, Watch};
use super::super::table::{During, Fault, Pace, STREAM_FAILURES_MAX, Then};
use super::{HEALTHY_WATCH, Machine, SHORT_WATCH, SILENT_WATCHES_MAX, Watches, regressed};
use crate::list_watch::WatchOptions;
use crate::wire::RETRY_AFTER_MAX;
use crate::{Error, ResourceVersion};

/// client-go's value; a page of 500 pods has some 5 MB.
const PAGE_OBJECTS: u32 = 500;

impl Machine {
    /// The content is known at this version: watches from there.
    pub(super) fn listed(
        &mut self,
        version: ResourceVersion,
        asked: Option<&ResourceVersion>,
    ) -> Effect {
        let older = version.partial_cmp(&self.last) == Some(Ordering::Less);
        if older && asked.is_some() {
            return Effect::Fail(regressed(&version, &self.last));
        }
        // If the most recent version is older than one that was seen, the server has been restored
        // from a backup, and its current content is the truth.
        self.last = version.clone();
        self.lists.reset();
        self.stream_failures = 0;
        self.doubted = false;
        if std::mem::take(&mut self.newer) && self.silent {
            self.learned.watches = Watches::Swallowed;
        }
        self.phase = Phase::Watch(Watch::from(version.clone(), Duration::ZERO));
        Effect::Replace(version)
    }

    pub(super) fn watched(&mut self, seen: Seen, version: &ResourceVersion) -> Effect {
        let Phase::Watch(watch) = &mut self.phase else { return Effect::Ignore };
        let initial = seen == Seen::Added && watch.is_from_any();
        if version.partial_cmp(&self.last) == Some(Ordering::Less) && !initial {
            return Effect::Fail(regressed(version, &self.last));
        }
        (self.doubted, self.silent) = (false, false);
        self.learned.watches = Watches::Work;
        self.learned.bookmarks |= matches!(seen, Seen::Bookmark { .. });
        if !initial && !version.is_empty() {
            watch.advanced |= self.last != *version;
            self.last = version.clone();
            if watch.is_from_any() {
                watch.asked = version.clone();
            }
        }
        Effect::Apply
    }

    /// Returns the current activity, and whether it asks for the most recent version.
    pub(super) fn during(&self, now: Duration, fault: Fault) -> (During, bool) {
        match &self.phase {
            Phase::List { page } => {
                let (continued, paged) = (page.token.is_some(), page.limit.is_some());
                (During::List { continued, paged }, page.asked.is_none())
            }
            Phase::Stream { asked, .. } => (During::Stream, asked.is_none()),
            Phase::Watch(watch) => {
                // A watch on which nothing arrives lasts as long as its limit.
                let lasted = fault != Fault::Silence && watch.lasted(now) >= HEALTHY_WATCH;
                (During::Watch { worked: lasted || watch.advanced, lasted }, false)
            }
            Phase::Wait { .. } => (During::Watch { worked: false, lasted: false }, false),
        }
    }

    /// Distinguishes silence on a watch that should have delivered something from that of a quiet
    /// one.
    pub(super) fn expected_more(&self, now: Duration, fault: Fault, during: During) -> Fault {
        let learned = &self.learned;
        // If it may be quiet, the limit was the time after which the server should have ended it.
        let expected = self.doubted
            || self.may_be_quiet()
            || learned.bookmarks && self.watches.failures(now) > 0
            || learned.watches != Watches::Work && learned.silent_watches + 1 >= SILENT_WATCHES_MAX;
        match (fault, during) {
            (Fault::Silence, During::Watch { .. }) if expected => Fault::SilenceAgain,
            _ => fault,
        }
    }

    pub(super) fn backoff(&mut self, during: During, fault: Fault) -> &mut Backoff {
        match (during, fault) {
            (
                During::Watch { .. },
                Fault::Expired { .. } | Fault::TooLarge | Fault::Regressed | Fault::Store,
            ) => &mut self.expiries,
            (During::Watch { .. }, _) => &mut self.watches,
            (During::List { .. } | During::Stream, _) => &mut self.lists,
        }
    }

    pub(super) fn delay(
        &mut self,
        now: Duration,
        during: During,
        fault: Fault,
        pace: Pace,
        error: &Error,
    ) -> Duration {
        let (random, delays) = (self.random.f64(), self.settings.delays);
        let spread = self.until_next_watch(now);
        let lasted = matches!(during, During::Watch { lasted: true, .. });
        let backoff = self.backoff(during, fault);
        let delay = match pace {
            Pace::NextWatch if lasted => backoff.fail_now(now).max(spread),
            Pace::NextWatch => spread,
            Pace::Now => backoff.fail_now(now),
            Pace::FirstNow if backoff.failures(now) == 0 => backoff.fail_now(now),
            Pace::FirstNow | Pace::Backoff => backoff.fail(now, delays, random),
        };
        // Adds jitter, because the server may have sent the same delay to all clients.
        let asked = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
        delay.max(asked.mul_f64(1.0 + random / 10.0))
    }

    /// Returns how long to wait so that no more than one watch is opened every [`SHORT_WATCH`].
    pub(super) fn until_next_watch(&self, now: Duration) -> Duration {
        let Phase::Watch(watch) = &self.phase else { return Duration::ZERO };
        SHORT_WATCH.saturating_sub(watch.lasted(now))
    }

    /// Records what a failure reveals about the server.
    pub(super) fn count(&mut self, during: During, fault: Fault) {
        match (during, fault) {
            // A list would fare no better, or a stream will work next time.
            (
                During::Stream,
                Fault::Refused
                | Fault::TooMany
                | Fault::Unauthorized
                | Fault::NotFound
                | Fault::Expired { .. }
                | Fault::TooLarge
                | Fault::Regressed,
            ) => {}
            // After repeated failures, a list replaces the stream once.
            (During::Stream, _) => self.stream_failures += 1,
            (During::Watch { .. }, Fault::Silence | Fault::SilenceAgain) => {
                self.learned.silent_watches = self.learned.silent_watches.saturating_add(1);
                (self.doubted, self.silent) = (true, true);
            }
            (During::Watch { .. }, _) => (self.doubted, self.silent) = (true, false),
            _ => {}
        }
    }

    pub(super) fn follow(&mut self, now: Duration, then: Then) -> Phase {
        match then {
            Then::Again => match &self.phase {
                Phase::Watch(_) => self.resume(now),
                Phase::List { page } => {
                    let consistent = page.asked.is_none();
                    self.relist(now, consistent)
                }
                Phase::Stream { asked, .. } => {
                    // The first stream asks for no version because none is known yet.
                    let consistent = asked.is_none() && !self.last.is_empty();
                    self.relist(now, consistent)
                }
                waiting @ Phase::Wait { .. } => waiting.clone(),
            },
            Then::Relist => self.relist(now, false),
            Then::Poll => {
                // Whatever breaks watches breaks streams as well.
                self.stream_failures = STREAM_FAILURES_MAX;
                self.relist(now, false)
            }
            Then::RelistConsistent => self.relist(now, true),
            Then::ListUnpaged => {
                let asked = match &self.phase {
                    Phase::List { page } => page.asked.clone(),
                    _ => None,
                };
                Phase::List { page: Page::first(asked, None) }
            }
            Then::FallBack => {
                self.settings.streaming = false;
                self.relist(now, false)
            }
        }
    }

    /// Returns a watch from the last version. If the server has no versions, only a list shows what was missed.
    pub(super) fn resume(&self, now: Duration) -> Phase {
        if self.last.is_empty() {
            return self.relist(now, false);
        }
        Phase::Watch(Watch::from(self.last.clone(), now))
    }

    /// Returns the start of a list: of any version the first time, then not older than what was
    /// seen, or the most recent.
    pub(super) fn relist(&self, now: Duration, consistent: bool) -> Phase {
        let seen = Some(self.last.clone()).filter(|last| !consistent && !last.is_empty());
        if self.settings.streaming && self.stream_failures < STREAM_FAILURES_MAX {
            return Phase::Stream { asked: seen, began: now, heard: now };
        }
        let asked = seen.or_else(|| (!consistent).then(|| "0".into()));
        // If a request has a version but no page size, servers answer from their cache, in one
        // piece; without a version they have to read their storage, and pages reduce the load.
        let cached = asked.as_ref().is_some_and(|asked| *asked != "0");
        let paged = !cached || self.learned.pages_always;
        let limit = self.settings.page_objects.or(paged.then_some(PAGE_OBJECTS));
        Phase::List { page: Page::first(asked, limit) }
    }

    /// Restarts the clocks that measure silence.
    pub(super) fn begin(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Stream { began, heard, .. } => (*began, *heard) = (now, now),
            Phase::Watch(watch) => watch.heard = now,
            Phase::List { .. } | Phase::Wait { .. } => {}
        }
    }

    pub(super) fn watch_options(
        &mut self,
        asked: Option<ResourceVersion>,
        initial: bool,
    ) -> WatchOptions {
        let least = self.settings.watch_timeout;
        WatchOptions {
            resource_version: asked,
            send_initial_events: initial,
            timeout: Some(least + least.mul_f64(self.random.f64())),
        }
    }
}
