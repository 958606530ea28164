//! Drives the protocol: does what the state machine says, and tells it what came of it.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, Sleep, sleep_until};

use super::gather::Gather;
use super::observe::Observers;
use super::phase::{Effect, Request, Seen};
use super::state::Machine;
use super::{Options, ReflectorStore};
use crate::error::Cause;
use crate::list_watch::{ListItem, ListOptions, WatchItem, WatchOptions};
use crate::{Error, ErrorReport, ListWatch, Next, Object, Result, State};

pub(super) struct Driver<'a> {
    list_watch: &'a dyn ListWatch,
    store: &'a mut dyn ReflectorStore,
    observers: Observers<'a>,
    machine: Machine,
    gather: Gather,
    began: Instant,
    /// What errors are reported with: what it tries, not that it waited before.
    doing: State,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        list_watch: &'a dyn ListWatch,
        store: &'a mut dyn ReflectorStore,
        options: &'a Options,
    ) -> Self {
        let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
        Self {
            list_watch,
            store,
            observers: Observers::new(&options.observers, list_watch),
            machine: Machine::new(list_watch.streams_lists(), options.page_objects, seed),
            gather: Gather::default(),
            began: Instant::now(),
            doing: State::Idle,
        }
    }

    pub(super) async fn run(mut self) {
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

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// One page.
    async fn list(&mut self, options: ListOptions) -> Result<()> {
        self.doing = State::Listing;
        if options.continue_token.is_none() {
            self.gather = Gather::new(options.resource_version.is_none());
            self.enter(&State::Listing);
        }
        let mut items = self.list_watch.list(options).await?;
        while let Some(item) = items.next().await {
            self.observers.heard(None);
            match item? {
                ListItem::Object(object) => {
                    let object = self.known_or(object);
                    self.gather.push(object);
                }
                ListItem::Unreadable(error) => {
                    self.skipped(&error);
                    self.gather.unreadable(error);
                }
                ListItem::End { resource_version, continue_token } => {
                    return match self.machine.page(&resource_version, continue_token) {
                        Effect::Replace(version) => {
                            self.store_ready().await;
                            self.replace(version);
                            Ok(())
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

    /// A watch, or a streaming list that becomes one, until it ends.
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
            self.observers.heard(None);
        }
        let mut alarm = Box::pin(sleep_until(Instant::now()));
        loop {
            let item = tokio::select! {
                biased;
                item = items.next() => item,
                error = Self::quiet(&self.machine, self.began, alarm.as_mut()) => return Err(error),
            };
            let Some(item) = item else {
                return self.machine.ended(self.now()).map_or(Ok(()), Err);
            };
            self.take(item?).await?;
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Ready once nothing has come for too long. The timer is set again only when it has run out,
    /// not for every event.
    async fn quiet(machine: &Machine, began: Instant, mut alarm: Pin<&mut Sleep>) -> Error {
        loop {
            let Some((patience, error)) = machine.patience(began.elapsed()) else {
                return std::future::pending().await;
            };
            if patience.is_zero() {
                return error;
            }
            let deadline = Instant::now() + patience;
            if alarm.is_elapsed() || alarm.deadline() > deadline {
                alarm.as_mut().reset(deadline);
            }
            alarm.as_mut().await;
        }
    }

    /// One thing that came on a watch.
    async fn take(&mut self, item: WatchItem) -> Result<()> {
        let (seen, version) = match &item {
            WatchItem::Added(object) => (Seen::Added, object.resource_version()),
            WatchItem::Modified(object) | WatchItem::Deleted(object) => {
                (Seen::Changed, object.resource_version())
            }
            WatchItem::Unreadable { resource_version, .. } => (Seen::Changed, resource_version),
            WatchItem::Bookmark { resource_version, initial_events_end } => {
                (Seen::Bookmark { initial_events_end: *initial_events_end }, resource_version)
            }
        };
        match self.machine.seen(self.now(), seen, version) {
            Effect::Gather => {
                self.observers.heard(None);
                self.collect(item);
            }
            Effect::Apply => {
                self.observers.heard(Some(version));
                self.store_ready().await;
                self.apply(item);
                self.observers.well();
            }
            Effect::Replace(version) => {
                self.store_ready().await;
                self.replace(version);
                self.doing = State::Watching;
                self.enter(&State::Watching);
            }
            Effect::Ignore => self.observers.heard(None),
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

    fn replace(&mut self, version: crate::ResourceVersion) {
        let (objects, unreadable) = std::mem::take(&mut self.gather).finish();
        self.observers.heard(Some(&version));
        if let Err(error) = self.store.replace(objects, unreadable, version) {
            self.skipped(&error);
        }
        self.observers.listed();
    }

    /// The instance that the store has, if the object is unchanged: a relist then keeps nothing
    /// twice. In another history, where that is not known yet, a version can be another state's.
    fn known_or(&self, object: Object) -> Object {
        if self.gather.is_of_any_history() {
            return object;
        }
        self.store.known(object.key()).filter(|known| known.same_version(&object)).unwrap_or(object)
    }

    async fn store_ready(&mut self) {
        poll_fn(|context| self.store.poll_ready(context)).await;
    }

    /// One object failed, and the rest goes on.
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
