//! The program of the guide "A controller in ten minutes", and its tests.
#![allow(dead_code, reason = "main and its signal are for a real cluster")]

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResource};
use kube_informer::controller::{Predicate, Terminal};
use kube_informer::{
    Action, Conditions, Controller, EventType, Finalizer, LeaderElector, Object, Reconciler,
    Recorder, Request, SharedInformer, SharedInformerFactory, patch_status,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced)]
#[kube(status = "WebsiteStatus")]
struct WebsiteSpec {
    html: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct WebsiteStatus {
    #[schemars(schema_with = "conditions")]
    conditions: Vec<Value>,
}

fn conditions(_: &mut SchemaGenerator) -> Schema {
    let text = json!({"type": "string"});
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {"type": text, "status": text},
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

struct Websites {
    client: Client,
    pages: SharedInformer<ConfigMap>,
}

impl Reconciler<Website> for Websites {
    type Error = anyhow::Error;

    async fn reconcile(&self, request: Request<Website>) -> anyhow::Result<Action> {
        if let Some(site) = &request.object {
            self.publish(&request, site).await?;
        }
        Ok(Action::await_change())
    }
}

impl Websites {
    /// Updates the page of a website to match its spec.
    async fn publish(
        &self,
        request: &Request<Website>,
        site: &Object<Website>,
    ) -> anyhow::Result<()> {
        let html = site.decode()?.spec.html.clone();
        if html.is_empty() {
            return Err(Terminal::new("spec.html is empty").into());
        }
        let namespace = site.namespace().unwrap_or_default();
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        let written = match self.pages.lister().get(site.key()) {
            None => {
                let mut page = ConfigMap::default();
                page.metadata.name = Some(site.name().to_owned());
                page.data = Some([("html".to_owned(), html)].into());
                site.control(&mut page)?;
                api.create(&PostParams::default(), &page).await?
            }
            Some(page) => {
                anyhow::ensure!(page.is_controlled_by(site), "{} is not ours", page.key());
                if page.field("data.html")? == Some(html.clone()) {
                    return Ok(());
                }
                let patch = Patch::Merge(json!({"data": {"html": html}}));
                api.patch(page.name(), &PatchParams::default(), &patch).await?
            }
        };
        request.wrote(&self.pages, written.metadata.resource_version);
        Ok(())
    }
}

async fn run(client: Client, stop: impl Future + Send + 'static) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::new(client.clone());
    let pages = factory.informer::<ConfigMap>();
    Controller::new(&factory.informer::<Website>())
        .owns(&pages)
        .stop_on(stop)
        .run(Websites { client, pages })
        .await?;
    factory.shutdown().await;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = kube_informer::client(kube::Config::infer().await?)?;
    run(client, tokio::signal::ctrl_c()).await
}

/// The reconciler of the operator.
struct Operator {
    websites: Websites,
    sites: SharedInformer<Website>,
    recorder: Recorder,
}

const FINALIZER: &str = "example.com/search-index";

impl Reconciler<Website> for Operator {
    type Error = anyhow::Error;

    async fn reconcile(&self, request: Request<Website>) -> anyhow::Result<Action> {
        let api = Api::all(self.websites.client.clone());
        let action = request.finalizer(&api, FINALIZER, async |state| match state {
            Finalizer::Apply(site) => self.apply(&request, &api, &site).await,
            Finalizer::Cleanup(site) => {
                println!("{} leaves the search index", site.key());
                Ok(Action::await_change())
            }
        });
        Ok(action.await?.unwrap_or(Action::await_change()))
    }
}

impl Operator {
    async fn apply(
        &self,
        request: &Request<Website>,
        api: &Api<Website>,
        site: &Object<Website>,
    ) -> anyhow::Result<Action> {
        let published = self.websites.publish(request, site).await;
        let (is_ready, reason, message) = match &published {
            Ok(()) => (true, "Published", "the page is up to date".to_owned()),
            Err(error) => (false, "NotPublished", format!("{error:#}")),
        };

        let mut conditions = Conditions::of(site)?;
        conditions.set("Ready", is_ready, reason, &message);
        let status = json!({"conditions": conditions});
        if let Some(written) = patch_status(api, site, status).await? {
            request.wrote(&self.sites, Some(written.resource_version()));
            let kind = if is_ready { EventType::Normal } else { EventType::Warning };
            self.recorder.event(site, kind, reason, "Publish", &message);
        }

        published?;
        Ok(Action::requeue(Duration::from_secs(3600)))
    }
}

async fn run_operator(client: Client, stop: impl Future + Send + 'static) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::new(client.clone());
    let (sites, pages) = (factory.informer(), factory.informer());
    let recorder = Recorder::new(client.clone(), "example.com/website-operator")?;
    let elector = LeaderElector::builder(client.clone(), "default", "website-operator").build()?;

    let controller = Controller::new(&sites)
        .when(Predicate::generation_changed())
        .owns(&pages)
        .workers(4)
        .timeout(Duration::from_secs(30))
        .leader_election(&elector)
        .graceful_stop(Duration::from_secs(20))
        .on_error(|key, error| eprintln!("{key}: {error}"))
        .stop_on(stop);

    let websites = Websites { client, pages };
    controller.run(Operator { websites, sites, recorder: recorder.clone() }).await?;
    recorder.shutdown().await;
    factory.shutdown().await;
    Ok(())
}

/// Completes on Ctrl-C, or when Kubernetes stops the pod.
async fn stop_signal() -> std::io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = terminated.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use embedded_apiserver::{ApiServer, Fault, Verb};
    use kube::CustomResourceExt;
    use kube_informer::controller::Phase;
    use kube_informer::workqueue::ItemExponential;
    use tokio::sync::oneshot;
    use tokio::time::sleep;

    use super::*;

    /// A server with the definition of websites.
    fn server() -> anyhow::Result<ApiServer> {
        let server = ApiServer::start();
        server.create(serde_json::to_value(Website::crd())?)?;
        Ok(server)
    }

    fn website(html: &str) -> Value {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Website",
            "metadata": {"namespace": "default", "name": "hello"},
            "spec": {"html": html},
        })
    }

    /// Changes the spec of the website.
    fn change(server: &ApiServer, html: &str) -> anyhow::Result<()> {
        let site = server.get("websites.example.com", "default", "hello");
        let mut site = site.context("there is no website")?;
        site["spec"]["html"] = html.into();
        server.update(site)?;
        Ok(())
    }

    /// The text of the page of the website.
    fn page(server: &ApiServer) -> Option<Value> {
        Some(server.get("configmaps", "default", "hello")?["data"]["html"].clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_website_has_a_page() -> anyhow::Result<()> {
        let server = server()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(run(server.client(), stopped));
        let quiet = || sleep(Duration::from_secs(60));

        server.create(website("<h1>Hello</h1>"))?;
        quiet().await;
        assert_eq!(page(&server), Some("<h1>Hello</h1>".into()));

        change(&server, "<h1>Bye</h1>")?;
        quiet().await;
        assert_eq!(page(&server), Some("<h1>Bye</h1>".into()));

        server.delete("configmaps", "default", "hello")?;
        quiet().await;
        assert_eq!(page(&server), Some("<h1>Bye</h1>".into()), "it is made again");

        drop(stop);
        running.await?
    }

    #[tokio::test(start_paused = true)]
    async fn other_triggers_and_other_pauses() -> anyhow::Result<()> {
        let server = server()?;
        let mut site = website("1");
        site["metadata"]["labels"] = json!({"theme": "dark"});
        server.create(site)?;
        let factory = SharedInformerFactory::new(server.client());
        let (sites, pages) = (factory.informer::<Website>(), factory.informer::<ConfigMap>());

        let themes = factory.builder_for::<ConfigMap>().labels("kind=theme").build();
        let by_theme = sites.index_by_label("theme");
        let controller = Controller::new(&sites)
            .when(Predicate::generation_changed().or(Predicate::labels_changed()))
            .owns_when(&pages, Predicate::version_changed())
            .watches(&themes, move |theme| by_theme.keys(theme.name()));

        let (from, up_to) = (Duration::from_secs(1), Duration::from_secs(60));
        let controller = controller.rate_limiter(ItemExponential::new(from, up_to));
        let handle = controller.handle();
        let running = tokio::spawn(controller.run(async |request: Request<Website>| {
            anyhow::ensure!(request.failures >= 3, "not yet");
            Ok(Action::await_change())
        }));

        sleep(Duration::from_secs(5)).await; // pauses of 1 and 2 seconds are over, that of 4 is not
        let status = handle.status();
        println!(
            "{:?}, {} ready, {:?}",
            status.phase, status.queue.ready, status.queue.longest_running
        );
        assert_eq!((status.phase, status.failed, status.succeeded), (Phase::Running, 3, 0));
        sleep(Duration::from_secs(5)).await;
        assert_eq!(handle.status().succeeded, 1);

        server.create(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "default", "name": "dark", "labels": {"kind": "theme"}},
        }))?;
        sleep(Duration::from_secs(60)).await;
        assert_eq!(handle.status().succeeded, 2);
        handle.stop();
        Ok(running.await??)
    }

    #[tokio::test(start_paused = true)]
    async fn pages_are_right_whatever_breaks() -> anyhow::Result<()> {
        let server = server()?;
        let running = tokio::spawn(run(server.client(), std::future::pending::<()>()));
        server.create(website("0"))?;
        for (version, fault) in [
            "patch configmaps lost-answer",
            "patch configmaps status=500 times=5",
            "watch configmaps after-events=0 half-open",
            "watch websites after-events=0 gone",
            "down=30s",
            "restart",
            "flaky-network=0.2",
        ]
        .into_iter()
        .enumerate()
        {
            sleep(Duration::from_secs(60)).await;
            server.faults().inject_text(fault)?;
            let html = (version + 1).to_string();
            change(&server, &html)?;
            sleep(Duration::from_secs(600)).await;
            assert_eq!(page(&server), Some(html.into()), "{fault}");
        }
        running.abort();
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_made_once_while_its_watch_is_silent() -> anyhow::Result<()> {
        let server = server()?;
        let running = tokio::spawn(run(server.client(), std::future::pending::<()>()));
        sleep(Duration::from_secs(1)).await;
        let late = Fault::Latency(Duration::from_secs(20));
        server.faults().on(Verb::Watch).resource("configmaps").after_events(0).inject(late);

        server.create(website("1"))?;
        sleep(Duration::from_secs(1)).await;
        change(&server, "2")?; // before the cache has the page
        sleep(Duration::from_secs(60)).await;
        assert_eq!(page(&server), Some("2".into()));

        let mut requests = server.requests();
        requests.retain(|request| request.verb == Some(Verb::Create));
        assert_eq!(requests.len(), 1, "{requests:#?}");
        running.abort();
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn the_operator_reports_cleans_up_and_hands_over() -> anyhow::Result<()> {
        let server = server()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let first = tokio::spawn(run_operator(server.client(), stopped));
        let second = tokio::spawn(run_operator(server.client(), std::future::pending::<()>()));
        let quiet = || sleep(Duration::from_secs(60));
        let site = || server.get("websites.example.com", "default", "hello");
        let ready = || site().map(|site| site["status"]["conditions"][0].clone());

        server.create(website("1"))?;
        quiet().await;
        assert_eq!(page(&server), Some("1".into()));
        assert_eq!(ready().context("no website")?["status"], "True");
        assert_eq!(site().context("no website")?["metadata"]["finalizers"], json!([FINALIZER]));

        // One replica stops, and the other takes over.
        drop(stop);
        first.await??;
        change(&server, "")?;
        quiet().await;
        assert_eq!(ready().context("no website")?["message"], "spec.html is empty");
        let events = server.list("events", "default");
        let reasons: Vec<_> = events.iter().map(|event| &event["reason"]).collect();
        assert_eq!(reasons, ["Published", "NotPublished"]);

        server.delete("websites.example.com", "default", "hello")?;
        quiet().await;
        assert_eq!(site(), None, "it has been cleaned up");
        second.abort();
        Ok(())
    }
}
