//! The handle of a registered handler.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "metrics")]
use crate::measure::Histogram;
use crate::wait::{HandlerSync, WatchedHandler as _};
use crate::{Result, WaitForSync};

use super::backlog::Backlog;
use super::listener::Listener;

/// A handle to a registered handler. The handler stays registered for as long as the informer runs. The
/// handle may be dropped, queried, used to [`remove`](Self::remove) the handler, or [tied to a
/// scope](Self::remove_on_drop).
///
/// A registration does not keep the informer running.
#[derive(Clone)]
pub struct Registration {
    listener: Arc<Listener>,
}

impl Registration {
    pub(super) fn new(listener: Arc<Listener>) -> Self {
        Self { listener }
    }

    pub(super) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// Returns the handler's name, or the `file:line` of the registration if it was given none.
    pub fn name(&self) -> &str {
        self.listener.name()
    }

    /// Returns an error if the informer had already stopped when this handler registered, so that it is never
    /// called.
    ///
    /// ```
    /// # use kube_informer::{Registration, SharedInformer};
    /// # fn example(pods: SharedInformer) -> Result<(), kube_informer::Error> {
    /// pods.handler().for_each(|event| println!("{event:?}")).accepted()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn accepted(self) -> Result<Self> {
        self.listener.accepted()?;
        Ok(self)
    }

    /// Returns whether this handler has processed the whole initial list. Once true, it stays true.
    pub fn has_synced(&self) -> bool {
        self.listener.has_synced()
    }

    /// Waits until the informer has synced and this handler has processed the initial list. Fails if either is
    /// stopped first.
    pub fn wait_for_sync(&self) -> WaitForSync {
        let informer = self.listener.processor().and_then(|processor| processor.watched());
        WaitForSync::of_handler(informer, self.listener.clone())
    }

    /// Returns the number of events that wait for this handler.
    pub fn backlog(&self) -> usize {
        self.listener.backlog(Backlog::len)
    }

    /// Returns how many events were merged into another event of the same object because too many were waiting.
    pub fn merged(&self) -> u64 {
        self.listener.backlog(Backlog::merged_total)
    }

    /// Returns how many repetitions (resyncs, unchanged objects of relists) were skipped, because too many
    /// events were waiting or the same repetition was already queued.
    pub fn skipped(&self) -> u64 {
        self.listener.backlog(Backlog::skipped_total)
    }

    /// Returns how many times the handler or its filter has panicked.
    pub fn panics(&self) -> u64 {
        self.listener.panics()
    }

    /// Returns how many callbacks took longer than [`slow_after`](crate::HandlerBuilder::slow_after).
    pub fn slow(&self) -> u64 {
        self.listener.slow()
    }

    /// Returns the number of events that the handler has received, or the stream has yielded.
    pub fn delivered(&self) -> u64 {
        self.listener.delivered()
    }

    /// Returns whether this is a stream, which has no callbacks.
    pub fn is_stream(&self) -> bool {
        self.listener.is_stream()
    }

    /// Returns the duration of the slowest callback, or `None` if there was none yet.
    pub fn slowest(&self) -> Option<Duration> {
        self.listener.slowest()
    }

    /// Returns a duration that 99 % of the callbacks did not exceed, rounded up to a power of ten. `None` if there was no
    /// callback yet, or if the crate was built without the feature `metrics`.
    pub fn p99(&self) -> Option<Duration> {
        // The slowest is in the last bucket, which has no bound of its own.
        let bound = self.listener.callbacks.quantile(0.99)?;
        let slowest = self.slowest()?;
        Some(Duration::try_from_secs_f64(bound).map_or(slowest, |bound| bound.min(slowest)))
    }

    /// Returns the durations of the callbacks.
    #[cfg(feature = "metrics")]
    pub(crate) fn callbacks(&self) -> &Histogram {
        &self.listener.callbacks
    }

    /// Ends delivery at once: no callback starts after this, and pending events are dropped.
    ///
    /// Awaiting the result waits for a callback that is still running; after that, the handler has been
    /// dropped. A callback can remove its own handler, but must not await the result, because it would wait
    /// for itself. It should drop the result instead.
    pub fn remove(self) -> impl Future<Output = ()> + Send + 'static {
        self.listener.end(HandlerSync::Removed);
        async move { self.listener.quiet().await }
    }

    /// Returns a guard that ends delivery when it is dropped: no callback starts after that.
    pub fn remove_on_drop(self) -> RegistrationGuard {
        RegistrationGuard { registration: self, armed: true }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name())
            .field("has_synced", &self.has_synced())
            .field("backlog", &self.backlog())
            .finish_non_exhaustive()
    }
}

/// A registration that is removed when this guard is dropped.
#[must_use = "dropping a RegistrationGuard removes the handler: give it a name other than `_`"]
#[derive(Debug)]
pub struct RegistrationGuard {
    registration: Registration,
    armed: bool,
}

impl RegistrationGuard {
    /// Disarms the guard, so that the handler stays registered.
    pub fn detach(mut self) -> Registration {
        self.armed = false;
        self.registration.clone()
    }
}

impl Deref for RegistrationGuard {
    type Target = Registration;
    fn deref(&self) -> &Registration {
        &self.registration
    }
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        if self.armed {
            self.registration.listener.end(HandlerSync::Removed);
        }
    }
}
