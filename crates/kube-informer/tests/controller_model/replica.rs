//! A process that runs the controller repeatedly.

use std::collections::BTreeSet;
use std::sync::Arc;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::controller::{ControllerHandle, ControllerStatus, Phase};
use kube_informer::workqueue::ItemExponential;
use kube_informer::{
    Controller, LeaderElector, NotSynced, SharedInformer, SharedInformerFactory, Untyped,
};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::keeper::Keeper;
use super::network::Network;
use super::settings::Kinship;
use super::world::{NAMESPACE, PARENT, SECOND, World};

/// Limits for running reconciles to finish, and for the release of a lease.
const STOP_MAX: [u32; 2] = [5, 11];

/// One of the replicas of a program.
pub(crate) struct Replica {
    number: usize,
    world: Arc<World>,
    network: Network,
    pub(crate) process: Option<Process>,
    controller: Option<Instance>,
}

/// The parts of a process that outlive a controller.
pub(crate) struct Process {
    client: kube::Client,
    factory: SharedInformerFactory,
    pub(crate) parents: SharedInformer<ConfigMap>,
    pub(crate) children: SharedInformer<Secret>,
    elector: Option<LeaderElector>,
}

/// A running controller.
struct Instance {
    id: usize,
    handle: ControllerHandle,
    task: JoinHandle<Result<(), NotSynced>>,
    terms: u64,
}

/// How a controller ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Cancelled,
    Stopped,
    InformersStop,
}

impl Replica {
    pub(crate) fn new(number: usize, world: &Arc<World>, network: &Network) -> Self {
        let (world, network) = (world.clone(), network.clone());
        Self { number, world, network, process: None, controller: None }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.controller.is_some()
    }

    pub(crate) fn status(&self) -> Option<ControllerStatus> {
        self.controller.as_ref().map(|instance| instance.handle.status())
    }

    /// Runs a controller, in a new process unless there is one. Ids of instances are unique.
    pub(crate) fn start(&mut self, id: usize, seed: u64) {
        let place = if self.process.is_some() { "on the same caches" } else { "in a new process" };
        self.world.note(format!("replica {} runs {id} {place}", self.number));
        let (world, settings) = (self.world.clone(), self.world.settings);
        let network = &self.network;
        let process = self.process.get_or_insert_with(|| Process::new(network, &world, id, seed));
        let Process { client, parents, children, elector, .. } = &*process;
        let mut controller = Controller::new(parents)
            .workers(settings.workers)
            .rate_limiter(ItemExponential::new(SECOND / 200, settings.backoff_max))
            .consistency_timeout(settings.consistency_timeout)
            .graceful_stop(SECOND * STOP_MAX[0]);
        controller = match settings.kinship {
            Kinship::Owner => controller.owns(children),
            Kinship::Label => controller.watches(children, |child| {
                child.labels().get(PARENT).map(|parent| child.key().sibling(parent))
            }),
        };
        if let Some(limit) = settings.timeout {
            controller = controller.timeout(limit);
        }
        if let Some(elector) = elector {
            controller = controller.leader_election(elector);
        }
        let handle = controller.handle();
        let terms = elector.as_ref().map_or(0, |elector| elector.status().terms);
        let keeper =
            Keeper { world, instance: id, client: client.clone(), children: children.clone() };
        let task = tokio::spawn(controller.run(keeper));
        self.controller = Some(Instance { id, handle, task, terms });
    }

    /// Handles a controller that has ended by itself, because its caches could not sync.
    pub(crate) async fn supervise(&mut self) {
        if self.controller.as_ref().is_some_and(|instance| instance.task.is_finished()) {
            let instance = self.controller.take().expect("it is there");
            self.tell(&instance);
            let ended = instance.task.await.expect("a controller does not panic");
            self.world.note(format!("{} has ended: {:?}", instance.id, shown(&ended)));
            assert!(ended.is_err(), "a controller that is not stopped does not end");
        }
    }

    /// Ends the controller and, if requested, its process.
    pub(crate) async fn end(&mut self, ending: Ending, with_process: bool) {
        self.supervise().await;
        if let Some(instance) = self.controller.take() {
            self.tell(&instance);
            let Instance { id, handle, task, .. } = instance;
            match ending {
                Ending::Cancelled => {
                    self.world.note(format!("{id} is cancelled"));
                    task.abort();
                }
                Ending::Stopped => {
                    self.world.note(format!("{id} is stopped"));
                    handle.stop();
                }
                Ending::InformersStop => {
                    self.world.note(format!("{id} is one whose informers stop"));
                    self.process.as_ref().expect("it runs in one").factory.stop();
                }
            }
            let limit = SECOND * (STOP_MAX[0] + STOP_MAX[1]);
            let ended = timeout(limit, task).await;
            let ended = ended.unwrap_or_else(|_| panic!("{id} has not ended within {limit:?}"));
            match ended {
                Ok(ended) => self.world.note(format!("{id} has ended: {:?}", shown(&ended))),
                Err(error) => assert!(error.is_cancelled(), "a controller does not panic: {error}"),
            }
            // Its tasks are dropped when they are polled next.
            sleep(SECOND / 1000).await;
            assert!(!self.world.is_active(id), "{id} reconciles after its end");
            let status = handle.status();
            // A controller that is cancelled before it was polled has not started.
            let has_ended = status.phase == Phase::Idle || status.queue.is_shut_down;
            assert!(has_ended && status.queue.running == 0, "{status:?}");
        }
        if with_process || ending == Ending::InformersStop {
            self.process = None;
        }
    }

    /// Logs the final status of a controller.
    fn tell(&self, instance: &Instance) {
        let status = instance.handle.status();
        let elector = self.process.as_ref().and_then(|process| process.elector.as_ref());
        let terms = elector.map_or(0, |elector| elector.status().terms) - instance.terms;
        for (happened, what) in [
            (status.waited_for_cache > 0, "a key waited for a cache"),
            (status.behind > 0, "a key went on with a cache that was behind"),
            (status.timed_out > 0, "a reconcile took too long"),
            (terms > 1, "leadership was lost, and won again"),
        ] {
            if happened {
                self.world.note(format!("{}: {what}", instance.id));
            }
        }
    }
}

impl Process {
    /// Checks that both caches equal the server's content.
    pub(crate) fn is_current(&self, server: &ApiServer) -> Result<(), String> {
        let Self { parents, children, .. } = self;
        let cached = [parents.clone().cast::<Untyped>(), children.clone().cast()];
        for (informer, resource) in cached.iter().zip(["configmaps", "secrets"]) {
            let objects = server.list(resource, NAMESPACE).into_iter();
            let version =
                |object: Value| object["metadata"]["resourceVersion"].as_str().map(Into::into);
            let is: BTreeSet<String> = objects.filter_map(version).collect();
            let list = informer.lister().list();
            let has = list.iter().map(|object| object.resource_version().to_string()).collect();
            if !informer.is_live() || is != has {
                return Err(format!("the cache of {resource} is behind: {}", informer.state()));
            }
        }
        Ok(())
    }

    fn new(network: &Network, world: &Arc<World>, id: usize, seed: u64) -> Self {
        let client = network.client();
        let factory = SharedInformerFactory::builder(client.clone()).seed(seed).build();
        let elector = world.settings.elects.then(|| {
            let elector = LeaderElector::builder(client.clone(), NAMESPACE, "model");
            let elector = elector.identity(format!("candidate-{id}")).seed(seed);
            elector.build().expect("the settings are valid")
        });
        let (parents, children) = (factory.informer(), factory.informer());
        Self { client, factory, parents, children, elector }
    }
}

/// The outcome without the instants in its details, which differ between runs.
fn shown(ended: &Result<(), NotSynced>) -> Result<(), String> {
    ended.as_ref().copied().map_err(ToString::to_string)
}
