//! Handlers as programs write them, and as the core knows them.

use std::marker::PhantomData;

use crate::{Deleted, Event, Object};

/// Told what happens to the objects of an informer, one call at a time, in order.
///
/// However late it comes, a handler first sees every object that is there as added (`initial`), then
/// every change. What it has been told always adds up to a state that the cache was in.
///
/// Callbacks may be slow: nothing waits for them, and when too much waits for a handler, events of the
/// same object are merged ([`Registration::merged`](crate::Registration::merged)). They should not
/// block the thread, as no other code of an async program should; say
/// [`blocking`](crate::HandlerBuilder::blocking) for those that do. They may panic: that is counted,
/// reported, and the next event is delivered.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::{Deleted, EventHandler, FinalState, Object};
///
/// #[derive(Default)]
/// struct Count(usize);
///
/// impl EventHandler<Pod> for Count {
///     fn on_add(&mut self, _: &Object<Pod>, _initial: bool) {
///         self.0 += 1;
///     }
///     fn on_delete(&mut self, _: &Deleted<Pod>) {
///         self.0 -= 1;
///     }
/// }
///
/// // A handler is tested by calling it.
/// let pod = Object::from_json(r#"{"metadata":{"name":"web-0","namespace":"shop"}}"#)?;
/// let mut count = Count::default();
/// count.on_add(&pod, true);
/// assert_eq!(count.0, 1);
/// count.on_delete(&Deleted { object: pod, final_state: FinalState::Known });
/// assert_eq!(count.0, 0);
/// # Ok::<(), kube_informer::Error>(())
/// ```
pub trait EventHandler<K>: Send + 'static {
    /// The object is new, or (`initial`) was there when this handler came.
    fn on_add(&mut self, object: &Object<K>, initial: bool) {
        let _ = (object, initial);
    }

    /// The object changed: as this handler last saw it, and as it is now. Relists repeat unchanged
    /// ones, see [`only_changes`](crate::HandlerBuilder::only_changes).
    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        let _ = (old, new);
    }

    /// The object is gone, from the cluster or out of this handler's filter.
    fn on_delete(&mut self, deleted: &Deleted<K>) {
        let _ = deleted;
    }

    /// The resync period is over; an update without a change unless you say otherwise.
    fn on_resync(&mut self, object: &Object<K>) {
        self.on_update(object, object);
    }

    /// The initial list has been delivered in full.
    fn on_synced(&mut self) {}

    /// Calls the method that an event is for: for tests, and for programs that make their own events
    /// with [`Indexer::process`](crate::Indexer::process).
    fn on_event(&mut self, event: &Event<K>) {
        match event {
            Event::Added { object, initial } => self.on_add(object, *initial),
            Event::Updated { old, new } => self.on_update(old, new),
            Event::Deleted(deleted) => self.on_delete(deleted),
            Event::Resynced(object) => self.on_resync(object),
            Event::Synced => self.on_synced(),
        }
    }
}

impl<K, H: EventHandler<K> + ?Sized> EventHandler<K> for Box<H> {
    fn on_add(&mut self, object: &Object<K>, initial: bool) {
        (**self).on_add(object, initial);
    }
    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        (**self).on_update(old, new);
    }
    fn on_delete(&mut self, deleted: &Deleted<K>) {
        (**self).on_delete(deleted);
    }
    fn on_resync(&mut self, object: &Object<K>) {
        (**self).on_resync(object);
    }
    fn on_synced(&mut self) {
        (**self).on_synced();
    }
    fn on_event(&mut self, event: &Event<K>) {
        (**self).on_event(event);
    }
}

/// A handler as the core knows it: events go in by value, so that typing them is a move.
pub(crate) trait ErasedHandler: Send {
    fn handle(&mut self, event: Event);
}

/// A handler that is a type.
pub(super) struct Typed<K, H>(pub(super) H, pub(super) PhantomData<fn() -> K>);

impl<K, H: EventHandler<K>> ErasedHandler for Typed<K, H> {
    fn handle(&mut self, event: Event) {
        self.0.on_event(&event.cast());
    }
}

/// A handler that is one closure.
pub(super) struct ForEach<K, F>(pub(super) F, pub(super) PhantomData<fn() -> K>);

impl<K, F: FnMut(Event<K>) + Send> ErasedHandler for ForEach<K, F> {
    fn handle(&mut self, event: Event) {
        (self.0)(event.cast());
    }
}

/// A handler that is a closure for each thing that can happen; those left out do nothing.
pub(super) struct Functions<K> {
    pub(super) add: Option<Add<K>>,
    pub(super) update: Option<Update<K>>,
    pub(super) delete: Option<Delete<K>>,
    pub(super) resync: Option<Resync<K>>,
    pub(super) synced: Option<Synced>,
}
type Add<K> = Box<dyn FnMut(&Object<K>, bool) + Send>;
type Update<K> = Box<dyn FnMut(&Object<K>, &Object<K>) + Send>;
type Delete<K> = Box<dyn FnMut(&Deleted<K>) + Send>;
type Resync<K> = Box<dyn FnMut(&Object<K>) + Send>;
type Synced = Box<dyn FnMut() + Send>;

impl<K> Default for Functions<K> {
    fn default() -> Self {
        Self { add: None, update: None, delete: None, resync: None, synced: None }
    }
}

impl<K: 'static> EventHandler<K> for Functions<K> {
    fn on_add(&mut self, object: &Object<K>, initial: bool) {
        if let Some(f) = &mut self.add {
            f(object, initial);
        }
    }
    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        if let Some(f) = &mut self.update {
            f(old, new);
        }
    }
    fn on_delete(&mut self, deleted: &Deleted<K>) {
        if let Some(f) = &mut self.delete {
            f(deleted);
        }
    }
    fn on_resync(&mut self, object: &Object<K>) {
        match &mut self.resync {
            Some(f) => f(object),
            None => self.on_update(object, object),
        }
    }
    fn on_synced(&mut self) {
        if let Some(f) = &mut self.synced {
            f();
        }
    }
}
