//! Reads everything a few times a second while a page is open, and nothing otherwise.
//!
//! # Architecture invariants
//! - Without an open page and without a history, no handler is registered and no task runs.
//! - Pages share one message. A page that reads slowly skips messages; none are queued for it.
//! - Informers never wait for a page: its handlers have backlogs of their own, like any other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use kube_informer::RegistrationGuard;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::log::{Log, Row, unix_millis};
use crate::readings::{Named, Readings, Sources, TAP_PREFIX};
use crate::timeline::{Mark, MarkKind, Point, Timeline};

/// The time between two messages to open pages: often enough to look alive.
const BEAT: Duration = Duration::from_millis(250);

/// The time between two readings if only the history needs them.
const QUIET_BEAT: Duration = Duration::from_secs(1);

/// The number of events in a message. More would not be seen; they are counted.
const EVENTS_PER_MESSAGE: usize = 40;

/// The number of events that a page receives when it opens.
const EVENTS_AT_FIRST: usize = 200;

/// The number of pages that can be open at the same time.
const PAGES_MAX: usize = 16;

/// A page that does not take the next message for this long is not waited for.
pub(crate) const LATE_MAX: Duration = Duration::from_secs(10);

/// The number of the next page of this process.
static PAGES: AtomicU64 = AtomicU64::new(0);

/// The part of a page that the pulse needs.
pub(crate) struct Pulse {
    pub(crate) sources: Sources,
    pub(crate) log: Arc<Log>,
    /// The name of the handlers through which this page sees events.
    tap: String,
    /// Whether events are recorded without an open page.
    history: bool,
    /// Facts that do not change, for pages that open.
    about: serde_json::Value,
    state: Mutex<PulseState>,
    latest: watch::Sender<Bytes>,
}

#[derive(Default)]
struct PulseState {
    beats: bool,
    taps: BTreeMap<Arc<str>, RegistrationGuard>,
    timeline: Timeline,
    readers: Vec<Weak<Reader>>,
    /// The numbers of the next event and the next mark to send.
    next_event: u64,
    next_mark: u64,
}

/// An open page.
#[derive(Default)]
pub(crate) struct Reader {
    /// When the page took a message, unless it waits for the next.
    took: Mutex<Option<Instant>>,
}

impl Reader {
    /// Records that the page has taken a message.
    pub(crate) fn took(&self) {
        *self.took.lock() = Some(Instant::now());
    }

    /// Records that the page waits for a message. Returns false if it comes too late.
    pub(crate) fn waits(&self) -> bool {
        let in_time = !self.is_late();
        *self.took.lock() = None;
        in_time
    }

    fn is_late(&self) -> bool {
        self.took.lock().is_some_and(|took| took.elapsed() > LATE_MAX)
    }
}

/// A message to open pages.
#[derive(Serialize)]
struct Message<'a> {
    now: u64,
    #[serde(flatten)]
    readings: &'a Readings,
    events: Vec<Row>,
    /// The number of events that are not in the message.
    more: u64,
    points: Vec<Point>,
    marks: Vec<Mark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a serde_json::Value>,
}

impl Pulse {
    pub(crate) fn new(
        sources: Sources,
        objects: bool,
        history: bool,
        about: serde_json::Value,
    ) -> Self {
        Self {
            sources,
            log: Arc::new(Log::new(objects)),
            tap: format!("{TAP_PREFIX}{}", PAGES.fetch_add(1, Ordering::Relaxed)),
            history,
            about,
            state: Mutex::default(),
            latest: watch::Sender::new(Bytes::new()),
        }
    }

    /// Opens a page: returns its first message, and the ones to come. `None` if too many pages are open.
    pub(crate) fn open(self: &Arc<Self>) -> Option<(Bytes, watch::Receiver<Bytes>, Arc<Reader>)> {
        let reader = Arc::new(Reader::default());
        {
            let mut state = self.state.lock();
            if state.pages() >= PAGES_MAX {
                return None;
            }
            state.readers.push(Arc::downgrade(&reader));
        }
        let mut messages = self.latest.subscribe();
        // Registers the handlers, if this is the first page.
        self.beat();
        messages.mark_unchanged();
        self.start();
        let informers = self.sources.named();
        let readings = self.sources.read(&informers);
        let (events, more) = self.log.since(0, EVENTS_AT_FIRST);
        let state = self.state.lock();
        let first = message(
            "hello",
            &Message {
                now: unix_millis(),
                readings: &readings,
                events,
                more,
                points: state.timeline.points().copied().collect(),
                marks: state.timeline.marks(0).0,
                about: Some(&self.about),
            },
        );
        Some((first, messages, reader))
    }

    /// Adds a mark to the timeline.
    pub(crate) fn mark(&self, kind: MarkKind, text: String) {
        self.state.lock().timeline.mark(unix_millis(), &"".into(), kind, text);
    }

    /// Starts the task that beats, unless it runs or there is nothing to do.
    pub(crate) fn start(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut state = self.state.lock();
        if state.beats || !(self.history || state.pages() > 0) {
            return;
        }
        state.beats = true;
        drop(state);
        runtime.spawn(beats(Arc::downgrade(self)));
    }

    /// Reads everything once, and sends it to open pages. Returns the time until the next reading, or `None` if
    /// nothing needs one.
    fn beat(&self) -> Option<Duration> {
        let informers = self.sources.named();
        let readings = self.sources.read(&informers);
        let mut state = self.state.lock();
        let pages = state.pages();
        if pages == 0 && !self.history {
            let ended = std::mem::take(&mut *state);
            drop(state);
            drop(ended);
            self.log.clear();
            return None;
        }
        state.tap(&self.tap, &informers, &self.log);
        let points = state.timeline.record(unix_millis(), &readings);
        if pages == 0 {
            // A page that opens later gets these with its first message.
            state.next_event = self.log.next();
            state.next_mark = state.timeline.marks(u64::MAX).1;
            return Some(QUIET_BEAT);
        }
        let (events, more) = self.log.since(state.next_event, EVENTS_PER_MESSAGE);
        state.next_event += events.len() as u64 + more;
        let (marks, next_mark) = state.timeline.marks(state.next_mark);
        state.next_mark = next_mark;
        drop(state);
        let now = unix_millis();
        let message = message(
            "beat",
            &Message { now, readings: &readings, events, more, points, marks, about: None },
        );
        self.latest.send_replace(message);
        Some(BEAT)
    }
}

async fn beats(pulse: Weak<Pulse>) {
    loop {
        let Some(strong) = pulse.upgrade() else { return };
        let Some(pause) = strong.beat() else { return };
        drop(strong);
        sleep(pause).await;
    }
}

impl PulseState {
    /// Returns the number of pages that read their messages.
    fn pages(&mut self) -> usize {
        self.readers.retain(|reader| reader.strong_count() > 0);
        let readers = self.readers.iter().filter_map(Weak::upgrade);
        readers.filter(|reader| !reader.is_late()).count()
    }

    /// Registers a handler with each informer that has none, and drops those of informers that are gone.
    fn tap(&mut self, tap: &str, informers: &[Named], log: &Arc<Log>) {
        self.taps.retain(|name, _| informers.iter().any(|named| named.name == *name));
        for Named { name, informer } in informers {
            if informer.handlers().iter().any(|handler| handler.name() == tap) {
                continue;
            }
            let (log, of) = (log.clone(), name.clone());
            // The page does not keep an informer running.
            let handler = informer.handler().name(tap).only_changes().weak();
            let handler = handler.for_each(move |event| log.note(&of, event));
            self.taps.insert(name.clone(), handler.remove_on_drop());
        }
    }
}

/// Encodes a server-sent event. JSON contains no line breaks.
fn message(kind: &str, message: &Message<'_>) -> Bytes {
    let json = serde_json::to_string(message).unwrap_or_default();
    format!("event: {kind}\ndata: {json}\n\n").into()
}
