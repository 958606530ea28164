//! Streams of events, for async code.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::task::coop;

use crate::{Event, Registration, Untyped};

use super::filter::Filter;
use super::{KeepAlive, RegistrationGuard};

/// A stream of an informer's events, for async code. It ends when the informer stops or the stream is removed.
///
/// The informer does not wait for the stream to be polled. The stream's backlog is bounded in the same way as
/// a handler's.
#[must_use = "dropping an EventStream ends it"]
pub struct EventStream<K = Untyped> {
    subscription: Subscription,
    kind: PhantomData<fn() -> K>,
}

/// The untyped part of a stream.
pub(crate) struct Subscription {
    pub(super) registration: RegistrationGuard,
    pub(super) filter: Filter,
    pub(super) keep: KeepAlive,
}

impl<K> EventStream<K> {
    pub(super) fn new(subscription: Subscription) -> Self {
        Self { subscription, kind: PhantomData }
    }

    /// Returns the next event, or `None` once the informer has stopped. Cancel safe.
    pub async fn next(&mut self) -> Option<Event<K>> {
        std::future::poll_fn(|context| self.subscription.poll(context)).await.map(Event::cast)
    }

    /// Returns the stream's registration, for example to see whether it has synced or how large its backlog is.
    pub fn registration(&self) -> &Registration {
        &self.subscription.registration
    }
}

impl Subscription {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let listener = self.registration.listener();
        loop {
            // A stream that always has events must let other tasks run, even if its filter passes none of them.
            let step = ready!(coop::poll_proceed(context));
            let Some(event) = ready!(listener.poll_event(context)) else {
                self.keep = None;
                return Poll::Ready(None);
            };
            step.made_progress();
            listener.handled(matches!(event, Event::Synced));
            let event = self.filter.apply(event, |object| listener.filter_panicked(object));
            if event.is_some() {
                return Poll::Ready(event);
            }
        }
    }
}

impl<K> Stream for EventStream<K> {
    type Item = Event<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.subscription.poll(context).map(|event| event.map(Event::cast))
    }
}

impl<K> fmt::Debug for EventStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventStream").field(self.registration()).finish()
    }
}
