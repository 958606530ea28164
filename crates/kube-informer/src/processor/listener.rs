//! One listener: its backlog, the task that calls its handler, and its end.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::wait::{HandlerSync, WatchedHandler};
use crate::{Event, Object, ObjectKey};

use super::backlog::{Backlog, Notification};
use super::filter::Filter;
use super::handler::ErasedHandler;
use super::{KeepAlive, Processor};

/// How many events a task delivers before it lets others run. Tokio gives tasks 128 steps too.
const TURN_EVENTS_MAX: usize = 128;

/// How many events are delivered per visit to a blocking thread: enough that the way there, some
/// microseconds, does not count, few enough that such threads go round when there are more
/// handlers than threads.
const HOP_EVENTS_MAX: usize = 1024;

/// A place in the fan-out. The informer pushes; a task or a stream pops.
pub(crate) struct Listener {
    name: Arc<str>,
    processor: Weak<Processor>,
    kind: ListenerKind,
    inbox: Mutex<Inbox>,
    /// Set with the inbox locked; here too, so that a look needs no lock.
    ended: AtomicBool,
    sync: watch::Sender<HandlerSync>,
    /// Cancelled when it has ended and no callback runs any more.
    quiet: CancellationToken,
    delivered: AtomicU64,
    panics: AtomicU64,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ListenerKind {
    /// A task calls the handler.
    Task,
    /// A task calls the handler on threads that may block.
    Blocking,
    /// Somebody polls.
    Stream,
}

struct Inbox {
    backlog: Backlog,
    waker: Option<Waker>,
    slot: Slot,
    fell_behind: bool,
}

/// Where the handler is.
enum Slot {
    Here(Box<Callee>),
    /// With the task, which may be calling it.
    Out,
    /// There is none (any more).
    Nobody,
}

/// The handler and all that goes when it goes.
pub(super) struct Callee {
    pub(super) handler: Box<dyn ErasedHandler>,
    pub(super) filter: Filter,
    #[expect(dead_code, reason = "held, not read: the informer runs as long as its handlers do")]
    pub(super) keep: KeepAlive,
}

/// What pushing leaves to be done when no lock is held any more.
#[derive(Default)]
pub(super) struct Pushed {
    pub(super) waker: Option<Waker>,
    /// This was the first time that too much waited.
    pub(super) fell_behind: bool,
}

impl Listener {
    /// Without a handler it is a stream's.
    pub(super) fn new(
        name: Arc<str>,
        processor: Weak<Processor>,
        backlog: Backlog,
        kind: ListenerKind,
        callee: Option<Callee>,
    ) -> Arc<Self> {
        let slot = callee.map_or(Slot::Nobody, |callee| Slot::Here(Box::new(callee)));
        Arc::new(Self {
            name,
            processor,
            kind,
            inbox: Mutex::new(Inbox { backlog, waker: None, slot, fell_behind: false }),
            ended: AtomicBool::new(false),
            sync: watch::Sender::default(),
            quiet: CancellationToken::new(),
            delivered: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
    pub(super) fn processor(&self) -> Option<Arc<Processor>> {
        self.processor.upgrade()
    }
    pub(super) fn is_stream(&self) -> bool {
        self.kind == ListenerKind::Stream
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
    pub(super) fn backlog<T>(&self, read: impl FnOnce(&Backlog) -> T) -> T {
        read(&self.inbox.lock().backlog)
    }

    /// Queues what happened. Never waits for the handler.
    pub(super) fn push(&self, notifications: &[Notification]) -> Pushed {
        let mut inbox = self.inbox.lock();
        if self.is_ended() {
            return Pushed::default();
        }
        for notification in notifications {
            inbox.backlog.push(notification);
        }
        let fell_behind = inbox.backlog.is_merging() && !inbox.fell_behind;
        inbox.fell_behind |= fell_behind;
        let waker = if inbox.backlog.is_empty() { None } else { inbox.waker.take() };
        Pushed { waker, fell_behind }
    }

    /// The next event; none when it has ended.
    pub(super) fn poll_event(&self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut inbox = self.inbox.lock();
        if self.is_ended() {
            return Poll::Ready(None);
        }
        match inbox.backlog.pop() {
            Some(event) => Poll::Ready(Some(event)),
            None => inbox.sleep(context),
        }
    }

    /// Whether there is something to deliver; false when it has ended.
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
        if self.is_ended() { None } else { inbox.backlog.pop() }
    }

    /// Delivers some events, and says whether that was not all.
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

    /// An event has been handled, whatever came of it.
    pub(super) fn handled(&self, synced: bool) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if synced {
            self.settle(HandlerSync::Synced);
        }
    }

    /// Ends delivery: no callback starts after this, what waits is dropped, and so is the handler, at
    /// the latest by the callback that is running.
    pub(super) fn end(&self, why: HandlerSync) {
        let mut inbox = self.inbox.lock();
        self.ended.store(true, Ordering::Release);
        let (waiting, waker) = (inbox.backlog.take(), inbox.waker.take());
        let idle = !matches!(inbox.slot, Slot::Out);
        let slot = idle.then(|| std::mem::replace(&mut inbox.slot, Slot::Nobody));
        drop(inbox);
        drop(waiting);
        self.settle(why);
        if let Some(slot) = slot {
            self.release(slot);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for the callback that was running when it ended.
    pub(super) async fn quiet(&self) {
        self.quiet.cancelled().await;
    }

    /// What has been reached stays: a handler that was synced is not unsynced by its end.
    fn settle(&self, reached: HandlerSync) {
        self.sync.send_if_modified(|sync| {
            let pending = *sync == HandlerSync::Pending;
            if pending {
                *sync = reached;
            }
            pending
        });
    }

    /// Drops the handler, with no lock held: that runs code of the program.
    fn release(&self, slot: Slot) {
        if catch_unwind(AssertUnwindSafe(|| drop(slot))).is_err() {
            self.panicked("a handler panicked while it was dropped", None);
        }
        self.quiet.cancel();
    }

    pub(super) fn filter_panicked(&self, object: &Object) {
        self.panicked("a filter panicked; the object does not pass", Some(object.key()));
    }

    /// Names the object, and leaves out what the panic said: it may quote from it.
    fn panicked(&self, what: &str, key: Option<&ObjectKey>) {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        let informer = self.informer();
        let (handler, key) = (&*self.name, key.map_or("", ObjectKey::as_str));
        tracing::error!(informer = &*informer, handler, key, panics, "{what}");
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

/// The handler, taken out to be called. Dropping this puts it back, or lets it go if the listener
/// has ended meanwhile.
struct Turn<'a> {
    listener: &'a Listener,
    callee: Option<Box<Callee>>,
}

impl Turn<'_> {
    fn deliver(&mut self, event: Event) {
        let (listener, Some(callee)) = (self.listener, &mut self.callee) else { return };
        let synced = matches!(event, Event::Synced);
        let event = callee.filter.apply(event, |object| listener.filter_panicked(object));
        // The filter may have taken its time.
        if let Some(event) = event
            && !listener.is_ended()
        {
            let key = event.object().map(|object| object.key().clone());
            if catch_unwind(AssertUnwindSafe(|| callee.handler.handle(event))).is_err() {
                listener.panicked("a handler panicked; the next event is delivered", key.as_ref());
            }
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

/// A listener whose task runs, or is about to. If the task goes (its runtime was shut down), so does
/// the listener: nobody would call it again.
pub(super) struct Running(pub(super) Arc<Listener>);

impl Running {
    pub(super) async fn run(self) {
        let listener = &self.0;
        while poll_fn(|context| listener.poll_ready(context)).await {
            if listener.kind == ListenerKind::Blocking {
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
