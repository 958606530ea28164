//! One run: the server, the model, informers and handlers, and the steps that affect them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Snapshot};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{KubeListWatch, SharedInformerFactory};
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::combination::Combination;
use super::faults::{self, Mood};
use super::handlers::{Handler, Log, Recorder};
use super::history::History;
use super::indexes::Checked;
use super::informers::{Errors, Informer, Setup};
use super::mirror::Mirror;
use super::network::Network;
use super::writes::Writers;

const HANDLERS_MAX: usize = 14;
/// More events than a stream queues individually.
const BURST: std::ops::Range<u32> = 1_100..1_300;

#[expect(clippy::struct_excessive_bools, reason = "each is found out by itself")]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) combination: Combination,
    pub(crate) rng: fastrand::Rng,
    pub(crate) server: ApiServer,
    pub(crate) history: History,
    pub(crate) writers: Writers,
    pub(crate) mood: Mood,
    pub(crate) network: Network,
    client: Option<kube::Client>,
    factory: Option<SharedInformerFactory>,
    pub(crate) informers: Vec<Informer>,
    pub(crate) mirror: Mirror,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) indexes: Vec<Checked>,
    pub(crate) log: Log,
    pub(crate) errors: Errors,
    handlers_made: usize,
    pub(crate) snapshots: Vec<Snapshot>,
    /// A version that the server must not reach before every informer has seen that it went back: an informer that
    /// resumed from there could not know that its cache belongs to another history.
    pub(crate) limit: Option<u64>,
    /// The history at the last quiet point.
    pub(crate) base: usize,
    /// Whether a fault was injected since the last quiet point.
    pub(crate) troubled: bool,
    /// Whether events were silently lost since then, which only a list can repair.
    pub(crate) lossy: bool,
    /// Whether objects were ever corrupted in transit.
    pub(crate) damaged: bool,
    pub(crate) faults_seen: usize,
    /// The number of watches that fell silent.
    pub(crate) silences: usize,
    /// Whether each informer has received a bookmark.
    pub(crate) bookmarks: bool,
    /// Whether the server compacts its history quickly.
    pub(crate) forgets: bool,
    /// The number of tasks before the informers were started.
    tasks: usize,
    pub(crate) trace: Vec<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let tail = if super::setting("INFORMER_MODEL_SEED").is_some() { 800 } else { 12 };
            for line in &self.trace[self.trace.len().saturating_sub(tail)..] {
                eprintln!("{line}");
            }
            let Self { seed, combination, .. } = self;
            eprintln!("seed {seed} ({combination}) failed; to see it again:");
            eprintln!("INFORMER_MODEL_SEED={seed} cargo test -p kube-informer --test model");
        }
    }
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let combination = Combination::of(seed);
        let second = Duration::from_secs(1);
        let mut server = ApiServer::builder()
            .seed(rng.u64(..))
            .starting_at("2025-01-01T00:00:00Z".parse().expect("it is a time"))
            .token("t");
        let forgets = rng.u8(..3) == 0;
        if forgets {
            server = server.history_window(second * rng.u32(20..200));
        }
        if rng.u8(..4) == 0 {
            server = server.bookmark_interval(second * rng.u32(2..60));
        }
        if rng.u8(..6) == 0 {
            server = server.watch_lag_max(rng.usize(3..30));
        }
        let server = server.build();
        let mood = Mood {
            slow: seed.is_multiple_of(3) && !is_burst(seed),
            lossy: seed % 7 == 1,
            damaged: seed % 5 == 2,
        };
        let errors = Errors::default();
        let network = Network::to(&server);
        let client = network.client();
        let factory = SharedInformerFactory::builder(client.clone()).seed(seed).build();
        let setup = Setup {
            rng: &mut rng,
            combination,
            client: client.clone(),
            factory: &factory,
            errors: errors.clone(),
        };
        let informers = { setup }.informers(is_of_several(seed));
        let mirrored = KubeListWatch::of::<Pod>(client.clone());
        let mirrored = mirrored.protobuf(combination.protobuf(&rng));
        let mirror = Mirror::new(&mut rng, mirrored, errors.clone());
        let history = History::new(server.store().revision());
        Self {
            seed,
            combination,
            rng,
            server,
            history,
            writers: Writers::new(),
            mood,
            network,
            client: Some(client),
            factory: Some(factory),
            informers,
            mirror,
            handlers: Vec::new(),
            indexes: Vec::new(),
            log: Arc::new(Mutex::new(Vec::new())),
            errors,
            handlers_made: 0,
            snapshots: Vec::new(),
            limit: None,
            base: 0,
            troubled: false,
            lossy: false,
            damaged: false,
            faults_seen: 0,
            silences: 0,
            bookmarks: false,
            forgets,
            tasks: Handle::current().metrics().num_alive_tasks(),
            trace: Vec::new(),
        }
    }

    /// Runs everything after the start.
    pub(crate) async fn go_on(&mut self) {
        let (first, second) = (self.rng.u32(10..30), self.rng.u32(10..30));
        for _ in 0..first {
            self.step().await;
        }
        if is_burst(self.seed) {
            self.burst().await;
        }
        if self.rng.u8(..3) == 0 {
            self.episode().await;
        }
        for _ in 0..second {
            self.step().await;
        }
    }

    pub(crate) fn note(&mut self, line: impl AsRef<str>) {
        let (epoch, top) = (self.history.current(), self.history.top());
        let line = format!("{epoch}/{top} {}", line.as_ref());
        self.trace.push(line);
    }

    /// Creates some objects, or none, and starts the informers.
    pub(crate) async fn start(&mut self) {
        let (writes, handlers) = (self.rng.u32(..30), self.rng.usize(..5));
        self.write(writes).await;
        for _ in 0..handlers {
            self.join(None);
        }
        if self.rng.u8(..4) == 0 {
            self.inject();
        }
        if self.rng.bool() {
            self.snapshots.push(self.server.store().snapshot());
        }
        self.note(format!("start with {}", self.combination));
        self.factory.as_ref().expect("it runs").start();
        self.informers.iter().for_each(|informer| informer.handle.start());
        self.mirror.start();
    }

    async fn step(&mut self) {
        match self.rng.u32(..100) {
            0..38 => {
                let count = self.rng.u32(1..7);
                self.write(count).await;
            }
            38..40 => self.drop_index(),
            40..52 => self.let_time_pass().await,
            52..60 => self.join(None),
            60..66 => self.leave().await,
            66..70 => {
                let steps = self.rng.u32(1..15);
                self.handlers.iter_mut().for_each(|handler| handler.pause(steps));
            }
            70..74 => self.add_index(),
            74..87 => self.inject(),
            87..89 => self.disturb(),
            89..90 => self.let_the_store_refuse(),
            90..93 => self.snapshots.push(self.server.store().snapshot()),
            93..96 => self.restore().await,
            96..98 => self.quiet().await,
            _ => self.forbid_or_allow(),
        }
        match self.rng.u8(..4) {
            0 => {}
            1 => tokio::task::yield_now().await,
            _ => self.settle().await,
        }
        self.poll_streams(false).await;
        self.check();
        if self.rng.u8(..4) == 0 {
            self.check_indexes();
        }
    }

    /// Lets everything happen that takes no time.
    pub(crate) async fn settle(&mut self) {
        sleep(Duration::from_millis(1)).await;
    }

    pub(crate) async fn poll_streams(&mut self, always: bool) {
        for handler in &mut self.handlers {
            handler.poll(always).await;
        }
    }

    pub(crate) async fn write(&mut self, count: u32) {
        for _ in 0..count {
            // One step can take three versions.
            if self.limit.is_some_and(|limit| self.history.top() + 3 >= limit) {
                return;
            }
            let did = self.writers.write(&mut self.rng, &self.server, &mut self.history);
            self.note(did);
            if self.rng.u8(..4) == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Writes more events than are queued individually for a stream that is not polled.
    async fn burst(&mut self) {
        for _ in 0..2 {
            self.join(Some(3));
        }
        self.handlers.iter_mut().for_each(|handler| handler.pause(5));
        let count = self.rng.u32(BURST);
        self.note(format!("a burst of {count}"));
        for _ in 0..count / 16 {
            self.write(16).await;
            tokio::task::yield_now().await;
        }
    }

    async fn let_time_pass(&mut self) {
        let range = [1..1_000, 1_000..30_000, 30_000..120_000, 120_000..700_000];
        let range = range[[0, 0, 1, 1, 2, 3][self.rng.usize(..6)]].clone();
        let milliseconds = self.rng.u64(range);
        self.note(format!("{milliseconds} ms pass"));
        sleep(Duration::from_millis(milliseconds)).await;
    }

    fn join(&mut self, style: Option<u8>) {
        if self.handlers.len() >= HANDLERS_MAX {
            return;
        }
        self.handlers_made += 1;
        let at = self.rng.usize(..self.informers.len());
        let Informer { handle, probe, .. } = &self.informers[at];
        let (log, probe) = (self.log.clone(), probe.clone());
        let recorder = Recorder { id: self.handlers_made, log, probe };
        let handler = Handler::join(&mut self.rng, at, handle, recorder, style);
        self.note(handler.describe());
        self.handlers.push(handler);
    }

    async fn leave(&mut self) {
        if self.handlers.is_empty() {
            return;
        }
        // Checks its events while it is still registered.
        self.check();
        let handler = self.handlers.swap_remove(self.rng.usize(..self.handlers.len()));
        self.note(format!("handler {} leaves", handler.id));
        handler.leave().await;
    }

    /// Ends the run: checks that everything has converged, and that nothing is left running.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        if self.mirror.has_missed_something() {
            // Only a list repairs what the store refused.
            self.lossy = true;
        }
        self.quiet().await;
        self.check_resyncs().await;
        self.check_encoding();
        // While it is down, the server has a task of its own.
        sleep(faults::DOWN_MAX).await;
        self.mirror.stop();
        if self.rng.u8(..3) > 0 {
            self.factory.as_ref().expect("it runs").shutdown().await;
            for informer in &self.informers {
                informer.handle.shutdown().await;
                assert!(informer.handle.is_stopped() && !informer.handle.is_live());
            }
            self.settle().await;
            let tasks = Handle::current().metrics().num_alive_tasks();
            assert_eq!(tasks, self.tasks, "L5: tasks are left after a shutdown");
        }
        self.drop_everything().await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "L5: tasks are left when nobody is left who could notice");
        std::mem::take(&mut self.trace)
    }

    /// Checks that the combination was really used on the wire, not only requested.
    fn check_encoding(&self) {
        let Combination::Same { protobuf, .. } = self.combination else { return };
        // Informers with a transform read JSON. The reflector has none, and its lists may be streamed.
        assert_eq!(self.network.protobuf_answers() > 0, protobuf, "{}", self.combination);
    }

    async fn drop_everything(&mut self) {
        for handler in std::mem::take(&mut self.handlers) {
            handler.leave().await;
        }
        for informer in &self.informers {
            informer.probe.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.informers.clear();
        self.indexes.clear();
        self.factory = None;
        self.client = None;
        self.settle().await;
    }
}

fn is_of_several(seed: u64) -> bool {
    seed % 3 == 1
}

/// Returns whether a seed includes a burst. Few do, because it takes long.
fn is_burst(seed: u64) -> bool {
    seed % 31 == 5
}
