//! A run: the server, the model, the clients, and the open lists and watches.

use std::collections::BTreeMap;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Snapshot};
use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::history::{History, KINDS, Key, SELECTORS, Selection};
use super::reads::Paged;
use super::watches::{Fate, Watcher};
use super::wire::{Reply, Wire};

pub(crate) const NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];
const CLIENTS: usize = 5;
const WATCHES_MAX: usize = 12;
pub(crate) const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// A client with the objects that it has seen, which may be stale.
pub(crate) struct Client {
    pub(crate) wire: Wire,
    pub(crate) seen: BTreeMap<(usize, Key), Value>,
}

pub(crate) struct Run {
    seed: u64,
    pub(crate) rng: fastrand::Rng,
    pub(crate) server: ApiServer,
    pub(crate) history: History,
    pub(crate) clients: Vec<Client>,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) paged: Vec<Paged>,
    snapshot: Option<Snapshot>,
    /// `None` if history is compacted only by the run itself.
    window: Option<Duration>,
    pub(crate) lag_max: usize,
    /// The time at which each version became the latest.
    times: Vec<(Instant, u64)>,
    trace: Vec<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let tail = if super::setting("MODEL_SEED").is_some() { 40 } else { 3 };
            for line in &self.trace[self.trace.len().saturating_sub(tail)..] {
                eprintln!("{line}");
            }
            eprintln!("MODEL_SEED={} shows this again", self.seed);
        }
    }
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let window = (seed % 4 == 1).then_some(Duration::from_secs(90));
        let bytes = if seed % 4 == 2 { 20_000 } else { usize::MAX };
        let lag_max = if seed % 4 == 3 { 15 } else { 100_000 };
        let server = ApiServer::builder()
            .seed(rng.u64(..))
            .starting_at("2025-01-01T00:00:00Z".parse().expect("it is a time"))
            .token("t")
            .bookmark_interval(BOOKMARK_INTERVAL)
            .history_window(window.unwrap_or(Duration::from_secs(1 << 40)))
            .history_bytes_max(bytes)
            .watch_lag_max(lag_max)
            .build();
        let history = History { revision: server.store().revision(), ..History::default() };
        let times = vec![(Instant::now(), history.revision)];
        let clients = (0..CLIENTS)
            .map(|n| Client { wire: Wire::new(&server, &format!("c{n}")), seen: BTreeMap::new() })
            .collect();
        Self {
            seed,
            rng,
            server,
            history,
            clients,
            watchers: Vec::new(),
            paged: Vec::new(),
            snapshot: None,
            window: window.filter(|_| bytes == usize::MAX),
            lag_max,
            times,
            trace: Vec::new(),
        }
    }

    pub(crate) async fn step(&mut self) {
        match self.rng.u32(..1000) {
            0 => self.burst().await,
            1..480 => self.write().await,
            480..600 => self.list().await,
            600..680 => self.next_page().await,
            680..740 if self.watchers.len() < WATCHES_MAX => self.open_watch().await,
            680..930 => self.read_some_watch(),
            930..955 => self.compact(),
            955..985 => self.let_time_pass().await,
            985..990 => self.end_all(Fate::Broken),
            990..995 => self.end_all(Fate::Ended),
            995..998 => {
                self.note(|| "snapshot".to_owned());
                self.snapshot = Some(self.server.store().snapshot());
            }
            _ => self.restore(),
        }
        self.agree();
    }

    /// Checks the invariants after every step.
    fn agree(&mut self) {
        let store = self.server.store();
        assert_eq!(store.revision(), self.history.revision, "every write takes one version");
        let compacted = store.compacted_revision();
        assert!(compacted >= self.history.compacted && compacted <= self.history.revision);
        if let Some(window) = self.window {
            self.times.push((Instant::now(), self.history.revision));
            // Only versions that were superseded more than a window ago may have been compacted
            // automatically.
            let old = self.times.iter().rev().find(|(at, _)| at.elapsed() >= window);
            let max = self.history.compacted.max(old.map_or(0, |(_, version)| *version));
            assert!(compacted <= max, "{compacted} is too young to be forgotten");
        } else if self.seed % 4 != 2 {
            assert_eq!(compacted, self.history.compacted, "nobody asked for it");
        }
        self.history.compacted = compacted;
    }

    /// Ends the run: every watch delivers its remaining events.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        while !self.watchers.is_empty() {
            let mut watcher = self.watchers.swap_remove(0);
            watcher.read(&mut self, usize::MAX);
        }
        for kind in 0..KINDS.len() {
            self.list_newest(&Selection { kind, namespace: None, selector: 0 }).await;
        }
        let requests = self.server.requests();
        let deliveries = self.server.deliveries();
        self.trace.extend(requests.iter().map(|request| format!("{request:?}")));
        self.trace.extend(deliveries.iter().map(|delivery| format!("{delivery:?}")));
        std::mem::take(&mut self.trace)
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{} {}", self.history.revision, line());
        self.trace.push(line);
    }

    /// Sends a request as one of the clients.
    pub(crate) async fn send(
        &mut self,
        client: usize,
        method: Method,
        uri: &str,
        body: &Value,
    ) -> Reply {
        let reply = self.clients[client].wire.send(method.clone(), uri, body).await;
        self.note(|| format!("{client} {method} {uri} {body} -> {} {}", reply.code, reply.body));
        if reply.code >= 400 {
            assert_eq!(reply.body["kind"], "Status", "{uri}");
            assert_eq!(reply.body["code"], reply.code, "{uri}");
        }
        reply
    }

    pub(crate) fn any_client(&mut self) -> usize {
        self.rng.usize(..self.clients.len())
    }

    pub(crate) fn any_selection(&mut self) -> Selection {
        let kind = self.rng.usize(..KINDS.len());
        let namespace = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        let namespace = Some(namespace).filter(|_| KINDS[kind].namespaced && self.rng.bool());
        // The last selector is for a field that only namespaced kinds have.
        let selectors = SELECTORS.len() - usize::from(!KINDS[kind].namespaced);
        let selector = if self.rng.bool() { 0 } else { self.rng.usize(..selectors) };
        Selection { kind, namespace, selector }
    }

    /// Returns a version that was once the latest, and most often is not compacted.
    pub(crate) fn any_version(&mut self) -> u64 {
        let oldest = if self.rng.u8(..8) == 0 { 1 } else { self.history.compacted.max(1) };
        self.rng.u64(oldest..=self.history.revision)
    }

    fn compact(&mut self) {
        let version = match self.rng.u8(..4) {
            0 => self.history.revision + self.rng.u64(..3),
            _ => self.any_version(),
        };
        self.note(|| format!("compact {version}"));
        self.server.store().compact(version);
        let version = version.min(self.history.revision);
        self.history.compacted = self.history.compacted.max(version);
    }

    async fn let_time_pass(&mut self) {
        let seconds = [1, 7, 30, 59, 61, 100][self.rng.usize(..6)];
        self.note(|| format!("{seconds} seconds pass"));
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn end_all(&mut self, fate: Fate) {
        self.note(|| format!("all watches are {fate:?}"));
        match fate {
            Fate::Broken => self.server.restart(),
            _ => self.server.drop_watches(),
        }
        for watcher in &mut self.watchers {
            watcher.suffer(fate);
        }
    }

    /// Reverts to an earlier state, like a cluster that is restored from a backup.
    fn restore(&mut self) {
        let Some(snapshot) = self.snapshot.clone() else { return };
        self.note(|| format!("restore {}", snapshot.revision()));
        self.server.restore(&snapshot);
        for watcher in &mut self.watchers {
            watcher.suffer(Fate::Broken);
        }
        self.history.restore(snapshot.revision());
        self.times.clear();
        self.times.push((Instant::now(), 0));
        // Clients' objects may be of the other history, in which a version means another state.
        for client in &mut self.clients {
            client.seen.clear();
        }
        self.paged.clear();
    }
}
