//! One run: the server, the replicas of a controller, and their faults.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Snapshot};
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::faults::DOWN_MAX;
use super::network::Network;
use super::panics;
use super::parents;
use super::replica::{Ending, Replica};
use super::settings::{Kinship, Settings};
use super::world::{SECOND, World};

pub(crate) struct Run {
    seed: u64,
    pub(crate) rng: fastrand::Rng,
    pub(crate) server: ApiServer,
    pub(crate) network: Network,
    pub(crate) world: Arc<World>,
    pub(crate) replicas: Vec<Replica>,
    instances: usize,
    pub(crate) snapshots: Vec<Snapshot>,
    faults_seen: usize,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let tail = if super::setting("CONTROLLER_MODEL_SEED").is_some() { 2000 } else { 40 };
            let log = self.world.log();
            for line in &log[log.len().saturating_sub(tail)..] {
                eprintln!("{line}");
            }
            eprintln!("{:?}", self.world.settings);
            eprintln!(
                "CONTROLLER_MODEL_SEED={} cargo test -p kube-informer --test controller_model shows \
                 this again, with the whole script",
                self.seed
            );
        }
    }
}

impl Run {
    pub(crate) fn new(seed: u64, settings: Settings) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut server = ApiServer::builder()
            .seed(rng.u64(..))
            .starting_at("2025-01-01T00:00:00Z".parse().expect("it is a time"))
            .token("t");
        if rng.u8(..3) == 0 {
            server = server.history_window(SECOND * rng.u32(20..200));
        }
        let server = server.build();
        let network = Network::to(&server);
        let world = Arc::new(World::new(server.clone(), settings, rng.u64(..)));
        let replicas = 0..settings.replicas;
        let replicas = replicas.map(|number| Replica::new(number, &world, &network)).collect();
        Self {
            seed,
            rng,
            server,
            network,
            world,
            replicas,
            instances: 0,
            snapshots: Vec::new(),
            faults_seen: 0,
        }
    }

    pub(crate) async fn go_on(&mut self) {
        let (before, steps) = (self.rng.u32(..10), self.rng.u32(10..40));
        for _ in 0..before {
            self.write_parent();
        }
        if self.world.settings.restores {
            self.snapshots.push(self.server.store().snapshot());
        }
        for _ in 0..steps {
            self.step().await;
        }
    }

    async fn step(&mut self) {
        let settings = self.world.settings;
        match self.rng.u32(..100) {
            0..32 => {
                for _ in 0..self.rng.u32(1..4) {
                    self.write_parent();
                }
            }
            32..47 => {
                let did = parents::meddle(&mut self.rng, &self.server);
                self.world.note(did);
            }
            47..58 => self.let_time_pass().await,
            58..77 => self.inject(),
            77..82 => self.disturb(),
            82..85 if settings.kinship == Kinship::Owner => parents::collect_garbage(&self.server),
            85..91 => self.end_one().await,
            91..94 => self.quiet().await,
            94..96 if settings.restores => self.snapshots.push(self.server.store().snapshot()),
            96..98 if settings.restores => self.restore().await,
            94..98 if settings.elects => self.fail_leases(),
            _ => {}
        }
        match self.rng.u8(..4) {
            0 => {}
            1 => tokio::task::yield_now().await,
            2 => sleep(SECOND / 1000).await,
            _ => sleep(Duration::from_millis(self.rng.u64(1..500))).await,
        }
        self.supervise().await;
        self.check();
    }

    fn write_parent(&mut self) {
        let requeues = self.world.settings.requeues;
        let did = parents::write(&mut self.rng, &self.server, requeues);
        self.world.note(did);
    }

    async fn let_time_pass(&mut self) {
        let range = [1..1_000, 1_000..30_000, 30_000..120_000];
        let range = range[[0, 0, 1, 1, 2][self.rng.usize(..5)]].clone();
        let milliseconds = self.rng.u64(range);
        self.world.note(format!("{milliseconds} ms pass"));
        sleep(Duration::from_millis(milliseconds)).await;
    }

    /// Ends a controller, and sometimes its process.
    async fn end_one(&mut self) {
        let at = self.rng.usize(..self.replicas.len());
        let endings =
            [Ending::Cancelled, Ending::Cancelled, Ending::Stopped, Ending::InformersStop];
        let ending = endings[self.rng.usize(..endings.len())];
        // A controller knows nothing of an earlier one's writes, which the same caches may lack.
        let with_process = self.world.settings.strict || self.rng.bool();
        self.replicas[at].end(ending, with_process).await;
    }

    /// Restarts ended controllers, sooner or later.
    async fn supervise(&mut self) {
        for at in 0..self.replicas.len() {
            self.replicas[at].supervise().await;
            if self.rng.u8(..3) == 0 {
                self.start(at);
            }
        }
    }

    pub(crate) fn start(&mut self, at: usize) {
        if !self.replicas[at].is_running() {
            self.instances += 1;
            self.replicas[at].start(self.instances, self.rng.u64(..));
        }
    }

    /// Checks the invariants of every step.
    pub(crate) fn check(&mut self) {
        let fired = self.server.faults().fired();
        for fault in &fired[self.faults_seen..] {
            self.world.note(format!("{} struck request {}", fault.name, fault.request));
        }
        self.faults_seen = fired.len();
        let violations = self.world.violations();
        assert!(violations.is_empty(), "{violations:#?}");
        assert_eq!(panics::others(), 0, "nothing but the reconciler panics");
    }

    /// Ends the run: everything is in order, and nothing is left running.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        self.quiet().await;
        for at in 0..self.replicas.len() {
            let ending = if self.rng.bool() { Ending::Cancelled } else { Ending::Stopped };
            self.replicas[at].end(ending, true).await;
        }
        // The server has a task of its own while it is down, and so has a candidate until its lease is
        // released.
        sleep(DOWN_MAX).await;
        self.check();
        let tasks = Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "tasks are left when everything has ended");
        self.world.log()
    }
}
