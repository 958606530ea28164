//! The handler trait that users implement, and its type-erased form.

use std::marker::PhantomData;

use crate::{Deleted, Event, Object};

/// A handler of the events of an informer's objects. It is called in order, with one event at a time.
///
/// However late it registers, a handler first receives every cached object as added (`initial`), and then every
/// change. The events that it has received always add up to a state that the cache was in.
///
/// Callbacks may be slow: neither the informer nor other handlers wait for them, except for a handler that is
/// to see [`every_state`](crate::HandlerBuilder::every_state). If too many events wait for a handler, events
/// of the same object are merged ([`Registration::merged`](crate::Registration::merged)). As elsewhere in
/// async code, callbacks should not block the thread; register those that do as
/// [`blocking`](crate::HandlerBuilder::blocking). Callbacks may panic: a panic is counted and logged, and the
/// next event is delivered.
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
    /// Called when an object is new, or (`initial`) was already there when this handler registered.
    fn on_add(&mut self, object: &Object<K>, initial: bool) {
        let _ = (object, initial);
    }

    /// Called when an object has changed, with the state that this handler last saw and the new one. Relists
    /// repeat unchanged objects; see [`only_changes`](crate::HandlerBuilder::only_changes).
    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        let _ = (old, new);
    }

    /// Called when an object is gone, from the cluster or from this handler's filter.
    fn on_delete(&mut self, deleted: &Deleted<K>) {
        let _ = deleted;
    }

    /// Called for each object when the resync period has elapsed. By default, calls `on_update` with the same
    /// object twice.
    fn on_resync(&mut self, object: &Object<K>) {
        self.on_update(object, object);
    }

    /// Called when the initial list has been delivered in full.
    fn on_synced(&mut self) {}

    /// Calls the method for an event. For tests, and for programs that create events with
    /// [`Indexer::process`](crate::Indexer::process).
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

/// A type-erased handler. It takes events by value, so that typing them is a move.
pub(crate) trait ErasedHandler: Send {
    fn handle(&mut self, event: Event);
}

/// A handler that implements [`EventHandler`].
pub(super) struct Typed<K, H>(pub(super) H, pub(super) PhantomData<fn() -> K>);

impl<K, H: EventHandler<K>> ErasedHandler for Typed<K, H> {
    fn handle(&mut self, event: Event) {
        self.0.on_event(&event.cast());
    }
}

/// A handler that is a single closure.
pub(super) struct ForEach<K, F>(pub(super) F, pub(super) PhantomData<fn() -> K>);

impl<K, F: FnMut(Event<K>) + Send> ErasedHandler for ForEach<K, F> {
    fn handle(&mut self, event: Event) {
        (self.0)(event.cast());
    }
}

/// A handler made of one optional closure per type of event.
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
