//! The fan-out: distributes every write of the informer's loop to all listeners, without waiting for any of
//! them.

mod backlog;
mod builder;
mod enqueue;
mod filter;
mod handler;
mod listener;
mod registration;
mod stream;

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::indexer::{Accept, Applied, Batch, KeepAlive, Listed, Store};
use crate::wait::{HandlerSync, Watched};
use crate::wakers::Wakers;
use crate::{Delta, Object};

pub use builder::{Callbacks, HandlerBuilder};
pub(crate) use enqueue::owner_key;
pub use handler::EventHandler;
pub use registration::{Registration, RegistrationGuard};
pub use stream::EventStream;

use backlog::{BACKLOG_EVENTS_MAX, Backlog};
use builder::ListenerOptions;
use filter::Filter;
use handler::ErasedHandler;
use listener::{Callee, Listener, ListenerKind, Manner, Running};
use stream::Subscription;

/// The shortest resync period: shorter ones would only waste CPU time. client-go has the same limit.
const RESYNC_PERIOD_MIN: Duration = Duration::from_secs(1);

/// The only writer of a store, and the listeners that receive its writes.
pub(crate) struct Processor {
    me: Weak<Self>,
    store: Arc<Store>,
    /// Locked while the store is written and the changes are distributed, and while a listener joins. Each
    /// listener therefore receives one state of the store and then exactly the changes after it.
    inner: Mutex<Inner>,
    resync_changed: Notify,
    /// Notified when a listener that must see every state may have caught up.
    caught_up: Notify,
    /// Whether there may be such a listener. If not, a write need not check for one.
    waits: AtomicBool,
    watched: OnceLock<Weak<dyn Watched>>,
    stopped: CancellationToken,
}

struct Inner {
    /// In order of registration. Listeners that have ended are removed at the next access.
    members: Vec<Member>,
    phase: Phase,
}

struct Member {
    listener: Arc<Listener>,
    resync: Option<Resync>,
}

struct Resync {
    period: Duration,
    /// `None` until the first list has been handed over.
    due: Option<Instant>,
}

#[derive(Clone)]
enum Phase {
    Waiting,
    Running { runtime: Handle, tracker: TaskTracker },
    Stopped,
}

impl Processor {
    pub(crate) fn new(store: Arc<Store>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            store,
            inner: Mutex::new(Inner { members: vec![], phase: Phase::Waiting }),
            resync_changed: Notify::new(),
            caught_up: Notify::new(),
            waits: AtomicBool::new(false),
            watched: OnceLock::new(),
            stopped: CancellationToken::new(),
        })
    }

    /// Sets the informer that registrations wait for and that reports name. Only the first call has an effect.
    pub(crate) fn set_watched(&self, informer: Weak<dyn Watched>) {
        let _ = self.watched.set(informer);
    }

    fn watched(&self) -> Option<Arc<dyn Watched>> {
        self.watched.get()?.upgrade()
    }

    fn informer_name(&self) -> Option<Arc<str>> {
        self.watched().map(|informer| informer.name().clone())
    }

    /// Writes changes of a part of the content into the store and distributes them to every listener, as one
    /// step. Waits for no listener.
    pub(crate) fn write(&self, part: usize, deltas: Vec<Delta>) {
        for batch in Batch::of(deltas) {
            let lock = || self.inner.lock();
            let (written, mut inner) = self.store.write(part, batch, Accept::Newer, lock);
            if written.applied.iter().any(|applied| matches!(applied, Applied::Synced)) {
                inner.begin_resyncs(Instant::now());
                self.resync_changed.notify_one();
            }
            let told = inner.tell(&written.applied, |_| true);
            // From here on user code may run, for example when a value is dropped.
            drop(inner);
            told.finish();
        }
    }

    /// Returns the handlers and streams that are registered now.
    pub(crate) fn registrations(&self) -> Vec<Registration> {
        let inner = self.inner.lock();
        let members = inner.members.iter().filter(|member| !member.listener.is_ended());
        members.map(|member| Registration::new(member.listener.clone())).collect()
    }

    /// Waits until no listener that must see every state is too far behind.
    pub(crate) async fn ready(&self) {
        while self.waits.load(Ordering::Acquire) {
            let caught_up = self.caught_up.notified();
            if !self.inner.lock().members.iter().any(|member| member.listener.is_full()) {
                return;
            }
            caught_up.await;
        }
    }

    fn caught_up(&self) {
        self.caught_up.notify_one();
    }

    /// Registers a handler. It receives every cached object, and every change from then on.
    pub(crate) fn join(
        &self,
        handler: Box<dyn ErasedHandler>,
        options: ListenerOptions,
        keep: KeepAlive,
        place: &Location<'_>,
    ) -> Registration {
        let (resync, name, backlog) = (options.resync(), options.name(place), options.backlog());
        let callee = Callee { handler, filter: Filter::new(options.filters), keep };
        let listener = Listener::new(name, self.me.clone(), backlog, options.manner, Some(callee));
        self.admit(&listener, resync);
        Registration::new(listener)
    }

    /// Registers a stream, which receives the same events as a handler.
    pub(crate) fn join_stream(
        &self,
        options: ListenerOptions,
        keep: KeepAlive,
        place: &Location<'_>,
    ) -> Subscription {
        let (resync, name, backlog) = (options.resync(), options.name(place), options.backlog());
        let manner = Manner { kind: ListenerKind::Stream, ..options.manner };
        let listener = Listener::new(name, self.me.clone(), backlog, manner, None);
        self.admit(&listener, resync);
        let registration = Registration::new(listener).remove_on_drop();
        Subscription { registration, filter: Filter::new(options.filters), keep }
    }

    fn admit(&self, listener: &Arc<Listener>, period: Option<Duration>) {
        let mut inner = self.inner.lock();
        let phase = inner.phase.clone();
        if matches!(phase, Phase::Stopped) {
            drop(inner);
            listener.reject();
            return;
        }
        if listener.sees_every_state() {
            self.waits.store(true, Ordering::Release);
        }
        let (mut first, synced) = (vec![self.all(Listed::Initial)], self.store.has_synced());
        first.extend(synced.then_some(Applied::Synced));
        listener.push(&first);
        let due = |period| Instant::now().checked_add(period).filter(|_| synced);
        let resync = period.map(|period| Resync { period, due: due(period) });
        inner.members.retain(|member| !member.listener.is_ended());
        inner.members.push(Member { listener: listener.clone(), resync });
        drop(inner);
        if period.is_some() {
            self.resync_changed.notify_one();
        }
        phase.spawn(listener);
    }

    /// Starts the tasks of all handlers, including those that register later. They end with `stop`.
    pub(crate) fn start(&self, runtime: &Handle, tracker: &TaskTracker, stop: CancellationToken) {
        let mut inner = self.inner.lock();
        if !matches!(inner.phase, Phase::Waiting) {
            return;
        }
        let phase = Phase::Running { runtime: runtime.clone(), tracker: tracker.clone() };
        inner.phase = phase.clone();
        let waiting: Vec<_> = inner.members.iter().map(|member| member.listener.clone()).collect();
        drop(inner);
        tracker.spawn_on(stop_on(self.me.clone(), stop, self.stopped.clone()), runtime);
        for listener in &waiting {
            phase.spawn(listener);
        }
    }

    /// Ends all listeners: pending events are dropped, running callbacks finish, and streams end.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.phase = Phase::Stopped;
        let members = std::mem::take(&mut inner.members);
        drop(inner);
        self.stopped.cancel();
        for member in &members {
            member.listener.end(HandlerSync::Stopped);
        }
    }

    /// Returns when the next resync is due, if any.
    pub(crate) fn resync_due(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        let alive = inner.members.iter().filter(|member| !member.listener.is_ended());
        alive.filter_map(|member| member.resync.as_ref()?.due).min()
    }

    /// Returns the signal that [`resync_due`](Self::resync_due) may have become earlier. For one waiter.
    pub(crate) fn resync_changed(&self) -> &Notify {
        &self.resync_changed
    }

    /// Hands all objects to the listeners whose resync is due, and to no others.
    pub(crate) fn resync(&self, now: Instant) {
        let mut inner = self.inner.lock();
        if !inner.members.iter().any(|member| member.is_due(now)) {
            return;
        }
        let all = [self.all(Listed::Resync)];
        let told = inner.tell(&all, |member| member.is_due(now));
        let due = inner.members.iter_mut().filter(|member| member.is_due(now));
        due.filter_map(|member| member.resync.as_mut()).for_each(|resync| resync.advance(now));
        drop(inner);
        told.finish();
    }

    /// Returns all objects, as a list of the given sort.
    fn all(&self, listed: Listed) -> Applied {
        Applied::List(listed, self.store.snapshot().0.into())
    }
}

/// Dropping an informer stops it.
impl Drop for Processor {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn stop_on(processor: Weak<Processor>, stop: CancellationToken, stopped: CancellationToken) {
    tokio::select! {
        biased;
        () = stopped.cancelled() => {}
        () = stop.cancelled() => {
            if let Some(processor) = processor.upgrade() {
                processor.stop();
            }
        }
    }
}

impl Inner {
    fn tell(&mut self, applied: &[Applied], whom: impl Fn(&Member) -> bool) -> Told {
        let mut told = Told::default();
        if applied.is_empty() {
            return told;
        }
        self.members.retain(|member| !member.listener.is_ended());
        for member in self.members.iter().filter(|member| whom(member)) {
            let pushed = member.listener.push(applied);
            pushed.waker.into_iter().for_each(|waker| told.wakers.push(waker));
            told.behind.extend(pushed.fell_behind.then(|| member.listener.clone()));
            told.let_go.extend(pushed.let_go);
        }
        told
    }

    /// Starts the resync periods, now that the first list has been handed over.
    fn begin_resyncs(&mut self, now: Instant) {
        for resync in self.members.iter_mut().filter_map(|member| member.resync.as_mut()) {
            if resync.due.is_none() {
                resync.due = now.checked_add(resync.period);
            }
        }
    }
}

/// Work to finish after the lock is released, since it runs user code.
#[derive(Default)]
struct Told {
    wakers: Wakers,
    behind: Vec<Arc<Listener>>,
    let_go: Vec<Object>,
}

impl Told {
    fn finish(self) {
        self.wakers.wake();
        self.behind.iter().for_each(|listener| listener.report_behind());
        drop(self.let_go);
    }
}

impl Member {
    fn is_due(&self, now: Instant) -> bool {
        let due = self.resync.as_ref().and_then(|resync| resync.due);
        due.is_some_and(|due| due <= now)
    }
}

impl Resync {
    /// Advances to the next multiple of the period. Missed resyncs are not made up for.
    fn advance(&mut self, now: Instant) {
        let next = self.due.and_then(|due| due.checked_add(self.period));
        self.due = next.filter(|next| *next > now).or_else(|| now.checked_add(self.period));
    }
}

impl Phase {
    fn spawn(&self, listener: &Arc<Listener>) {
        if let Phase::Running { runtime, tracker } = self
            && !listener.is_stream()
        {
            tracker.spawn_on(Running(listener.clone()).run(), runtime);
        }
    }
}

impl ListenerOptions {
    fn name(&self, place: &Location<'_>) -> Arc<str> {
        let place = || format!("{}:{}", place.file(), place.line()).into();
        self.name.clone().unwrap_or_else(place)
    }

    fn backlog(&self) -> Backlog {
        let limit = if self.manner.every_state { usize::MAX } else { BACKLOG_EVENTS_MAX };
        Backlog::new(limit, self.only_changes)
    }

    /// Returns the resync period; zero means never.
    fn resync(&self) -> Option<Duration> {
        let period = self.resync.filter(|period| !period.is_zero() && !self.only_changes)?;
        Some(period.max(RESYNC_PERIOD_MIN))
    }
}

#[cfg(test)]
mod tests;
