//! A listener: its backlog, the task that calls its handler, and its end.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Cause;
use crate::indexer::Applied;
use crate::measure::{CALLBACK_SECONDS, Histogram};
use crate::wait::{HandlerSync, WatchedHandler};
use crate::{Error, Event, Object, ObjectKey, Result};

use super::backlog::{BACKLOG_EVENTS_MAX, Backlog, Popped};
use super::filter::Filter;
use super::handler::ErasedHandler;
use super::{KeepAlive, Processor};

/// The number of events that a task delivers before it yields, the same as Tokio's budget of 128 operations.
const TURN_EVENTS_MAX: usize = 128;

/// The number of events delivered per visit to a blocking thread. It is large enough that the hop, a few
/// microseconds, does not matter, and small enough that handlers take turns if they outnumber the threads.
const HOP_EVENTS_MAX: usize = 1024;

/// The duration after which a callback is logged as slow. client-go has the same number.
const SLOW_CALLBACK: Duration = Duration::from_millis(100);

/// A member of the fan-out. The informer pushes; a task or a stream pops.
pub(crate) struct Listener {
    name: Arc<str>,
    processor: Weak<Processor>,
    manner: Manner,
    inbox: Mutex<Inbox>,
    /// Whether it registered after the informer had stopped.
    rejected: AtomicBool,
    /// Set with the inbox locked, and stored here so that it can be read without the lock.
    ended: AtomicBool,
    sync: watch::Sender<HandlerSync>,
    /// Cancelled when the listener has ended and no callback is running.
    quiet: CancellationToken,
    delivered: AtomicU64,
    panics: AtomicU64,
    slow: AtomicU64,
    /// In nanoseconds; zero before the first callback.
    slowest: AtomicU64,
    pub(super) callbacks: Histogram,
}

/// How a listener is called.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(super) kind: ListenerKind,
    /// Whether the informer waits for this listener instead of merging events.
    pub(super) every_state: bool,
    pub(super) slow_after: Duration,
    /// Whether a panic ends the process.
    pub(super) crash_on_panic: bool,
}

impl Default for Manner {
    fn default() -> Self {
        let kind = ListenerKind::Task;
        Self { kind, every_state: false, slow_after: SLOW_CALLBACK, crash_on_panic: false }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ListenerKind {
    /// A task calls the handler.
    Task,
    /// A task calls the handler on threads that may block.
    Blocking,
    /// The user polls a stream.
    Stream,
}

struct Inbox {
    backlog: Backlog,
    waker: Option<Waker>,
    slot: Slot,
    fell_behind: bool,
}

/// The location of the handler.
enum Slot {
    Here(Box<Callee>),
    /// Taken by the task, which may be calling it.
    Out,
    /// There is no handler, or no longer.
    Nobody,
}

/// The handler, and everything that is dropped with it.
pub(super) struct Callee {
    pub(super) handler: Box<dyn ErasedHandler>,
    pub(super) filter: Filter,
    #[expect(dead_code, reason = "held, not read: the informer runs as long as its handlers do")]
    pub(super) keep: KeepAlive,
}

/// Work that is left after a push, to be done without a lock held.
#[derive(Default)]
pub(super) struct Pushed {
    pub(super) waker: Option<Waker>,
    /// Whether this was the first time that too many events were pending.
    pub(super) fell_behind: bool,
    pub(super) let_go: Vec<Object>,
}

impl Listener {
    /// Creates a listener; without a handler it belongs to a stream.
    pub(super) fn new(
        name: Arc<str>,
        processor: Weak<Processor>,
        backlog: Backlog,
        manner: Manner,
        callee: Option<Callee>,
    ) -> Arc<Self> {
        let slot = callee.map_or(Slot::Nobody, |callee| Slot::Here(Box::new(callee)));
        Arc::new(Self {
            name,
            processor,
            manner,
            rejected: AtomicBool::new(false),
            inbox: Mutex::new(Inbox { backlog, waker: None, slot, fell_behind: false }),
            ended: AtomicBool::new(false),
            sync: watch::Sender::default(),
            quiet: CancellationToken::new(),
            delivered: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            slowest: AtomicU64::new(0),
            callbacks: Histogram::new(CALLBACK_SECONDS),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
    pub(super) fn processor(&self) -> Option<Arc<Processor>> {
        self.processor.upgrade()
    }
    pub(super) fn is_stream(&self) -> bool {
        self.manner.kind == ListenerKind::Stream
    }
    pub(super) fn sees_every_state(&self) -> bool {
        self.manner.every_state
    }
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
    pub(super) fn has_synced(&self) -> bool {
        *self.sync.borrow() == HandlerSync::Synced
    }
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
    pub(super) fn slow(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }
    pub(super) fn slowest(&self) -> Option<Duration> {
        let nanos = self.slowest.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }
    pub(super) fn backlog<T>(&self, read: impl FnOnce(&Backlog) -> T) -> T {
        read(&self.inbox.lock().backlog)
    }

    /// Queues the effects of a write. Never waits for the handler.
    pub(super) fn push(&self, applied: &[Applied]) -> Pushed {
        let mut inbox = self.inbox.lock();
        if self.is_ended() {
            return Pushed::default();
        }
        let mut let_go = Vec::new();
        for applied in applied {
            inbox.backlog.push(applied, &mut let_go);
        }
        let fell_behind = inbox.backlog.is_merging() && !inbox.fell_behind;
        inbox.fell_behind |= fell_behind;
        let waker = if inbox.backlog.is_empty() { None } else { inbox.waker.take() };
        Pushed { waker, fell_behind, let_go }
    }

    /// Returns whether the informer has to wait for this listener.
    pub(super) fn is_full(&self) -> bool {
        let full = |backlog: &Backlog| backlog.singles() >= BACKLOG_EVENTS_MAX;
        self.manner.every_state && !self.is_ended() && self.backlog(full)
    }

    /// Returns the next event, or `None` when the listener has ended.
    pub(super) fn poll_event(&self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut inbox = self.inbox.lock();
        if self.is_ended() {
            return Poll::Ready(None);
        }
        let Some(popped) = inbox.backlog.pop() else { return inbox.sleep(context) };
        let left = inbox.backlog.singles();
        drop(inbox);
        Poll::Ready(Some(self.popped(popped, left)))
    }

    /// Waits until there is an event to deliver. Returns false when the listener has ended.
    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut inbox = self.inbox.lock();
        match (self.is_ended(), inbox.backlog.is_empty()) {
            (true, _) => Poll::Ready(false),
            (false, false) => Poll::Ready(true),
            (false, true) => inbox.sleep(context),
        }
    }

    fn pop(&self) -> Option<Event> {
        let mut inbox = self.inbox.lock();
        let popped = if self.is_ended() { None } else { inbox.backlog.pop() };
        let left = inbox.backlog.singles();
        drop(inbox);
        Some(self.popped(popped?, left))
    }

    /// Returns the event after dropping what was popped with it, and wakes the informer if it is waiting for
    /// room.
    fn popped(&self, (event, let_go): Popped, left: usize) -> Event {
        drop(let_go);
        if left + 1 == BACKLOG_EVENTS_MAX {
            self.caught_up();
        }
        event
    }

    fn caught_up(&self) {
        if self.manner.every_state
            && let Some(processor) = self.processor()
        {
            processor.caught_up();
        }
    }

    /// Delivers some events, and returns whether more are pending.
    fn deliver(&self, limit: usize) -> bool {
        let Some(mut turn) = self.begin() else { return false };
        for _ in 0..limit {
            let Some(event) = self.pop() else { return false };
            turn.deliver(event);
        }
        true
    }

    fn begin(&self) -> Option<Turn<'_>> {
        let mut inbox = self.inbox.lock();
        match std::mem::replace(&mut inbox.slot, Slot::Out) {
            Slot::Here(callee) => Some(Turn { listener: self, callee: Some(callee) }),
            other => {
                inbox.slot = other;
                None
            }
        }
    }

    /// Records that an event has been handled, successfully or not.
    pub(super) fn handled(&self, synced: bool) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if synced {
            self.settle(HandlerSync::Synced);
        }
    }

    /// Ends delivery: no callback starts after this. Pending events are dropped, and so is the handler, at the
    /// latest when a running callback returns.
    pub(super) fn end(&self, why: HandlerSync) {
        let mut inbox = self.inbox.lock();
        self.ended.store(true, Ordering::Release);
        let (waiting, waker) = (inbox.backlog.take(), inbox.waker.take());
        let idle = !matches!(inbox.slot, Slot::Out);
        let slot = idle.then(|| std::mem::replace(&mut inbox.slot, Slot::Nobody));
        drop(inbox);
        drop(waiting);
        self.caught_up();
        self.settle(why);
        if let Some(slot) = slot {
            self.release(slot);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Marks the listener as registered after the informer had stopped.
    pub(super) fn reject(&self) {
        self.rejected.store(true, Ordering::Relaxed);
        self.end(HandlerSync::Stopped);
        let (informer, handler) = (self.informer(), &*self.name);
        tracing::error!(
            informer = &*informer,
            handler,
            "a handler came after the informer had stopped, and is not called"
        );
    }

    pub(super) fn accepted(&self) -> Result<()> {
        if !self.rejected.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (handler, informer) = (&self.name, self.informer());
        let text =
            format!("handler {handler} was not added to informer {informer}, which has stopped");
        Err(Error::new(Cause::Stopped, text))
    }

    /// Waits for the callback that was running when the listener ended.
    pub(super) async fn quiet(&self) {
        self.quiet.cancelled().await;
    }

    /// Sets the sync state once: the end of a handler that has synced does not undo that.
    fn settle(&self, reached: HandlerSync) {
        self.sync.send_if_modified(|sync| {
            let pending = *sync == HandlerSync::Pending;
            if pending {
                *sync = reached;
            }
            pending
        });
    }

    /// Drops the handler without a lock held, because that runs user code.
    fn release(&self, slot: Slot) {
        if catch_unwind(AssertUnwindSafe(|| drop(slot))).is_err() {
            self.panicked("a handler panicked while it was dropped", None);
        }
        self.quiet.cancel();
    }

    pub(super) fn filter_panicked(&self, object: &Object) {
        self.panicked("a filter panicked; the object does not pass", Some(object.key()));
    }

    /// Logs a panic with the object's key. The panic message is left out, because it may quote the object.
    fn panicked(&self, what: &str, key: Option<&ObjectKey>) {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        let informer = self.informer();
        let (handler, key) = (&*self.name, key.map(ToString::to_string).unwrap_or_default());
        tracing::error!(informer = &*informer, handler, key, panics, "{what}");
        if self.manner.crash_on_panic {
            tracing::error!(informer = &*informer, handler, "it is to crash the process then");
            std::process::abort();
        }
    }

    /// Records the duration of a callback.
    fn took(&self, took: Duration, key: Option<&ObjectKey>) {
        self.callbacks.record_duration(took);
        // Only this listener's task records durations, and most are no maximum: a load is enough for those.
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        if nanos > self.slowest.load(Ordering::Relaxed) {
            self.slowest.store(nanos, Ordering::Relaxed);
        }
        if took < self.manner.slow_after || self.slow.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        let (informer, took, key) = (self.informer(), took.as_millis(), key.map(ObjectKey::as_str));
        let (handler, key, waiting) = (&*self.name, key.unwrap_or_default(), self.waiting());
        let hint = match self.manner.kind {
            ListenerKind::Blocking => "",
            _ => "; it held up other tasks meanwhile: register it as `blocking`, or do less in it",
        };
        tracing::warn!(
            informer = &*informer,
            handler,
            key,
            waiting,
            "a callback took {took} ms{hint} (said once, counted from now on)"
        );
    }

    pub(super) fn report_behind(&self) {
        let (informer, handler) = (self.informer(), &*self.name);
        let waiting = self.backlog(Backlog::len);
        tracing::warn!(
            informer = &*informer,
            handler,
            waiting,
            "a handler is far behind; events of the same object are merged while it is"
        );
    }

    fn informer(&self) -> Arc<str> {
        let name = self.processor().and_then(|processor| processor.informer_name());
        name.unwrap_or_default()
    }
}

impl Inbox {
    fn sleep<T>(&mut self, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

/// The handler while it is taken out to be called. Dropping this puts the handler back, or drops it if the
/// listener has ended in the meantime.
struct Turn<'a> {
    listener: &'a Listener,
    callee: Option<Box<Callee>>,
}

impl Turn<'_> {
    fn deliver(&mut self, event: Event) {
        let (listener, Some(callee)) = (self.listener, &mut self.callee) else { return };
        let synced = matches!(event, Event::Synced);
        let event = callee.filter.apply(event, |object| listener.filter_panicked(object));
        // The listener may have ended while the filter ran.
        if let Some(event) = event
            && !listener.is_ended()
        {
            let (key, began) = (event.object().map(|object| object.key().clone()), Instant::now());
            if catch_unwind(AssertUnwindSafe(|| callee.handler.handle(event))).is_err() {
                listener.panicked("a handler panicked; the next event is delivered", key.as_ref());
            }
            listener.took(began.elapsed(), key.as_ref());
        }
        listener.handled(synced);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inbox = self.listener.inbox.lock();
        let slot = self.callee.take().map_or(Slot::Nobody, Slot::Here);
        if self.listener.is_ended() {
            inbox.slot = Slot::Nobody;
            drop(inbox);
            self.listener.release(slot);
        } else {
            inbox.slot = slot;
        }
    }
}

/// A listener whose task runs or is about to. If the task is dropped because its runtime shuts down, the
/// listener ends too, since nothing would call it again.
pub(super) struct Running(pub(super) Arc<Listener>);

impl Running {
    pub(super) async fn run(self) {
        let listener = &self.0;
        while poll_fn(|context| listener.poll_ready(context)).await {
            if listener.manner.kind == ListenerKind::Blocking {
                let hop = listener.clone();
                let hop = tokio::task::spawn_blocking(move || hop.deliver(HOP_EVENTS_MAX));
                if hop.await.is_err() {
                    return;
                }
            } else if listener.deliver(TURN_EVENTS_MAX) {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end(HandlerSync::Stopped);
    }
}

impl WatchedHandler for Listener {
    fn name(&self) -> Arc<str> {
        self.name.clone()
    }
    fn waiting(&self) -> usize {
        self.backlog(Backlog::len)
    }
    fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }
    fn sync(&self) -> watch::Receiver<HandlerSync> {
        self.sync.subscribe()
    }
}
