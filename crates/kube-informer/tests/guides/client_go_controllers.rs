//! The controllers in the guide for users of client-go and controller-runtime.
#![expect(clippy::disallowed_names, reason = "as the sample controller calls them")]

use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResource, CustomResourceExt};
use kube_informer::controller::Predicate;
use kube_informer::leader_election::RunOutcome;
use kube_informer::workqueue::{ItemExponential, MaxOf, TokenBucket};
use kube_informer::{
    Action, BoxError, Conditions, Controller, EventType, Finalizer, LeaderElector, Lister, Object, ObjectKey,
    Reconciler, Recorder, Request, SharedInformer, SharedInformerFactory, WorkQueue, patch_status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

type Outcome = Result<(), BoxError>;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Foo", namespaced, status = "FooStatus")]
struct FooSpec {
    replicas: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct FooStatus {
    conditions: Vec<Value>,
}

/// A server with one Foo.
fn server() -> ApiServer {
    let server = ApiServer::start();
    server.create(serde_json::to_value(Foo::crd()).unwrap()).unwrap();
    server
        .create(json!({
            "apiVersion": "example.com/v1", "kind": "Foo",
            "metadata": {"namespace": "default", "name": "web"}, "spec": {"replicas": 1},
        }))
        .unwrap();
    server
}

/// The Foo as JSON.
fn foo(server: &ApiServer) -> Option<Value> {
    server.get("foos.example.com", "default", "web")
}

fn scale(server: &ApiServer, replicas: i32) {
    let mut foo = foo(server).unwrap();
    foo["spec"]["replicas"] = replicas.into();
    server.update(foo).unwrap();
}

/// Returns the replicas of its Deployment, when nothing is left to do.
async fn replicas(server: &ApiServer) -> Value {
    sleep(Duration::from_secs(60)).await;
    server.get("deployments.apps", "default", "web").map_or(Value::Null, |made| made["spec"]["replicas"].clone())
}

async fn is_kept(server: &ApiServer) {
    assert_eq!(replicas(server).await, 1);
    scale(server, 3);
    assert_eq!(replicas(server).await, 3);
    server.delete("deployments.apps", "default", "web").unwrap();
    assert_eq!(replicas(server).await, 3, "it is made again");
}

fn deployment(foo: &Object<Foo>) -> Result<Deployment, BoxError> {
    let labels = json!({"foo": foo.name()});
    let containers = json!([{"name": "nginx", "image": "nginx:1.29"}]);
    let mut deployment = serde_json::from_value(json!({
        "metadata": {"name": foo.name()},
        "spec": {
            "replicas": foo.decode()?.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }))?;
    foo.control(&mut deployment)?;
    Ok(deployment)
}

#[derive(Clone)]
struct SampleController {
    client: Client,
    foos: Lister<Foo>,
    deployments: SharedInformer<Deployment>,
}

async fn worker(
    queue: WorkQueue,
    controller: SampleController,
) {
    while let Some(key) = queue.get().await {
        match controller.sync(&key).await {
            Ok(()) => key.done(),
            Err(error) => {
                eprintln!("{key}: {error}");
                key.retry();
            }
        }
    }
}

impl SampleController {
    async fn sync(
        &self,
        key: &ObjectKey,
    ) -> Result<(), BoxError> {
        let Some(foo) = self.foos.get(key) else {
            return Ok(());
        };
        let api = Api::namespaced(
            self.client.clone(),
            foo.namespace().unwrap_or_default(),
        );
        let wanted = deployment(&foo)?;
        let lister = self.deployments.lister();
        let Some(deployment) = lister.get(key) else {
            let params = PostParams::default();
            api.create(&params, &wanted).await?;
            return Ok(());
        };
        if !deployment.is_controlled_by(&foo) {
            return Err("not ours".into());
        }
        let replicas = foo.decode()?.spec.replicas;
        if deployment.field("spec.replicas")?
            == Some(replicas)
        {
            return Ok(());
        }
        let patch: Patch<Value> = Patch::Merge(
            json!({"spec": {"replicas": replicas}}));
        let params = PatchParams::default();
        api.patch(key.name(), &params, &patch).await?;
        Ok(())
    }
}

async fn run(client: Client, stop: impl Future) -> Outcome {
    let factory = SharedInformerFactory::new(client.clone());
    let foos = factory.informer::<Foo>();
    let deployments = factory.informer::<Deployment>();
    let queue = WorkQueue::new();
    foos.handler().enqueue(&queue);
    deployments
        .handler()
        .enqueue_owner(&queue, &foos.lister());
    let controller = SampleController { client, foos: foos.lister(), deployments };
    factory.start();
    factory.wait_for_sync().await?;

    let mut workers = JoinSet::new();
    for _ in 0..2 {
        workers.spawn(worker(
            queue.clone(), controller.clone()));
    }
    stop.await;
    queue.drain().await;
    workers.join_all().await;
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_loop_of_the_sample_controller() -> Outcome {
    let server = server();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run(server.client(), stopped));
    is_kept(&server).await;
    drop(stop);
    running.await?
}

#[tokio::test(start_paused = true)]
async fn queues() -> Outcome {
    let queue = WorkQueue::with_rate_limiter(
        MaxOf::new()
            .and(ItemExponential::new(
                Duration::from_millis(5),
                Duration::from_secs(1000),
            ))
            .and(TokenBucket::new(10.0, 100)),
    );
    queue.add("web");
    queue.add_after("db", Duration::from_secs(60));
    queue.add_rate_limited("web");
    assert_eq!(queue.num_requeues(&"web"), 1);
    queue.forget(&"web");
    let key = queue.get().await.ok_or("shut down")?;
    assert_eq!((*key, queue.status().running), ("web", 1));
    key.done();
    let mut seen = Vec::new();
    while let Ok(Some(key)) = tokio::time::timeout(Duration::from_secs(3600), queue.get()).await {
        seen.push(*key);
        key.done();
    }
    assert_eq!(seen, ["web", "db"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn leading() -> Outcome {
    let server = ApiServer::start();
    let client = server.client();
    let stop = std::future::pending::<()>();
    let work = || async { sleep(Duration::from_secs(60)).await };
    let elector = LeaderElector::builder(
            client, "kube-system", "my-operator")
        .lease_duration(Duration::from_secs(15))
        .renew_deadline(Duration::from_secs(10))
        .retry_period(Duration::from_secs(2))
        .on_new_leader(|identity| {
            println!("{identity} leads");
        })
        .build()?;

    let outcome = elector
        .run(stop, |_leadership| work())
        .await;
    if outcome == RunOutcome::Lost {
        std::process::exit(1);
    }
    assert_eq!(outcome, RunOutcome::Finished(()));
    let lease = server.get("leases.coordination.k8s.io", "kube-system", "my-operator").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "it is released");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn events() -> Outcome {
    let server = server();
    let client = server.client();
    let foo: Object<Foo> = Object::from_json(foo(&server).unwrap().to_string())?;
    let replicas = 3;
    let recorder =
        Recorder::new(client, "example.com/foos")?;
    recorder.event(
        &foo, EventType::Normal, "Synced", "Sync",
        &format!("{replicas} replicas"),
    );
    recorder.shutdown().await;
    assert_eq!(server.list("events", "default")[0]["reason"], "Synced");
    Ok(())
}

struct Operator {
    client: Client,
    sample: SampleController,
}

const NAME: &str = "example.com/foos";

impl Reconciler<Foo> for Operator {
    type Error = BoxError;

    async fn reconcile(
        &self,
        request: Request<Foo>,
    ) -> Result<Action, BoxError> {
        let api = Api::all(self.client.clone());
        let done = request.finalizer(
            &api,
            NAME,
            async |state| match state {
                Finalizer::Apply(foo) => {
                    self.apply(&foo).await
                }
                Finalizer::Cleanup(foo) => {
                    self.clean_up(&foo).await
                }
            },
        );
        done.await?;
        Ok(Action::await_change())
    }
}

impl Operator {
    async fn clean_up(&self, foo: &Object<Foo>) -> Result<(), BoxError> {
        let api = Api::<Deployment>::default_namespaced(self.client.clone());
        api.delete(foo.name(), &DeleteParams::default()).await?;
        Ok(())
    }

    async fn apply(
        &self,
        foo: &Object<Foo>,
    ) -> Result<(), BoxError> {
        self.sample.sync(foo.key()).await?;
        let mut conditions = Conditions::of(foo)?;
        conditions.set("Ready", true, "Synced", "");
        let api = Api::all(self.client.clone());
        let status = json!({"conditions": conditions});
        patch_status(&api, foo, status).await?;
        Ok(())
    }
}

async fn run_operator(client: Client, stop: impl Future + Send + 'static) -> Outcome {
    let factory = SharedInformerFactory::new(client.clone());
    let (foos, deployments) = (factory.informer::<Foo>(), factory.informer::<Deployment>());
    let settings = factory.informer::<ConfigMap>();
    let foos_of = |map: &Object<ConfigMap>| [map.key().clone()];
    let elector = LeaderElector::builder(client.clone(), "default", "foos").build()?;
    let (lister, deployed) = (foos.lister(), deployments.clone());
    let sample = SampleController { client: client.clone(), foos: lister, deployments: deployed };
    let reconciler = Operator { client, sample };
    Controller::new(&foos)
        .when(Predicate::generation_changed())
        .owns(&deployments)
        .watches(&settings, foos_of)
        .workers(4)
        .timeout(Duration::from_secs(60))
        .leader_election(&elector)
        .stop_on(stop)
        .run(reconciler)
        .await?;
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_operator_as_controller_runtime_has_them() -> Outcome {
    let server = server();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run_operator(server.client(), stopped));
    is_kept(&server).await;
    assert_eq!(foo(&server).unwrap()["status"]["conditions"][0]["status"], "True");
    server.delete("foos.example.com", "default", "web")?;
    assert_eq!((replicas(&server).await, foo(&server)), (Value::Null, None));
    drop(stop);
    running.await?
}
