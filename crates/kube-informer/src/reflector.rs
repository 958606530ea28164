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

use crate::{ErrorReport, ListWatch, State};

pub(crate) use observe::Observer;
pub(crate) use state::SILENCE_MAX;
pub use store::ReflectorStore;

/// List, then watch, for ever; every error is retried, reported and never ends it.
///
/// It lists from the server's cache first, then watches on from there over one connection. Watches
/// that end, break or fall silent are resumed from the last version; only where that cannot be had
/// any more is everything listed again, never from an older state than was seen.
#[must_use = "does nothing until run"]
pub struct Reflector<S> {
    list_watch: Arc<dyn ListWatch>,
    store: S,
    options: Options,
}

/// What a reflector may be told.
#[derive(Default)]
pub(crate) struct Options {
    page_objects: Option<u32>,
    seed: Option<u64>,
    observers: Vec<Arc<dyn Observer>>,
}

impl<S: ReflectorStore> Reflector<S> {
    /// A reflector with the default options.
    pub fn new(list_watch: impl ListWatch, store: S) -> Self {
        Self::shared(Arc::new(list_watch), store)
    }

    pub(crate) fn shared(list_watch: Arc<dyn ListWatch>, store: S) -> Self {
        Self { list_watch, store, options: Options::default() }
    }

    /// Objects per page of a LIST. Without this, 500 where the server has to read its storage, and
    /// no pages where it can answer from its cache.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.options.page_objects = Some(objects).filter(|objects| *objects > 0);
        self
    }

    /// Told of every error, and of what is done about it.
    pub fn on_error(self, report: impl Fn(&ErrorReport) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe::OnError(report)))
    }

    /// Told of every change of state.
    pub fn on_state(self, report: impl Fn(State) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(observe::OnState(report)))
    }

    pub(crate) fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.options.observers.push(observer);
        self
    }

    /// Where its randomness (jitter, watch timeouts) comes from: the same seed, the same run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Runs until `stop` is ready; gives the store back.
    pub async fn run_until(mut self, stop: impl Future + Send) -> S {
        let driver = run::Driver::new(&*self.list_watch, &mut self.store, &self.options);
        tokio::select! {
            biased;
            _ = stop => {}
            () = driver.run() => {}
        }
        self.store
    }
}

impl<S> std::fmt::Debug for Reflector<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("name", &self.list_watch.name()).finish_non_exhaustive()
    }
}
