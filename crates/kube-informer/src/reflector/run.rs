//! The driver of the protocol: executes the requests of the state machine, and reports the outcome to it.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use super::gather::Gather;
use super::observe::Observers;
use super::phase::{Alarm, Effect, Request, Seen};
use super::state::Machine;
use super::{Load, Options, ReflectorStore};
use crate::error::Cause;
use crate::list_watch::{ListItem, ListOptions, WatchItem, WatchOptions};
use crate::{Error, ErrorReport, ListWatch, Next, Object, ResourceVersion, Result, State};

/// A source that sends more objects than this when asked for one is not read to its end.
const VERSION_OBJECTS_MAX: usize = 1000;

/// How much too early a watch's timer may fire before it is reset. Shorter than the minute between bookmarks,
/// and longer than the time between events.
const TIMER_SLACK: Duration = Duration::from_secs(10);

pub(super) struct Driver<'a> {
    list_watch: &'a dyn ListWatch,
    store: &'a mut dyn ReflectorStore,
    observers: Observers<'a>,
    machine: Machine,
    gather: Gather,
    /// Whether the store has accepted the last list. If not, its content may be of another history.
    store_took_list: bool,
    began: Instant,
    /// The state that errors are reported with: the current attempt, rather than the wait before it.
    doing: State,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        list_watch: &'a dyn ListWatch,
        store: &'a mut dyn ReflectorStore,
        options: &'a Options,
    ) -> Self {
        let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
        let mut settings = options.settings.clone();
        settings.streaming &= list_watch.streams_lists();
        Self {
            list_watch,
            store,
            observers: Observers::new(&options.observers, list_watch),
            machine: Machine::new(settings, seed),
            gather: Gather::default(),
            store_took_list: true,
            began: Instant::now(),
            doing: State::Idle,
        }
    }

    pub(super) async fn run(mut self, load: Option<Load>) {
        if let Some(load) = load
            && let Err(error) = self.begin(load).await
        {
            self.report(error, Next::Relist { after: Duration::ZERO }, 1);
        }
        loop {
            let outcome = match self.machine.request() {
                Request::Wait { until } => {
                    sleep_until(self.began + until).await;
                    self.machine.waited(self.now());
                    continue;
                }
                Request::List(options) => self.list(options).await,
                Request::Watch(options) => self.watch(options).await,
            };
            if let Err(error) = outcome {
                self.failed(error);
            }
        }
    }

    /// Starts with the state of an earlier run, if there is one.
    async fn begin(&mut self, load: Load) -> Result<()> {
        self.doing = State::Listing;
        let Some((objects, version)) = load.await? else { return Ok(()) };
        let read = objects.len();
        poll_fn(|context| self.store.poll_ready(context)).await;
        self.observers.resuming();
        self.store.replace(objects, Vec::new(), version.clone())?;
        tracing::info!(informer = %self.observers.name(), %version, "begins with a snapshot of {read} objects");
        self.machine.resume_from(version);
        Ok(())
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Reads one page of a list.
    async fn list(&mut self, options: ListOptions) -> Result<()> {
        self.doing = State::Listing;
        if options.continue_token.is_none() {
            self.gather = Gather::new(options.resource_version.is_none());
            self.enter(&State::Listing);
        }
        let mut items = self.list_watch.list(options).await?;
        while let Some(item) = items.next().await {
            match item? {
                ListItem::Object(object) => {
                    self.observers.received();
                    self.machine.item(object.resource_version());
                    let object = self.known_or(object);
                    self.gather.push(object);
                }
                ListItem::Unreadable(error) => {
                    self.observers.received();
                    self.skipped(&error);
                    self.gather.unreadable(error);
                }
                ListItem::End { resource_version, continue_token } => {
                    return match self.machine.page(&resource_version, continue_token) {
                        Effect::Replace(version) => {
                            self.store_ready().await;
                            self.replace(version)
                        }
                        Effect::Fail(error) => Err(error),
                        Effect::Gather | Effect::Apply | Effect::Ignore => Ok(()),
                    };
                }
            }
            tokio::task::coop::consume_budget().await;
        }
        Err(Error::new(Cause::Broken, "the list ended before it was complete"))
    }

    /// Reads a watch, or a streaming list that becomes one, until it ends.
    async fn watch(&mut self, options: WatchOptions) -> Result<()> {
        let initial = options.send_initial_events;
        self.doing = State::Watching;
        if initial {
            self.gather = Gather::new(options.resource_version.is_none());
            self.doing = State::Streaming;
            self.enter(&State::Streaming);
        }
        let mut items = self.list_watch.watch(options).await?;
        self.machine.opened(self.now());
        if !initial {
            self.enter(&State::Watching);
            self.observers.heard();
        }
        let mut timer = Box::pin(sleep_until(Instant::now()));
        let mut version: Option<BoxFuture<'_, _>> = None;
        loop {
            tokio::select! {
                biased;
                item = items.next() => {
                    let Some(item) = item else {
                        return self.machine.ended(self.now()).map_or(Ok(()), Err);
                    };
                    self.take(item?).await?;
                    version.take_if(|_| !self.machine.doubts());
                }
                asked = async { version.as_mut()?.await }, if version.is_some() => {
                    version = None;
                    if let Some(asked) = asked
                        && let Effect::Fail(error) = self.machine.server_is_at(&asked)
                    {
                        return Err(error);
                    }
                }
                alarm = Self::alarm(&self.machine, self.began, timer.as_mut()) => match alarm {
                    Alarm::Silence => return Err(self.machine.silence()),
                    Alarm::AskVersion => {
                        self.machine.asking_version();
                        version = Some(server_version(self.list_watch).boxed());
                    }
                },
            }
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Completes once the watch has been silent for too long. The timer is not reset for every event, but
    /// often enough that it never fires in vain on a quiet watch with an occasional bookmark.
    async fn alarm(machine: &Machine, began: Instant, mut timer: Pin<&mut Sleep>) -> Alarm {
        loop {
            let Some((patience, alarm)) = machine.patience(began.elapsed()) else {
                return std::future::pending().await;
            };
            if patience.is_zero() {
                return alarm;
            }
            let deadline = Instant::now() + patience;
            let too_early = timer.deadline() + TIMER_SLACK < deadline;
            if timer.is_elapsed() || timer.deadline() > deadline || too_early {
                timer.as_mut().reset(deadline);
            }
            timer.as_mut().await;
        }
    }

    /// Handles one item of a watch.
    async fn take(&mut self, item: WatchItem) -> Result<()> {
        let (seen, version) = match &item {
            WatchItem::Added(object) => (Seen::Added, object.resource_version()),
            WatchItem::Modified(object) | WatchItem::Deleted(object) => {
                (Seen::Changed, object.resource_version())
            }
            WatchItem::Unreadable { resource_version, .. } if resource_version.is_empty() => {
                (Seen::Nothing, resource_version)
            }
            WatchItem::Unreadable { resource_version, .. } => (Seen::Changed, resource_version),
            WatchItem::Bookmark { resource_version, initial_events_end } => {
                (Seen::Bookmark { initial_events_end: *initial_events_end }, resource_version)
            }
        };
        match self.machine.seen(self.now(), seen, version) {
            Effect::Gather => {
                self.observers.received();
                self.collect(item);
            }
            Effect::Apply => {
                self.store_ready().await;
                self.apply(item);
                if seen != Seen::Nothing {
                    self.observers.well();
                }
            }
            Effect::Replace(version) => {
                self.store_ready().await;
                self.replace(version)?;
                self.doing = State::Watching;
                self.enter(&State::Watching);
            }
            Effect::Ignore => self.observers.heard(),
            Effect::Fail(error) => return Err(error),
        }
        Ok(())
    }

    fn collect(&mut self, item: WatchItem) {
        match item {
            WatchItem::Added(object) | WatchItem::Modified(object) => {
                let object = self.known_or(object);
                self.gather.put(object);
            }
            WatchItem::Deleted(object) => self.gather.remove(object.key()),
            WatchItem::Unreadable { error, deleted, .. } => {
                self.skipped(&error);
                self.gather.put_unreadable(error, deleted);
            }
            WatchItem::Bookmark { .. } => {}
        }
    }

    fn apply(&mut self, item: WatchItem) {
        let result = match item {
            WatchItem::Added(object) => self.store.add(object),
            WatchItem::Modified(object) => self.store.update(object),
            WatchItem::Deleted(object) => self.store.delete(object),
            WatchItem::Unreadable { error, resource_version, deleted } => {
                self.skipped(&error);
                self.store.unreadable(error, resource_version, deleted)
            }
            WatchItem::Bookmark { resource_version, .. } => self.store.bookmark(resource_version),
        };
        if let Err(error) = result {
            self.skipped(&error);
        }
    }

    fn replace(&mut self, version: ResourceVersion) -> Result<()> {
        let (objects, unreadable) = std::mem::take(&mut self.gather).finish();
        self.store_took_list = false;
        self.store.replace(objects, unreadable, version).map_err(|error| {
            Error::new(Cause::Store, format!("the store did not take the list: {error}"))
                .caused_by(error)
        })?;
        self.store_took_list = true;
        self.observers.listed();
        Ok(())
    }

    /// Returns the store's instance if the object is unchanged, so that a relist keeps nothing twice. While
    /// the history is not known, the same version may be a different state.
    fn known_or(&self, object: Object) -> Object {
        if self.gather.is_of_any_history() || !self.store_took_list {
            return object;
        }
        self.store.known(object.key()).filter(|known| known.same_version(&object)).unwrap_or(object)
    }

    async fn store_ready(&mut self) {
        self.observers.storing();
        poll_fn(|context| self.store.poll_ready(context)).await;
    }

    /// Reports an object that failed. The others are not affected.
    fn skipped(&mut self, error: &Error) {
        self.report(error.clone(), Next::SkipObject, 1);
    }

    fn failed(&mut self, error: Error) {
        let (next, attempt) = self.machine.failed(self.now(), &error);
        self.gather = Gather::default();
        self.report(error.clone(), next, attempt);
        if let Request::Wait { until } = self.machine.request() {
            self.enter(&State::BackingOff { until: self.began + until, why: error });
        }
    }

    fn report(&mut self, error: Error, next: Next, attempt: u32) {
        let (informer, during) = (self.observers.name().clone(), self.doing.clone());
        self.observers.error(&ErrorReport { informer, error, during, next, attempt });
    }

    fn enter(&self, state: &State) {
        self.observers.patience(self.machine.silence_max());
        self.observers.state(state);
    }
}

/// Returns the server's current version, which is that of a list of one object.
async fn server_version(list_watch: &dyn ListWatch) -> Option<ResourceVersion> {
    let options = ListOptions { limit: Some(1), ..ListOptions::default() };
    let mut items = list_watch.list(options).await.ok()?.take(VERSION_OBJECTS_MAX);
    while let Some(item) = items.next().await {
        if let ListItem::End { resource_version, .. } = item.ok()? {
            return Some(resource_version);
        }
    }
    None
}
