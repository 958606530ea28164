//! `--ui`: the debug page of the tool's informers, with buttons that break an embedded server.

use std::time::Duration;

use clap::Args;
use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Action, Controller, Object, Request, SharedInformerFactory};
use kube_informer_debug::{Builder, DebugPage, Listening};
use tokio::task::JoinSet;

/// How long the server answers everything with a 500.
const STORM: Duration = Duration::from_secs(8);

/// How long the server is away.
const AWAY: Duration = Duration::from_secs(10);

/// The debug page.
#[derive(Args, Clone, Default, Debug)]
#[group(id = "page")]
pub(crate) struct Options {
    /// Serves a live page about the informers, and prints its address: the way of each event, what is
    /// wrong and until when, the last events and what they changed. Only this machine can reach it.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0"
    )]
    ui: Option<String>,
}

/// A page that is served until this is dropped.
pub(crate) struct Ui {
    listening: Listening,
    /// The informers of a server that has none of its own.
    #[expect(dead_code, reason = "held, not read: they run as long as the page")]
    demo: Option<(SharedInformerFactory, JoinSet<()>)>,
}

impl Ui {
    /// Returns the line that names the page.
    pub(crate) fn line(&self) -> String {
        format!("debug page on {}", self.listening.url())
    }
}

impl Options {
    /// Serves the page of a factory, if the user asked for it.
    pub(crate) async fn serve(
        &self,
        factory: &SharedInformerFactory,
        server: Option<&ApiServer>,
    ) -> Result<Option<Ui>, String> {
        let page = DebugPage::builder(factory).title("kubectl informer watch");
        self.listen(page, server).await
    }

    /// Serves the page of informers that this starts on an embedded server, if the user asked for it.
    pub(crate) async fn serve_demo(&self, server: &ApiServer) -> Result<Option<Ui>, String> {
        if self.ui.is_none() {
            return Ok(None);
        }
        let factory = SharedInformerFactory::new(server.client());
        let controller = Controller::new(&factory.informer::<Deployment>())
            .name("rollouts")
            .owns(&factory.informer::<ReplicaSet>())
            .workers(2);
        let pods = factory.informer::<Pod>();
        pods.handler().name("pods that do not run").filter(is_not_running).for_each(drop);
        pods.handler().name("all pods").for_each(drop);
        factory.informer::<Job>().handler().name("finished jobs").for_each(drop);
        let page = DebugPage::builder(&factory)
            .title("kubectl informer serve")
            .controller(&controller.handle());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let reconcile = async |request: Request<Deployment>| {
                // Reads the cache, as a reconciler would.
                let ready =
                    request.object.map(|object| object.field::<i64>("status.readyReplicas"));
                let _ = ready.transpose()?;
                Ok::<_, kube_informer::Error>(Action::await_change())
            };
            drop(controller.run(reconcile).await);
        });
        factory.start();
        let ui = self.listen(page, Some(server)).await?;
        Ok(ui.map(|ui| Ui { demo: Some((factory, tasks)), ..ui }))
    }

    async fn listen(
        &self,
        page: Builder,
        server: Option<&ApiServer>,
    ) -> Result<Option<Ui>, String> {
        let Some(address) = &self.ui else { return Ok(None) };
        let page = page.history(true).show_objects(true);
        let page = match server {
            Some(server) => buttons(page, server),
            None => page,
        };
        let listening = page.build().listen(address).await;
        let listening = listening.map_err(|error| {
            format!("--ui={address}: {error}\ngive an address of this machine, such as 127.0.0.1:8080; port 0 picks a free one")
        })?;
        Ok(Some(Ui { listening, demo: None }))
    }
}

fn is_not_running(pod: &Object<Pod>) -> bool {
    !matches!(pod.field::<String>("status.phase"), Ok(Some(phase)) if phase == "Running")
}

/// Adds the buttons that break a server.
fn buttons(page: Builder, server: &ApiServer) -> Builder {
    let with = |press: fn(&ApiServer)| {
        let server = server.clone();
        move || press(&server)
    };
    page.button(
        "Drop watches",
        "ends every watch, as a load balancer does",
        with(ApiServer::drop_watches),
    )
    .button("Compact", "forgets old versions: watches end with a 410", with(compact))
    .button("500 storm", "answers everything with an error for 8 seconds", with(storm))
    .button(
        "Silence",
        "watches stay open, but say nothing: noticed after 75 seconds",
        with(silence),
    )
    .button("Go away", "refuses connections for 10 seconds", with(go_away))
}

fn compact(server: &ApiServer) {
    server.store().compact(u64::MAX);
    let watches = server.watches() as u64;
    if watches > 0 {
        server.faults().on(Verb::Watch).after_events(0).times(watches).inject(Fault::Gone);
    }
}

fn storm(server: &ApiServer) {
    let rule = server.faults().any().always().inject(Fault::status(500));
    server.drop_watches();
    later(server, STORM, move |server| _ = server.faults().remove(rule));
}

fn silence(server: &ApiServer) {
    let watches = server.watches() as u64;
    if watches > 0 {
        server.faults().on(Verb::Watch).after_events(0).times(watches).inject(Fault::HalfOpen);
    }
}

fn go_away(server: &ApiServer) {
    server.refuse_connections();
    later(server, AWAY, ApiServer::accept_connections);
}

fn later(server: &ApiServer, after: Duration, act: impl FnOnce(&ApiServer) + Send + 'static) {
    let server = server.clone();
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        act(&server);
    });
}
