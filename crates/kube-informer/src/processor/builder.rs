//! The registration of a handler: first its options, then its callbacks.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::{Deleted, Event, EventHandler, Object, Untyped};

use super::filter::ErasedFilter;
use super::handler::{ErasedHandler, ForEach, Functions, Typed};
use super::listener::{ListenerKind, Manner};
use super::{EventStream, KeepAlive, Processor, Registration};

/// The options of a listener.
#[derive(Default)]
pub(crate) struct ListenerOptions {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) resync: Option<Duration>,
    pub(crate) only_changes: bool,
    pub(super) manner: Manner,
    pub(crate) filters: Vec<ErasedFilter>,
}

/// A builder for a handler or a stream. Set options first, then call a method that registers it.
#[must_use = "nothing is registered yet: end with register, for_each or stream"]
pub struct HandlerBuilder<K = Untyped> {
    processor: Arc<Processor>,
    keep: KeepAlive,
    options: ListenerOptions,
    kind: PhantomData<fn() -> K>,
}

/// A builder for a handler made of closures, one per type of event. Events without a closure are ignored.
#[must_use = "nothing is registered yet: end with register"]
pub struct Callbacks<K = Untyped> {
    builder: HandlerBuilder<K>,
    functions: Functions<K>,
}

macro_rules! options {
    ($self:ident => $options:expr) => {
        /// Sets a name for logs and metrics. The default is the `file:line` of the registration.
        pub fn name(mut $self, name: &str) -> Self {
            $options.name = Some(name.into());
            $self
        }

        /// Sets this handler's own resync period, at which it receives every object again.
        ///
        /// The first resync is one period after the initial list. Periods below one second are raised to one
        /// second. Zero means never, even if the informer or the factory has a period.
        pub fn resync(mut $self, period: Duration) -> Self {
            $options.resync = Some(period);
            $self
        }

        /// Delivers changes only: no resyncs, and no updates to the same `resourceVersion`.
        pub fn only_changes(mut $self) -> Self {
            $options.only_changes = true;
            $self
        }

        /// Delivers only objects that pass a filter. An object that starts to pass is added; one that no longer
        /// passes is deleted.
        ///
        /// An object must pass every filter that was set. An object for which a filter panics does not pass.
        /// Filters run where the callbacks run, once per new state. Delivered objects are remembered by key,
        /// so every object that was added is eventually deleted, whatever the filter says by then.
        pub fn filter(mut $self, pass: impl Fn(&Object<K>) -> bool + Send + Sync + 'static) -> Self {
            $options.filters.push(Box::new(move |object| pass(&object.clone().cast())));
            $self
        }

        /// Allows the callbacks of this handler to block (on files, databases, locks or long computations).
        /// They run on Tokio's blocking threads and hold up no other task. Streams do not need this.
        pub fn blocking(mut $self) -> Self {
            $options.manner.kind = ListenerKind::Blocking;
            $self
        }

        /// Delivers every state, however far behind this handler is, and merges nothing. While 1,024 events
        /// wait for the handler, the informer waits too, and with it the cache and all other handlers.
        pub fn every_state(mut $self) -> Self {
            $options.manner.every_state = true;
            $self
        }

        /// Sets the duration after which a callback counts as slow. The first slow callback is logged, and
        /// [`Registration::slow`] counts all of them. The default is 100 ms. Streams have no callbacks.
        pub fn slow_after(mut $self, limit: Duration) -> Self {
            $options.manner.slow_after = limit;
            $self
        }

        /// Ends the process (`std::process::abort`) when this handler or its filter panics, after logging the
        /// panic. By default, a panic is contained and the next event is delivered.
        pub fn crash_on_panic(mut $self) -> Self {
            $options.manner.crash_on_panic = true;
            $self
        }
    };
}

impl<K: 'static> HandlerBuilder<K> {
    /// Creates a builder. `resync` is the period of handlers that do not set their own.
    pub(crate) fn new(
        processor: Arc<Processor>,
        keep: KeepAlive,
        resync: Option<Duration>,
    ) -> Self {
        let options = ListenerOptions { resync, ..ListenerOptions::default() };
        Self { processor, keep, options, kind: PhantomData }
    }

    options!(self => self.options);

    /// Lets the informer stop while this handler or stream is registered. By default, each of them keeps it running.
    pub fn weak(mut self) -> Self {
        self.keep = None;
        self
    }

    /// Registers a handler. However late it registers, it first receives every cached object.
    #[track_caller]
    pub fn register(self, handler: impl EventHandler<K>) -> Registration {
        self.join(Box::new(Typed(handler, PhantomData)), Location::caller())
    }

    /// Registers one closure for all events. The closure owns its state, so it needs no locks.
    #[track_caller]
    pub fn for_each(self, handler: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.join(Box::new(ForEach(handler, PhantomData)), Location::caller())
    }

    /// Returns the events as a stream. Dropping the stream ends delivery.
    #[track_caller]
    pub fn stream(self) -> EventStream<K> {
        EventStream::new(self.processor.join_stream(self.options, self.keep, Location::caller()))
    }

    /// Sets a closure for added objects. The flag says whether the object was there when the handler
    /// registered.
    pub fn on_add(self, f: impl FnMut(&Object<K>, bool) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_add(f)
    }

    /// Sets a closure for changed objects, which receives the old and the new state.
    pub fn on_update(self, f: impl FnMut(&Object<K>, &Object<K>) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_update(f)
    }

    /// Sets a closure for deleted objects.
    pub fn on_delete(self, f: impl FnMut(&Deleted<K>) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_delete(f)
    }

    /// Sets a closure for resynced objects. Without one, a resync is delivered as an update.
    pub fn on_resync(self, f: impl FnMut(&Object<K>) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_resync(f)
    }

    /// Sets a closure for the end of the initial list.
    pub fn on_synced(self, f: impl FnMut() + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_synced(f)
    }

    fn join(self, handler: Box<dyn ErasedHandler>, place: &Location<'_>) -> Registration {
        self.processor.join(handler, self.options, self.keep, place)
    }
}

impl<K: 'static> Callbacks<K> {
    fn new(builder: HandlerBuilder<K>) -> Self {
        Self { builder, functions: Functions::default() }
    }

    options!(self => self.builder.options);

    /// Sets a closure for added objects. The flag says whether the object was there when the handler
    /// registered.
    pub fn on_add(mut self, f: impl FnMut(&Object<K>, bool) + Send + 'static) -> Self {
        self.functions.add = Some(Box::new(f));
        self
    }

    /// Sets a closure for changed objects, which receives the old and the new state.
    pub fn on_update(mut self, f: impl FnMut(&Object<K>, &Object<K>) + Send + 'static) -> Self {
        self.functions.update = Some(Box::new(f));
        self
    }

    /// Sets a closure for deleted objects.
    pub fn on_delete(mut self, f: impl FnMut(&Deleted<K>) + Send + 'static) -> Self {
        self.functions.delete = Some(Box::new(f));
        self
    }

    /// Sets a closure for resynced objects. Without one, a resync is delivered as an update.
    pub fn on_resync(mut self, f: impl FnMut(&Object<K>) + Send + 'static) -> Self {
        self.functions.resync = Some(Box::new(f));
        self
    }

    /// Sets a closure for the end of the initial list.
    pub fn on_synced(mut self, f: impl FnMut() + Send + 'static) -> Self {
        self.functions.synced = Some(Box::new(f));
        self
    }

    /// Registers the closures. However late they register, they first receive every cached object.
    #[track_caller]
    pub fn register(self) -> Registration {
        self.builder.register(self.functions)
    }
}

impl<K> fmt::Debug for HandlerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerBuilder")
            .field("name", &self.options.name)
            .field("resync", &self.options.resync)
            .field("only_changes", &self.options.only_changes)
            .field("every_state", &self.options.manner.every_state)
            .field("filters", &self.options.filters.len())
            .finish_non_exhaustive()
    }
}
impl<K> fmt::Debug for Callbacks<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Callbacks").field(&self.builder).finish()
    }
}
