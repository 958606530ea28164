//! The state of everything that the page shows, read on demand.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::controller::ControllerHandle;
use kube_informer::workqueue::{QueueStatus, Task};
use kube_informer::{
    InformerStatus, Registration, SharedInformer, State, WeakInformerFactory, WorkQueue,
};
use serde::Serialize;
use tokio::time::Instant;

use crate::words;

/// The number of characters of a name that are shown. Names contain namespaces and selectors.
const NAME_CHARS_MAX: usize = 200;

/// The number of informers, and of handlers of each, that are shown. More would not fit on a page.
const ROWS_MAX: usize = 100;

/// The beginning of the names of the handlers through which pages see events. They are not shown.
pub(crate) const TAP_PREFIX: &str = "kube-informer-debug page ";

type QueueReader = Box<dyn Fn() -> QueueReading + Send + Sync>;

/// Everything that is read.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) factories: Vec<WeakInformerFactory>,
    pub(crate) informers: Vec<SharedInformer>,
    queues: Vec<QueueReader>,
    controllers: Vec<ControllerHandle>,
}

/// An informer, with a name that no other has.
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    pub(crate) informer: SharedInformer,
}

#[derive(Serialize)]
pub(crate) struct Readings {
    pub(crate) informers: Vec<InformerReading>,
    queues: Vec<QueueReading>,
    controllers: Vec<ControllerReading>,
}

/// How an informer is, at a glance.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    Busy,
    Bad,
    Off,
}

#[derive(Serialize)]
pub(crate) struct InformerReading {
    pub(crate) name: Arc<str>,
    state: &'static str,
    pub(crate) level: Level,
    /// The problem in words, and advice.
    pub(crate) trouble: Option<String>,
    advice: Option<&'static str>,
    /// The time until the next attempt.
    next_ms: Option<u64>,
    since_ms: u64,
    pub(crate) synced: bool,
    pub(crate) live: bool,
    staleness_ms: Option<u64>,
    silence_limit_ms: u64,
    objects: usize,
    received: u64,
    failed: usize,
    bytes: usize,
    index_panics: u64,
    version: String,
    /// The last error, in words and in full.
    last_error: Option<String>,
    last_error_text: Option<String>,
    pub(crate) queued: usize,
    lag_ms: Option<u64>,
    lists: u64,
    watches: u64,
    short_watches: u64,
    pub(crate) events: u64,
    pub(crate) skipped: u64,
    pub(crate) relists: Reasons,
    pub(crate) restarts: Reasons,
    handlers: Vec<HandlerReading>,
}

/// Counts by category of error.
pub(crate) type Reasons = std::collections::BTreeMap<&'static str, u64>;

#[derive(Serialize)]
struct HandlerReading {
    name: String,
    stream: bool,
    synced: bool,
    depth: usize,
    delivered: u64,
    merged: u64,
    skipped: u64,
    panics: u64,
    slow: u64,
    slowest_us: Option<u64>,
    p99_us: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct QueueReading {
    name: String,
    /// The controller that the queue belongs to.
    controller: Option<String>,
    ready: usize,
    delayed: usize,
    running: usize,
    adds: u64,
    retries: u64,
    waiting_ms: Option<u64>,
    running_ms: Option<u64>,
    shut_down: bool,
}

#[derive(Serialize)]
struct ControllerReading {
    name: String,
    phase: String,
    workers: usize,
    running: usize,
    succeeded: u64,
    requeued: u64,
    failed: u64,
    panicked: u64,
    timed_out: u64,
    waited_for_cache: u64,
}

impl Sources {
    pub(crate) fn queue<T: Task>(&mut self, queue: &WorkQueue<T>) {
        let queue = queue.clone();
        self.queues.push(Box::new(move || QueueReading::new(&queue.status(), None)));
    }

    pub(crate) fn controller(&mut self, controller: &ControllerHandle) {
        self.controllers.push(controller.clone());
        let of = controller.clone();
        self.queues.push(Box::new(move || {
            let status = of.status();
            QueueReading::new(&status.queue, Some(shortened(&status.name)))
        }));
    }

    /// Returns all informers, each once.
    pub(crate) fn named(&self) -> Vec<Named> {
        let made = self.factories.iter().filter_map(WeakInformerFactory::upgrade);
        let made = made.flat_map(|factory| factory.informers());
        let all = made.chain(self.informers.iter().cloned()).take(ROWS_MAX);
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut name = |informer: &SharedInformer| {
            let name = shortened(informer.name());
            let count = known.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 { format!("{name} ({count})") } else { name }
        };
        all.map(|informer| Named { name: name(&informer).into(), informer }).collect()
    }

    /// Reads everything.
    pub(crate) fn read(&self, informers: &[Named]) -> Readings {
        Readings {
            informers: informers.iter().map(InformerReading::new).collect(),
            queues: self.queues.iter().map(|read| read()).collect(),
            controllers: self.controllers.iter().map(ControllerReading::new).collect(),
        }
    }
}

impl InformerReading {
    fn new(named: &Named) -> Self {
        let status = named.informer.status();
        let (level, trouble) = trouble(&status);
        let error = status.state.why().or(status.last_error.as_ref());
        let handlers = named.informer.handlers();
        let handlers = handlers.iter().filter(|handler| !handler.name().starts_with(TAP_PREFIX));
        let next = status.state.until().map(|until| until.duration_since(Instant::now()));
        Self {
            name: named.name.clone(),
            state: status.state.as_str(),
            level,
            advice: error.filter(|_| level == Level::Bad).and_then(words::advice),
            trouble,
            next_ms: next.map(millis),
            since_ms: millis(status.since.elapsed()),
            synced: status.synced,
            live: status.live,
            staleness_ms: status.staleness.map(millis),
            silence_limit_ms: millis(status.silence_limit),
            objects: status.objects,
            received: status.received,
            failed: status.failed,
            bytes: status.bytes,
            index_panics: status.index_panics,
            version: status.resource_version.to_string(),
            last_error: status.last_error.as_ref().map(words::problem),
            last_error_text: status.last_error.as_ref().map(ToString::to_string),
            queued: status.queued,
            lag_ms: status.lag.map(millis),
            lists: status.requests.lists,
            watches: status.requests.watches,
            short_watches: status.requests.short_watches,
            events: status.requests.events,
            skipped: status.requests.skipped,
            relists: status.requests.relists,
            restarts: status.requests.restarts,
            handlers: handlers.take(ROWS_MAX).map(HandlerReading::new).collect(),
        }
    }
}

/// Returns how an informer is, and a sentence unless all is well.
fn trouble(status: &InformerStatus) -> (Level, Option<String>) {
    let because = || status.last_error.as_ref().map(words::problem);
    match &status.state {
        State::Idle => (Level::Off, Some("Not started".to_owned())),
        State::Stopped => (Level::Off, Some("Stopped".to_owned())),
        State::BackingOff { why, .. } => (Level::Bad, Some(words::problem(why))),
        State::Listing | State::Streaming if !status.synced => {
            let text = match because() {
                Some(problem) => format!("{problem}; trying again"),
                None => format!("Reading the first list: {} objects so far", status.received),
            };
            (Level::Busy, Some(text))
        }
        State::Listing | State::Streaming => {
            let problem = because().unwrap_or_else(|| "The watch could not be resumed".to_owned());
            (Level::Busy, Some(format!("{problem}: listing again")))
        }
        State::Watching if !status.live => {
            let stuck = status.lag.is_some_and(|lag| lag >= status.silence_limit);
            let text = if stuck {
                "Changes arrive, but the cache has not applied any for a long time"
            } else {
                "Opening a watch: the server has not been heard on it yet"
            };
            (if stuck { Level::Bad } else { Level::Busy }, Some(text.to_owned()))
        }
        _ if status.failed > 0 => {
            let text = format!("{} objects could not be kept", status.failed);
            (Level::Busy, Some(text))
        }
        _ => (Level::Ok, None),
    }
}

impl HandlerReading {
    fn new(handler: &Registration) -> Self {
        Self {
            name: shortened(handler.name()),
            stream: handler.is_stream(),
            synced: handler.has_synced(),
            depth: handler.backlog(),
            delivered: handler.delivered(),
            merged: handler.merged(),
            skipped: handler.skipped(),
            panics: handler.panics(),
            slow: handler.slow(),
            slowest_us: handler.slowest().map(micros),
            p99_us: handler.p99().map(micros),
        }
    }
}

impl QueueReading {
    fn new<T>(status: &QueueStatus<T>, controller: Option<String>) -> Self {
        Self {
            name: controller.clone().unwrap_or_else(|| shortened(&status.name)),
            controller,
            ready: status.ready,
            delayed: status.delayed,
            running: status.running,
            adds: status.adds,
            retries: status.retries,
            waiting_ms: status.longest_waiting.map(millis),
            running_ms: status.longest_running.as_ref().map(|(_, since)| millis(*since)),
            shut_down: status.is_shut_down,
        }
    }
}

impl ControllerReading {
    fn new(controller: &ControllerHandle) -> Self {
        let status = controller.status();
        Self {
            name: shortened(&status.name),
            phase: format!("{:?}", status.phase).to_lowercase(),
            workers: status.workers,
            running: status.queue.running,
            succeeded: status.succeeded,
            requeued: status.requeued,
            failed: status.failed,
            panicked: status.panicked,
            timed_out: status.timed_out,
            waited_for_cache: status.waited_for_cache,
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
