//! Counters of an informer's lists and watches.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::measure::{Count, Histogram, ITEMS, LIST_SECONDS, WATCH_SECONDS};
use crate::{ErrorReport, Next, RequestCounts};

/// A watch that ends sooner and without an event counts as short. client-go uses the same duration.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Counts of lists and watches since the informer was created, for metrics.
pub(crate) struct Reflections {
    pub(super) lists: Count,
    pub(crate) list_duration: Histogram,
    pub(crate) items_per_list: Histogram,
    pub(super) watches: Count,
    short_watches: Count,
    pub(crate) watch_duration: Histogram,
    pub(crate) items_per_watch: Histogram,
    /// Objects that could not be read or kept.
    skipped: Count,
    /// By error: lists that replaced the cache because of it, and watches that were resumed after it.
    relists: Mutex<BTreeMap<&'static str, u64>>,
    restarts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Reflections {
    pub(super) fn new() -> Self {
        Self {
            lists: Count::default(),
            list_duration: Histogram::new(LIST_SECONDS),
            items_per_list: Histogram::new(ITEMS),
            watches: Count::default(),
            short_watches: Count::default(),
            watch_duration: Histogram::new(WATCH_SECONDS),
            items_per_watch: Histogram::new(ITEMS),
            skipped: Count::default(),
            relists: Mutex::default(),
            restarts: Mutex::default(),
        }
    }

    pub(super) fn listed(&self, took: Duration, items: u64) {
        self.list_duration.record_duration(took);
        self.items_per_list.record(items as f64);
    }

    pub(super) fn watched(&self, took: Duration, events: u64) {
        self.watch_duration.record_duration(took);
        self.items_per_watch.record(events as f64);
        if events == 0 && took < SHORT_WATCH {
            self.short_watches.add();
        }
    }

    pub(super) fn failed(&self, report: &ErrorReport) {
        let reason = report.error.reason();
        match report.next {
            Next::Relist { .. } | Next::Poll { .. } | Next::FallBackToList => {
                *self.relists.lock().entry(reason).or_default() += 1;
            }
            Next::Resume { .. } => *self.restarts.lock().entry(reason).or_default() += 1,
            Next::SkipObject => self.skipped.add(),
        }
    }

    /// Returns all counts. The number of events is counted elsewhere.
    pub(super) fn counts(&self, events: u64) -> RequestCounts {
        RequestCounts {
            lists: self.lists.get(),
            watches: self.watches.get(),
            short_watches: self.short_watches.get(),
            events,
            skipped: self.skipped.get(),
            relists: self.relists.lock().clone(),
            restarts: self.restarts.lock().clone(),
        }
    }
}
