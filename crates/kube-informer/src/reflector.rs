//! Mirrors what a `ListWatch` says into a store. The informer drives one; it works alone too.

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

/// The methods by which builders are told how to ask a server, and how to wait for it.
macro_rules! settings {
    ($self:ident => $settings:expr) => {
        /// Objects per page of a LIST. Without this, 500 where the server has to read its storage, and
        /// no pages where it can answer from its cache.
        pub fn page_size(mut $self, objects: u32) -> Self {
            $settings.set_page_size(objects);
            $self
        }

        /// Whether to ask the server to stream lists (client-go's `WatchList`). On by default; a server
        /// that cannot is noticed and listed.
        pub fn streaming_lists(mut $self, streaming: bool) -> Self {
            $settings.streaming = streaming;
            $self
        }

        /// How long a watch lasts before the server ends it: this, and up to as much again at random, so
        /// that watches spread over servers. Five minutes by default, at least one second.
        pub fn watch_timeout(mut $self, least: Duration) -> Self {
            $settings.set_watch_timeout(least);
            $self
        }

        /// The pauses between retries: the first, which doubles with each consecutive failure, and the
        /// longest. Up to as much again is added at random. 0.8 and 30 seconds by default.
        pub fn backoff(mut $self, first: Duration, max: Duration) -> Self {
            $settings.delays = $crate::reflector::Delays::new(first, max);
            $self
        }
    };
}
pub(crate) use settings;

/// List, then watch, for ever; every error is retried, reported and never ends it.
///
/// It lists from the server's cache first, then watches from there over one connection. Watches
/// that end, break or fall silent are resumed from the last version. Only if that cannot be had
/// any more is everything listed again, never from an older state than was seen. If watches keep
/// failing where lists work, it polls.
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

/// The content that an earlier run knew, if there is any.
type Load = BoxFuture<'static, Result<Option<Beginning>>>;

impl<S: ReflectorStore> Reflector<S> {
    /// A reflector with the default options.
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

    /// Calls this with every error, and with what is done about it.
    pub fn on_error(self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe::OnError(report)))
    }

    /// Calls this with every change of state.
    pub fn on_state(self, report: impl Fn(State) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe::OnState(report)))
    }

    pub(crate) fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.options.observers.push(observer);
        self
    }

    /// Seeds its randomness (jitter, watch timeouts): the same seed, the same run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Begins with this in place of a list. If it fails, or there is nothing, everything is listed.
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

    /// Runs until `stop` is ready, then returns the store.
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
