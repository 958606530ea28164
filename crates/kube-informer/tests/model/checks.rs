//! Checks that hold at every step, and checks that hold once faults have stopped.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use tokio::time::{Instant, sleep, timeout};

use super::fold::What;
use super::handlers::{Entry, Handler};
use super::history::Told;
use super::indexes::check_namespaces;
use super::informers::Informer;
use super::relabel::{check_labels, labels_of_body};
use super::run::Run;

/// The time within which everything must have converged (L1). The longest path: a dead watch is detected after 75 s
/// of silence; the server answers the next one with a 410 or the like, and the list waits for up to a minute; its
/// stream has lost its end, which is detected after 30 s; the list that replaces it may be met by silence for 75 s;
/// and before all of that come a minute of backoff or 20 s of `Retry-After`, and a response that is 40 s late.
const CONVERGE_MAX: Duration = Duration::from_secs(75 + 60 + 30 + 75 + 60 + 40);

/// If watches fall silent twice before the first bookmark, the server is assumed to send none, and a watch may be
/// silent until the server would have ended it: for 10 minutes and 75 s instead of 75 s.
const WITHOUT_BOOKMARKS: Duration = Duration::from_secs(600);

/// The time within which the version reaches the server's, too: a watch may be dead without a sign while nothing
/// changes; on any other, a bookmark arrives within a minute.
const BOOKMARK_MAX: Duration = Duration::from_secs(65);

impl Run {
    /// Checks everything that holds at every step.
    pub(crate) fn check(&mut self) {
        self.digest_faults();
        let errors = std::mem::take(&mut *self.errors.lock().expect("nobody panics with it"));
        for error in errors {
            self.note(error);
        }
        for at in 0..self.informers.len() {
            if let Some(state) = self.informers[at].new_state().map(str::to_owned) {
                let version = self.informers[at].version();
                self.note(format!("informer {at} is {state} at {version:?}"));
            }
        }
        self.fold();
        self.lossy |= self.informers.iter().any(Informer::has_nameless_failures);
        self.lossy |= self.mirror.has_nameless_failures();
        if self.lossy {
            return;
        }
        for informer in &mut self.informers {
            if let Err(why) = informer.check_honesty(&self.history) {
                panic!("{}: {why}", informer.handle.name());
            }
        }
        if let Err(why) = self.mirror.check_honesty(&self.history) {
            panic!("the mirror: {why}");
        }
    }

    /// Records faults that have consequences beyond a retry.
    fn digest_faults(&mut self) {
        let fired = self.server.faults().fired();
        for fault in &fired[self.faults_seen..] {
            match fault.name {
                "drop-event" | "reorder-events" => self.lossy = true,
                "half-open" | "stalled-body" | "bookmark-lost" => self.silences += 1,
                "wrong-type" | "oversized" | "too-deep" | "malformed-utf8" => self.damaged = true,
                "stale-list" => {
                    let requests = self.server.requests();
                    let request = requests.iter().find(|request| request.id == fault.request);
                    if request.is_some_and(|request| !request.uri.contains("resourceVersion=")) {
                        // The server answered a request for the most recent state with an old one. This cannot be
                        // told apart from a restore.
                        let top = self.history.top();
                        self.history.branch(top);
                    }
                }
                _ => {}
            }
            self.trace.push(format!("{} struck request {}", fault.name, fault.request));
        }
        self.faults_seen = fired.len();
    }

    /// Folds the events that handlers have received since the last call.
    fn fold(&mut self) {
        let entries = std::mem::take(&mut *self.log.lock().expect("nobody panics with it"));
        for entry in entries {
            let Entry { handler: id, what, cached, version } = entry;
            self.trace.push(format!("{id}: {what} (cached {cached:?} at {version})"));
            let handler = self.handlers.iter_mut().find(|handler| handler.id == id);
            let Some(handler) = handler else { panic!("I13: handler {id} has left") };
            let informer = &self.informers[handler.informer];
            let Informer { scope, relisted, .. } = informer;
            if let Err(why) = handler.fold.take(&self.history, scope, self.base, &what) {
                panic!("handler {id}: {what}: {why}");
            }
            let repeats = matches!(&what, What::Updated { old, new } if old == new);
            assert!(
                !repeats || handler.wants.resync || relisted.load(SeqCst),
                "handler {id}: {what}: neither a relist nor a resync repeated it"
            );
            // Versions of two histories cannot be compared. After lost or reordered events, an object may have
            // disappeared and returned in the same state.
            let comparable = self.history.current() == self.base && !self.lossy;
            let version = if informer.is_in_parts() { u64::MAX } else { version };
            assert!(
                !comparable || is_cached(&what, cached, version, handler.wants.filtered),
                "I9: handler {id}: {what}, but the cache at {version} has {cached:?}"
            );
        }
    }

    pub(crate) fn check_indexes(&self) {
        for index in &self.indexes {
            index.check(&self.informers);
        }
        self.check_names();
        self.informers.iter().for_each(check_namespaces);
        self.informers.iter().for_each(check_labels);
    }

    /// Stops all faults, and checks that everything converges in bounded time.
    pub(crate) async fn quiet(&mut self) {
        self.note("quiet");
        self.server.faults().clear();
        self.server.accept_connections();
        self.server.access().allow_everything();
        self.mirror.refuse(0, 0);
        let began = Instant::now();
        self.let_restores_be_noticed(began).await;
        self.settle().await;
        self.check();
        if self.lossy {
            self.force_lists();
        }
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            sleep(pause).await;
            self.poll_streams(true).await;
            self.settle().await;
            self.check();
            match self.converged() {
                Ok(()) => break,
                Err(why) => {
                    let waited = began.elapsed();
                    assert!(waited < self.converge_max(), "L1: after {waited:?}: {why}");
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
            }
        }
        self.lossy = false;
        self.note(format!("converged after {:?}", began.elapsed()));
        let merged: u64 = self.handlers.iter().map(|handler| handler.registration().merged()).sum();
        if merged > 0 {
            self.note(format!("{merged} events were merged"));
        }
        self.check_at_rest().await;
    }

    pub(crate) fn converge_max(&self) -> Duration {
        let patient = self.silences >= 2 && !self.bookmarks;
        CONVERGE_MAX + if patient { WITHOUT_BOOKMARKS } else { Duration::ZERO }
    }

    async fn check_at_rest(&mut self) {
        self.check_indexes();
        for informer in &mut self.informers {
            informer.check_bodies(&self.history, self.damaged);
        }
        self.let_versions_come().await;
        // Some may be dead without having been detected yet.
        let (open, expected) = (self.server.watches(), self.watches());
        assert!(open <= expected, "{open} watches are open, not {expected}");
        self.settle().await;
        self.poll_streams(true).await;
        self.check();
        self.base = self.history.current();
        let base = self.base;
        self.informers.iter_mut().for_each(|informer| informer.forget_before(base));
        self.mirror.forget_before(base);
        self.troubled = false;
        for informer in &self.informers {
            informer.relisted.store(false, SeqCst);
        }
    }

    /// I7: waits until the caches include everything that was written.
    pub(crate) async fn let_versions_come(&mut self) {
        let top = self.history.top();
        for informer in &self.informers {
            let limit = self.converge_max() + BOOKMARK_MAX;
            let waited = timeout(limit, informer.handle.wait_for_version(top)).await;
            let name = informer.handle.name();
            assert!(matches!(waited, Ok(Ok(()))), "L1: {name} does not come to {top}: {waited:?}");
        }
        let began = Instant::now();
        while self.mirror.last_seen() != Some(top) {
            let limit = self.converge_max() + BOOKMARK_MAX;
            assert!(began.elapsed() < limit, "L1: the mirror does not come to {top}");
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns the number of watches: one per informer and namespace, and one for the mirror.
    pub(crate) fn watches(&self) -> usize {
        let parts = self.informers.iter().map(|informer| informer.scope.namespaces.len().max(1));
        parts.sum::<usize>() + 1
    }

    /// Makes informers notice a restore. A watch from a version that the server has not reached receives nothing
    /// wrong, so something has to end it and make its informer list.
    async fn let_restores_be_noticed(&mut self, began: Instant) {
        while self.limit.is_some() {
            let top = self.history.top();
            let is_ahead = |informer: &&Informer| informer.version().is_some_and(|v| v > top);
            let mirror_is_ahead = self.mirror.last_seen().is_some_and(|v| v > top);
            if self.informers.iter().all(|informer| informer.handle.is_live())
                && self.mirror.is_watching()
                && self.versions().all(|version| version <= top)
            {
                self.limit = None;
                self.note("a restore is noticed");
                return;
            }
            let watches = self.server.watches() as u64;
            let gone = self.server.faults().on(Verb::Watch).after_events(0).times(watches);
            let ahead = self.informers.iter().filter(is_ahead).any(Informer::is_watching)
                || mirror_is_ahead && self.mirror.is_watching();
            if watches > 0 && ahead {
                gone.inject(Fault::Gone);
            }
            self.settle().await;
            self.server.faults().clear();
            sleep(Duration::from_secs(5)).await;
            self.check();
            assert!(began.elapsed() < self.converge_max(), "I21: a restore was not noticed");
        }
    }

    /// Expires every watch, so that a list repairs lost events.
    fn force_lists(&mut self) {
        self.note("force lists");
        self.writers.nudge(&self.server, &mut self.history);
        self.server.store().compact(self.history.top());
        self.server.restart();
    }

    fn converged(&self) -> Result<(), String> {
        for informer in &self.informers {
            informer.check_convergence(&self.history)?;
        }
        if !self.mirror.is_watching() {
            return Err("the mirror does not watch".into());
        }
        self.mirror.check_content(&self.history)?;
        self.handlers.iter().try_for_each(|handler| self.has_caught_up(handler))
    }

    /// I11, I12: checks that folding the handler's events yields the cache.
    fn has_caught_up(&self, handler: &Handler) -> Result<(), String> {
        let id = handler.id;
        if !handler.fold.synced || !handler.registration().has_synced() {
            return Err(format!("I12: handler {id} is not synced"));
        }
        let list = self.informers[handler.informer].handle.lister().list();
        let passes = |object: &&kube_informer::Object| {
            let Some(filter) = handler.filter else { return true };
            // The filter saw the labels of the header.
            let labels = labels_of_body(object);
            filter.passes(object.name(), labels.get("app").map(String::as_str))
        };
        let cache = list.iter().filter(passes).map(Told::of);
        let cache: BTreeMap<_, _> = cache.map(|told| (told.key.clone(), told)).collect();
        if cache != handler.fold.view {
            return Err(format!(
                "I11: handler {id} believes {:?}, the cache is {cache:?}",
                handler.fold.view
            ));
        }
        Ok(())
    }

    /// I17: checks that handlers with a period are resynced, with every object, when it has elapsed.
    pub(crate) async fn check_resyncs(&mut self) {
        let before: Vec<_> = self.handlers.iter().map(|handler| handler.fold.repeated).collect();
        let wait = self.handlers.iter().filter_map(|handler| handler.resync).max();
        sleep(wait.unwrap_or_default() + Duration::from_secs(2)).await;
        self.poll_streams(true).await;
        self.check();
        for (handler, before) in self.handlers.iter().zip(before) {
            let due = handler.resync.is_some() && !handler.wants.only_changes;
            let repeated = handler.fold.repeated - before;
            let all = handler.fold.view.len();
            assert!(!due || repeated >= all, "I17: handler {} got no resync", handler.id);
        }
    }
}

/// I9: returns whether the cache is at least as new as an event.
fn is_cached(what: &What, cached: Option<u64>, version: u64, filtered: bool) -> bool {
    let Some(told) = what.told() else { return true };
    if matches!(what, What::Deleted { .. }) {
        // An object that no longer passes the filter is still cached.
        return filtered || version >= told.version && cached.is_none_or(|at| at > told.version);
    }
    match cached {
        Some(at) => at >= told.version && version >= told.version,
        None => version > told.version,
    }
}
