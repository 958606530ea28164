//! Mirrors a `ListWatch` into a store. Informers are built on it; it also works alone.

mod backoff;
mod gather;
mod observe;
mod phase;
mod run;
mod state;
mod store;
mod table;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;

use crate::snapshot::Beginning;
use crate::{ErrorReport, ListWatch, Result, State};

pub(crate) use backoff::Delays;
pub(crate) use observe::Observer;
pub(crate) use state::{SILENCE_MAX, Settings};
pub use store::ReflectorStore;

/// Builder methods about requests to a server and pauses between them.
macro_rules! settings {
    ($self:ident => $settings:expr) => {
        /// Sets the number of objects per page of a LIST. By default, 500 if the server has to read its
        /// storage, and no pages if it can answer from its cache.
        pub fn page_size(mut $self, objects: u32) -> Self {
            $settings.set_page_size(objects);
            $self
        }

        /// Sets whether to request streaming lists (client-go's `WatchList`). On by default; the informer falls
        /// back to plain lists if the server does not support them.
        pub fn streaming_lists(mut $self, streaming: bool) -> Self {
            $settings.streaming = streaming;
            $self
        }

        /// Sets how long a watch lasts before the server ends it: this, plus up to as much again at random, so
        /// that watches spread over servers. Five minutes by default, at least one second.
        pub fn watch_timeout(mut $self, least: Duration) -> Self {
            $settings.set_watch_timeout(least);
            $self
        }

        /// Sets the pauses between retries: the first, which doubles with each consecutive failure, and the
        /// longest. Up to as much again is added at random. 0.8 and 30 seconds by default.
        pub fn backoff(mut $self, first: Duration, max: Duration) -> Self {
            $settings.delays = $crate::reflector::Delays::new(first, max);
            $self
        }
    };
}
pub(crate) use settings;

/// Lists, then watches, indefinitely. Every error is reported and retried; none ends the reflector.
///
/// It lists from the server's cache first, and watches from there over one connection. Watches that
/// end, break or fall silent are resumed from the last version. Only if that version has expired
/// does the reflector relist, and never from an older state than it has already seen. If watches
/// keep failing while lists work, it polls.
#[must_use = "does nothing until run"]
pub struct Reflector<S> {
    list_watch: Arc<dyn ListWatch>,
    store: S,
    options: Options,
    load: Option<Load>,
}

#[derive(Default)]
pub(crate) struct Options {
    settings: Settings,
    seed: Option<u64>,
    observers: Vec<Arc<dyn Observer>>,
}

/// The content of an earlier run, if there is any.
type Load = BoxFuture<'static, Result<Option<Beginning>>>;

impl<S: ReflectorStore> Reflector<S> {
    /// Creates a reflector with the default options.
    pub fn new(list_watch: impl ListWatch, store: S) -> Self {
        Self::shared(Arc::new(list_watch), store)
    }

    pub(crate) fn shared(list_watch: Arc<dyn ListWatch>, store: S) -> Self {
        Self { list_watch, store, options: Options::default(), load: None }
    }

    settings!(self => self.options.settings);

    pub(crate) fn settings(mut self, settings: Settings) -> Self {
        self.options.settings = settings;
        self
    }

    /// Calls a function with every error, and with the reflector's reaction to it.
    pub fn on_error(self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe::OnError(report)))
    }

    /// Calls a function with every change of state.
    pub fn on_state(self, report: impl Fn(State) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe::OnState(report)))
    }

    pub(crate) fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.options.observers.push(observer);
        self
    }

    /// Seeds the reflector's randomness (jitter, watch timeouts), to make runs reproducible.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Starts from this content instead of a list. If loading fails, or there is none, everything
    /// is listed.
    pub(crate) fn begin_with(
        mut self,
        load: impl Future<Output = Result<Option<Beginning>>> + Send + 'static,
    ) -> Self {
        self.load = Some(Box::pin(load));
        self
    }

    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    /// Runs until `stop` completes, then returns the store.
    pub async fn run_until(mut self, stop: impl Future + Send) -> S {
        let driver = run::Driver::new(&*self.list_watch, &mut self.store, &self.options);
        tokio::select! {
            biased;
            _ = stop => {}
            () = driver.run(self.load.take()) => {}
        }
        self.store
    }
}

impl<S> std::fmt::Debug for Reflector<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("name", &self.list_watch.name()).finish_non_exhaustive()
    }
}
