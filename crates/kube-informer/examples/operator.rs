//! A complete operator: a Website has a `ConfigMap` with its page and a Service, a finalizer, a status with
//! conditions, and events; one replica leads, and shutdown is graceful. `deploy/operator` runs it in a cluster.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;
#[path = "shared/probes.rs"]
mod probes;

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource};
use kube_informer::controller::{Predicate, Terminal};
use kube_informer::{
    Action, Conditions, Controller, EventType, Finalizer, LeaderElector, Object, Reconciler,
    Recorder, Request, SharedInformer, SharedInformerFactory, patch_status,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "Status")]
struct WebsiteSpec {
    html: String,
    port: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Status {
    conditions: Vec<Map<String, Value>>,
}

struct Operator {
    client: Client,
    recorder: Recorder,
    sites: SharedInformer<Website>,
    maps: SharedInformer<ConfigMap>,
    services: SharedInformer<Service>,
}

impl Reconciler<Website> for Operator {
    type Error = anyhow::Error;

    async fn reconcile(&self, request: Request<Website>) -> anyhow::Result<Action> {
        let api = Api::all(self.client.clone());
        let action = request.finalizer(&api, "example.com/website", async |state| match state {
            Finalizer::Apply(site) => self.publish(&request, &api, &site).await,
            Finalizer::Cleanup(site) => {
                println!("{} leaves the search engines", site.key());
                Ok(Action::await_change())
            }
        });
        Ok(action.await?.unwrap_or(Action::await_change()))
    }
}

impl Operator {
    async fn publish(
        &self,
        request: &Request<Website>,
        api: &Api<Website>,
        site: &Object<Website>,
    ) -> anyhow::Result<Action> {
        let spec = &site.decode()?.spec;
        let mut conditions = Conditions::of(site)?;
        let is_valid = (1..=65535).contains(&spec.port);
        if is_valid {
            let page = json!({"data": {"index.html": spec.html}});
            self.keep(request, site, &self.maps, "data", page).await?;
            let ports = json!([{"port": spec.port, "targetPort": 80, "protocol": "TCP"}]);
            let service = json!({"spec": {"ports": ports, "selector": {"website": site.name()}}});
            self.keep(request, site, &self.services, "spec.ports", service).await?;
            conditions.set("Ready", true, "Published", "");
        } else {
            conditions.set("Ready", false, "BadPort", &format!("{} is no port", spec.port));
        }
        let ready = conditions.get("Ready").map(|ready| (ready.status, ready.reason));
        if let Some(written) = patch_status(api, site, json!({"conditions": conditions})).await? {
            println!("{} is ready: {ready:?}", site.key());
            request.wrote(&self.sites, Some(written.resource_version()));
        }
        if is_valid {
            return Ok(Action::requeue(Duration::from_secs(3600)));
        }
        self.recorder.event(site, EventType::Warning, "BadPort", "Publish", "the port is no port");
        Err(Terminal::new("spec.port is no port").into()) // no retry helps
    }

    /// Creates a child of a website, or restores one of its fields.
    async fn keep<K>(
        &self,
        request: &Request<Website>,
        site: &Object<Website>,
        informer: &SharedInformer<K>,
        field: &str,
        wanted: Value,
    ) -> anyhow::Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned + 'static,
    {
        let api = Api::<K>::namespaced(self.client.clone(), site.namespace().unwrap_or_default());
        let written = match informer.lister().get(site.key()) {
            None => {
                let mut child: K = serde_json::from_value(wanted)?;
                child.meta_mut().name = Some(site.name().to_owned());
                site.control(&mut child)?;
                let created = api.create(&PostParams::default(), &child).await?;
                let note = format!("made the {}", K::kind(&()));
                self.recorder.event(site, EventType::Normal, "Created", "Publish", &note);
                created
            }
            Some(child) => {
                anyhow::ensure!(child.is_controlled_by(site), "{} is not ours", K::kind(&()));
                let is = child.field::<Value>(field)?;
                if is.as_ref() == wanted.pointer(&format!("/{}", field.replace('.', "/"))) {
                    return Ok(());
                }
                let patch = Patch::Merge(wanted);
                api.patch(site.name(), &PatchParams::default(), &patch).await?
            }
        };
        println!("{} is written: {}", K::kind(&()), site.key());
        request.wrote(informer, written.meta().resource_version.as_ref());
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.define(&Website::crd()).await?;
    let client = cluster.client();
    let factory = SharedInformerFactory::new(client.clone());
    let (sites, maps, services) = (factory.informer(), factory.informer(), factory.informer());
    let recorder = Recorder::new(client.clone(), "example.com/website-operator")?;
    let (namespace, lease) = (client.default_namespace(), "website-operator");
    let elector = LeaderElector::builder(client.clone(), namespace, lease).build()?;
    let caches = (sites.clone(), maps.clone(), services.clone());
    let is_ready = move || caches.0.is_live() && caches.1.is_live() && caches.2.is_live();
    probes::start(&elector, is_ready).await?;

    let controller = Controller::new(&sites)
        .when(Predicate::generation_changed())
        .owns(&maps)
        .owns(&services)
        .workers(4)
        .timeout(Duration::from_secs(30))
        .leader_election(&elector);
    let (handle, events) = (controller.handle(), recorder.clone());
    let operator = Operator { client: client.clone(), recorder, sites, maps, services };
    let running = tokio::spawn(controller.run(operator));

    cluster.stage(Box::pin(play(client))).await?; // on a real cluster: until a signal
    handle.stop();
    running.await??;
    events.shutdown().await;
    factory.shutdown().await;
    Ok(())
}

/// Creates a website, damages its page, sets an invalid port, and deletes it.
async fn play(client: Client) -> anyhow::Result<()> {
    let params = PatchParams::default();
    let sites = Api::<Website>::default_namespaced(client.clone());
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let is_ready = |ready: &'static str| {
        let status =
            move |site: &Website| site.status.as_ref()?.conditions.first()?.get("status").cloned();
        let is = move |site: Option<&Website>| site.and_then(status).is_some_and(|is| is == ready);
        await_condition(sites.clone(), "hello", is)
    };
    let page =
        |map: Option<&ConfigMap>| map.and_then(|map| map.data.as_ref()?.get("index.html").cloned());
    let spec = WebsiteSpec { html: "<h1>Hello</h1>".to_owned(), port: 80 };
    sites.create(&PostParams::default(), &Website::new("hello", spec)).await?;
    is_ready("True").await?;
    let damage = Patch::Merge(json!({"data": {"index.html": "hacked"}}));
    maps.patch("hello", &params, &damage).await?;
    let is_repaired = move |map: Option<&ConfigMap>| page(map).is_some_and(|page| page != "hacked");
    await_condition(maps, "hello", is_repaired).await?;
    sites.patch("hello", &params, &Patch::Merge(json!({"spec": {"port": 0}}))).await?;
    is_ready("False").await?;
    let deleted = sites.delete("hello", &DeleteParams::default()).await?;
    let uid = deleted.left().and_then(|site| site.metadata.uid).unwrap_or_default();
    await_condition(sites, "hello", conditions::is_deleted(&uid)).await?;
    Ok(())
}
