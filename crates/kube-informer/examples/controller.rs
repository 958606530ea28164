//! client-go's sample controller: every Foo manages a Deployment with the number of replicas that
//! it specifies.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, CustomResource, CustomResourceExt};
use kube_informer::{
    Action, Controller, Object, Reconciler, Request, SharedInformer, SharedInformerFactory,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "sample.example.com", version = "v1alpha1", kind = "Foo", namespaced)]
struct FooSpec {
    replicas: i32,
}

struct Foos {
    client: Client,
    deployments: SharedInformer<Deployment>,
}

impl Reconciler<Foo> for Foos {
    type Error = anyhow::Error;

    async fn reconcile(&self, request: Request<Foo>) -> anyhow::Result<Action> {
        let Some(object) = &request.object else {
            println!("{} is gone", request.key); // and its Deployment goes with it
            return Ok(Action::await_change());
        };
        let replicas = object.decode()?.spec.replicas;
        let api = Api::namespaced(self.client.clone(), object.namespace().unwrap_or_default());
        let written = match self.deployments.lister().get(&request.key) {
            None => {
                println!("{} gets a Deployment of {replicas}", request.key);
                api.create(&PostParams::default(), &deployment(object, replicas)?).await?
            }
            Some(deployment) => {
                anyhow::ensure!(deployment.is_controlled_by(object), "the Deployment is not ours");
                if deployment.field("spec.replicas")? == Some(replicas) {
                    return Ok(Action::await_change());
                }
                println!("{} is scaled to {replicas}", request.key);
                let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
                api.patch(object.name(), &PatchParams::default(), &patch).await?
            }
        };
        // The next reconcile waits until the cache includes this write.
        request.wrote(&self.deployments, written.metadata.resource_version);
        Ok(Action::await_change())
    }
}

fn deployment(object: &Object<Foo>, replicas: i32) -> anyhow::Result<Deployment> {
    let labels = json!({"foo": object.name()});
    let mut deployment = serde_json::from_value(json!({
        "metadata": {"name": object.name()},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:1.29"}]},
            },
        },
    }))?;
    object.control(&mut deployment)?;
    Ok(deployment)
}

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.define(&Foo::crd()).await?;
    let client = cluster.client();
    let factory = SharedInformerFactory::new(client.clone());
    let deployments = factory.informer::<Deployment>();

    let controller = Controller::new(&factory.informer::<Foo>()).owns(&deployments).workers(2);
    let handle = controller.handle();
    let running = tokio::spawn(controller.run(Foos { client: client.clone(), deployments }));

    cluster.stage(Box::pin(play(client))).await?; // on a real cluster: until Ctrl-C
    handle.stop();
    running.await??;
    factory.shutdown().await;
    Ok(())
}

/// Creates and scales a Foo, deletes its Deployment, and then the Foo itself.
async fn play(client: Client) -> anyhow::Result<()> {
    let foos = Api::<Foo>::default_namespaced(client.clone());
    let deployments = Api::<Deployment>::default_namespaced(client);
    let scaled_to = |replicas| {
        let is = move |deployment: Option<&Deployment>| {
            deployment.is_some_and(|deployment| deployment.spec.replicas == Some(replicas))
        };
        await_condition(deployments.clone(), "web", is)
    };
    let created = Foo::new("web", FooSpec { replicas: 1 });
    foos.create(&PostParams::default(), &created).await?;
    scaled_to(1).await?;
    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    foos.patch("web", &PatchParams::default(), &patch).await?;
    scaled_to(3).await?;
    deployments.delete("web", &DeleteParams::default()).await?;
    scaled_to(3).await?;
    foos.delete("web", &DeleteParams::default()).await?;
    sleep(Duration::from_millis(400)).await; // until it is noticed
    Ok(())
}
