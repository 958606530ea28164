//! A handler's place in an informer.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

#[cfg(feature = "metrics")]
use crate::measure::Histogram;
use crate::wait::HandlerSync;
use crate::{Result, WaitForSync};

use super::backlog::Backlog;
use super::listener::Listener;

/// A handler's place in an informer. The handler stays as long as the informer runs: this may be
/// ignored, asked, used to [`remove`](Self::remove) it, or [tied to a scope](Self::remove_on_drop).
///
/// Having one does not keep the informer running.
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

    /// The name that it was given, or `file:line` of where it was registered.
    pub fn name(&self) -> &str {
        self.listener.name()
    }

    /// An error if the informer had stopped already when this handler came: it is never called.
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

    /// Whether this handler has been through the whole initial list. Stays true.
    pub fn has_synced(&self) -> bool {
        self.listener.has_synced()
    }

    /// Waits until the informer is synced and this handler has been through the initial list. Ends
    /// with an error if either is stopped before.
    pub fn wait_for_sync(&self) -> WaitForSync {
        let informer = self.listener.processor().and_then(|processor| processor.watched());
        WaitForSync::of_handler(informer, self.listener.clone())
    }

    /// How many events wait for this handler.
    pub fn backlog(&self) -> usize {
        self.listener.backlog(Backlog::len)
    }

    /// How many events became part of another one of the same object, since too many waited.
    pub fn merged(&self) -> u64 {
        self.listener.backlog(Backlog::merged_total)
    }

    /// How many repetitions (resyncs, unchanged objects of relists) were left out, since too many
    /// events waited, or the same repetition did.
    pub fn skipped(&self) -> u64 {
        self.listener.backlog(Backlog::skipped_total)
    }

    /// How many times the handler or its filter panicked.
    pub fn panics(&self) -> u64 {
        self.listener.panics()
    }

    /// How many callbacks took longer than [`slow_after`](crate::HandlerBuilder::slow_after).
    pub fn slow(&self) -> u64 {
        self.listener.slow()
    }

    /// How long callbacks took.
    #[cfg(feature = "metrics")]
    pub(crate) fn callbacks(&self) -> &Histogram {
        &self.listener.callbacks
    }

    /// Ends delivery at once: no callback starts after this. What waits is dropped.
    ///
    /// Awaiting the result waits for the callback that may be running; when that is over, the
    /// handler has been dropped. A callback can end its own handler, but must not wait for it: it
    /// would wait for itself. It drops the result instead.
    pub fn remove(self) -> impl Future<Output = ()> + Send + 'static {
        self.listener.end(HandlerSync::Removed);
        async move { self.listener.quiet().await }
    }

    /// Ends delivery when the returned guard is dropped: no callback starts after that.
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

/// A registration that ends when this is dropped.
#[must_use = "dropping a RegistrationGuard removes the handler: give it a name other than `_`"]
#[derive(Debug)]
pub struct RegistrationGuard {
    registration: Registration,
    armed: bool,
}

impl RegistrationGuard {
    /// Leaves the handler in place after all.
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
