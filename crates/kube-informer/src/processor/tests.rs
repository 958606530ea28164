//! An informer that is made of a map, and a handler that checks the events that it receives.

mod delivery;
mod isolation;
mod joining;
mod logs;
mod removal;
mod resync;
mod stream;
mod users;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::wait::Progress;
use crate::{
    Deleted, Event, FinalState, InformerStatus, ObjectKey, RequestCounts, ResourceVersion, State,
    Untyped,
};

use super::*;

/// Returns an object whose uid is its name.
pub(super) fn object(name: &str, version: u64) -> Object {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"{name}","resourceVersion":"{version}"}}}}"#
    );
    Object::from_json(json).unwrap()
}

pub(super) fn version(object: &Object) -> u64 {
    object.resource_version().as_str().parse().unwrap()
}

/// Formats an event: `*a@1` initial, `+a@1` added, `a@1>2` updated, `-a@3` deleted, `?a@3` inferred delete,
/// `=a@1` resynced.
pub(super) fn text(event: &Event) -> String {
    let at = |object: &Object| format!("{}@{}", object.name(), object.resource_version());
    match event {
        Event::Added { object, initial: true } => format!("*{}", at(object)),
        Event::Added { object, .. } => format!("+{}", at(object)),
        Event::Updated { old, new } => format!("{}>{}", at(old), new.resource_version()),
        Event::Deleted(gone) if gone.final_state == FinalState::Known => format!("-{}", at(gone)),
        Event::Deleted(gone) => format!("?{}", at(gone)),
        Event::Resynced(object) => format!("={}", at(object)),
        Event::Synced => "synced".to_owned(),
    }
}

/// A handler's view, folded from its events. Violations of I10, I11 and I16 are recorded.
#[derive(Default, Debug)]
pub(super) struct Fold {
    pub(super) known: BTreeMap<ObjectKey, Object>,
    pub(super) synced: bool,
    pub(super) wrong: Vec<String>,
}

impl Fold {
    pub(super) fn tell(&mut self, event: &Event) {
        let known = event.object().and_then(|object| self.known.get(object.key()));
        let fits = match event {
            Event::Added { initial, .. } => known.is_none() && !(*initial && self.synced),
            Event::Updated { old, new } => {
                known.is_some_and(|known| known.same_version(old)) && version(old) <= version(new)
            }
            Event::Deleted(gone) => known.is_some_and(|known| version(known) <= version(gone)),
            Event::Resynced(object) => known.is_some_and(|known| known.same_version(object)),
            Event::Synced => !self.synced,
        };
        if !fits {
            self.wrong.push(format!("{} after {known:?}", text(event)));
        }
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                self.known.insert(object.key().clone(), object.clone());
            }
            Event::Deleted(gone) => drop(self.known.remove(gone.key())),
            Event::Resynced(_) => {}
            Event::Synced => self.synced = true,
        }
    }

    #[track_caller]
    pub(super) fn assert_is(&self, cache: &BTreeMap<ObjectKey, Object>) {
        assert!(self.wrong.is_empty(), "{:?}", self.wrong);
        let versions = |of: &BTreeMap<ObjectKey, Object>| -> Vec<_> {
            of.values().map(|object| (object.key().clone(), version(object))).collect()
        };
        assert_eq!(versions(&self.known), versions(cache));
    }
}

/// The events that a handler has received, as text, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self) -> impl FnMut(Event) + Send + 'static {
        let seen = self.clone();
        move |event| seen.0.lock().push(text(&event))
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// An informer without a server: a store that is written through the processor.
struct Fake {
    processor: Arc<Processor>,
    core: Arc<Core>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

struct Core {
    name: Arc<str>,
    store: Arc<Store>,
    version: AtomicU64,
    progress: watch::Sender<Progress>,
}

impl Watched for Core {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn status(&self) -> InformerStatus {
        InformerStatus {
            name: self.name.clone(),
            state: State::Idle,
            since: Instant::now(),
            synced: self.progress.borrow().synced,
            live: false,
            staleness: None,
            objects: self.store.len(),
            received: 0,
            failed: 0,
            bytes: 0,
            index_panics: 0,
            resource_version: ResourceVersion::default(),
            last_error: None,
            queued: 0,
            lag: None,
            silence_limit: Duration::ZERO,
            requests: RequestCounts::default(),
        }
    }
    fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }
}

impl Core {
    fn next(&self, name: &str) -> Object {
        object(name, self.version.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Fake {
    fn new() -> Self {
        let core = Arc::new(Core {
            name: "fakes".into(),
            store: Store::new(),
            version: AtomicU64::new(0),
            progress: watch::Sender::default(),
        });
        let processor = Processor::new(core.store.clone());
        let watched: Arc<dyn Watched> = core.clone();
        processor.set_watched(Arc::downgrade(&watched));
        Self { processor, core, tracker: TaskTracker::new(), stop: CancellationToken::new() }
    }

    fn started() -> Self {
        let fake = Self::new();
        fake.start();
        fake
    }

    /// Creates a started informer with these objects in its first list.
    fn synced(names: &[&str]) -> Self {
        let fake = Self::started();
        fake.sync(names);
        fake
    }

    fn start(&self) {
        self.core.progress.send_modify(|progress| progress.started = true);
        self.processor.start(&Handle::current(), &self.tracker, self.stop.clone());
    }

    fn handler(&self) -> HandlerBuilder<Untyped> {
        HandlerBuilder::new(self.processor.clone(), None, None)
    }

    /// Registers a handler that records its events.
    fn noting(&self) -> (Registration, Seen) {
        let seen = Seen::default();
        (self.handler().for_each(seen.note()), seen)
    }

    /// Replaces the content with these objects, each in a new state.
    fn sync(&self, names: &[&str]) {
        self.list(names.iter().map(|name| self.core.next(name)).collect());
        self.core.progress.send_modify(|progress| progress.synced = true);
    }

    fn list(&self, objects: Vec<Object>) {
        let version = self.core.version.load(Ordering::Relaxed).to_string().into();
        self.processor.write(0, vec![Delta::ReplacedAll { objects, unreadable: vec![], version }]);
    }

    fn put(&self, name: &str) {
        self.processor.write(0, vec![Delta::Updated(self.core.next(name))]);
    }

    fn delete(&self, name: &str) {
        let deleted = Deleted { object: self.core.next(name), final_state: FinalState::Known };
        self.processor.write(0, vec![Delta::Deleted(deleted)]);
    }

    /// Relists without any change.
    fn relist(&self) {
        self.list(self.cache().into_values().collect());
    }

    /// Resyncs the handlers that are due after this time.
    async fn resync_after(&self, seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        self.processor.resync(Instant::now());
    }

    fn cache(&self) -> BTreeMap<ObjectKey, Object> {
        let (objects, _) = self.core.store.snapshot();
        objects.into_iter().map(|object| (object.key().clone(), object)).collect()
    }
}

/// Waits until every task is idle, given paused time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Fails instead of waiting forever. With paused time this takes no time.
async fn ends<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("waits for ever")
}
