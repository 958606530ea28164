//! A handler to be: its options, then what it does.

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

/// What a listener may be told about how it wants its events.
#[derive(Default)]
pub(crate) struct ListenerOptions {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) resync: Option<Duration>,
    pub(crate) only_changes: bool,
    pub(super) manner: Manner,
    pub(crate) filters: Vec<ErasedFilter>,
}

/// A handler to be: the options, and then what it does.
#[must_use = "nothing is registered yet: end with register, for_each or stream"]
pub struct HandlerBuilder<K = Untyped> {
    processor: Arc<Processor>,
    keep: KeepAlive,
    options: ListenerOptions,
    kind: PhantomData<fn() -> K>,
}

/// A handler of closures to be, one per thing that can happen; those left out do nothing.
#[must_use = "nothing is registered yet: end with register"]
pub struct Callbacks<K = Untyped> {
    builder: HandlerBuilder<K>,
    functions: Functions<K>,
}

macro_rules! options {
    ($self:ident => $options:expr) => {
        /// A name for logs and metrics; `file:line` of the registration otherwise.
        pub fn name(mut $self, name: &str) -> Self {
            $options.name = Some(name.into());
            $self
        }

        /// Hands every object over again this often, whatever other handlers asked for.
        ///
        /// The first time is one period after the initial list. Periods below a second are taken as
        /// one second; zero means never, also where the informer or the factory has a period.
        pub fn resync(mut $self, period: Duration) -> Self {
            $options.resync = Some(period);
            $self
        }

        /// Only what changed: no resyncs, and no updates to the same resourceVersion.
        pub fn only_changes(mut $self) -> Self {
            $options.only_changes = true;
            $self
        }

        /// Only objects that pass. One that starts to pass is added, one that ceases to is deleted.
        ///
        /// Every filter given must let it pass. A filter that panics lets nothing pass. It runs
        /// where the callbacks do, once for every new state. What has been delivered is remembered
        /// by key, so that everything that was added is deleted at its end, whatever the filter
        /// says by then.
        pub fn filter(mut $self, pass: impl Fn(&Object<K>) -> bool + Send + Sync + 'static) -> Self {
            $options.filters.push(Box::new(move |object| pass(&object.clone().cast())));
            $self
        }

        /// The callbacks of this handler may block (files, databases, locks, long computations):
        /// they run on Tokio's blocking threads and hold up no other task. Streams do not need it.
        pub fn blocking(mut $self) -> Self {
            $options.manner.kind = ListenerKind::Blocking;
            $self
        }

        /// Delivers every state, however far behind this handler is: nothing is merged. When 1,024
        /// events wait for it, the informer waits too, and with it the cache and all other handlers.
        pub fn every_state(mut $self) -> Self {
            $options.manner.every_state = true;
            $self
        }

        /// Logs a callback that takes longer than this, once; [`Registration::slow`] counts them. 100 ms
        /// without this. Streams have no callbacks.
        pub fn slow_after(mut $self, limit: Duration) -> Self {
            $options.manner.slow_after = limit;
            $self
        }

        /// Ends the process (`std::process::abort`) when this handler or its filter panics, once that
        /// is logged. Without this a panic is contained, and the next event is delivered.
        pub fn crash_on_panic(mut $self) -> Self {
            $options.manner.crash_on_panic = true;
            $self
        }
    };
}

impl<K: 'static> HandlerBuilder<K> {
    /// `resync` is the period of handlers that do not say one.
    pub(crate) fn new(
        processor: Arc<Processor>,
        keep: KeepAlive,
        resync: Option<Duration>,
    ) -> Self {
        let options = ListenerOptions { resync, ..ListenerOptions::default() };
        Self { processor, keep, options, kind: PhantomData }
    }

    options!(self => self.options);

    /// Registers a handler. Whenever it comes, it first sees all that is there.
    #[track_caller]
    pub fn register(self, handler: impl EventHandler<K>) -> Registration {
        self.join(Box::new(Typed(handler, PhantomData)), Location::caller())
    }

    /// Registers one closure for all events; it owns its state, no locks needed.
    #[track_caller]
    pub fn for_each(self, handler: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.join(Box::new(ForEach(handler, PhantomData)), Location::caller())
    }

    /// The events as a stream. Dropping it ends delivery.
    #[track_caller]
    pub fn stream(self) -> EventStream<K> {
        EventStream::new(self.processor.join_stream(self.options, self.keep, Location::caller()))
    }

    /// A closure for added objects, and whether they were there when this handler came.
    pub fn on_add(self, f: impl FnMut(&Object<K>, bool) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_add(f)
    }

    /// A closure for changed objects: before, after.
    pub fn on_update(self, f: impl FnMut(&Object<K>, &Object<K>) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_update(f)
    }

    /// A closure for deleted objects.
    pub fn on_delete(self, f: impl FnMut(&Deleted<K>) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_delete(f)
    }

    /// A closure for objects whose resync is due; without one, they are updates.
    pub fn on_resync(self, f: impl FnMut(&Object<K>) + Send + 'static) -> Callbacks<K> {
        Callbacks::new(self).on_resync(f)
    }

    /// A closure for the end of the initial list.
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

    /// A closure for added objects, and whether they were there when this handler came.
    pub fn on_add(mut self, f: impl FnMut(&Object<K>, bool) + Send + 'static) -> Self {
        self.functions.add = Some(Box::new(f));
        self
    }

    /// A closure for changed objects: before, after.
    pub fn on_update(mut self, f: impl FnMut(&Object<K>, &Object<K>) + Send + 'static) -> Self {
        self.functions.update = Some(Box::new(f));
        self
    }

    /// A closure for deleted objects.
    pub fn on_delete(mut self, f: impl FnMut(&Deleted<K>) + Send + 'static) -> Self {
        self.functions.delete = Some(Box::new(f));
        self
    }

    /// A closure for objects whose resync is due; without one, they are updates.
    pub fn on_resync(mut self, f: impl FnMut(&Object<K>) + Send + 'static) -> Self {
        self.functions.resync = Some(Box::new(f));
        self
    }

    /// A closure for the end of the initial list.
    pub fn on_synced(mut self, f: impl FnMut() + Send + 'static) -> Self {
        self.functions.synced = Some(Box::new(f));
        self
    }

    /// Registers them. Whenever they come, they first see all that is there.
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
