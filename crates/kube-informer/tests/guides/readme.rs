//! The programs in the README.

mod library {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Pod;
    use kube_informer::SharedInformerFactory;

    #[tokio::main]
    async fn main() -> anyhow::Result<()> {
        let client = kube_informer::client(kube::Config::infer().await?)?; // any other kube::Client will do
        let factory = SharedInformerFactory::builder(client)
            .resync(Duration::from_secs(600))
            .on_error(|report| eprintln!("{report}")) // what failed, and what the informer does about it
            .build();
        let pods = factory.informer::<Pod>();

        pods.handler()
            .on_add(|pod, _initial| println!("Add: {}", pod.key()))
            .on_update(|old, new| {
                let (before, after) = (old.resource_version(), new.resource_version());
                println!("Update: {}, old RV: {before}, new RV: {after}", new.key());
            })
            .on_delete(|pod| println!("Delete: {}", pod.key()))
            .register();
        let by_node = pods.index_by_field("spec.nodeName")?;

        factory.start();
        factory.wait_for_sync().await?;

        for pod in pods.lister().namespace("default").list() {
            let phase: Option<String> = pod.field("status.phase")?;
            println!("{} is {}", pod.name(), phase.unwrap_or_default());
        }
        println!("{} pods run on node-1", by_node.get("node-1").len());
        factory.run(tokio::signal::ctrl_c()).await;
        Ok(())
    }

    #[test]
    #[ignore = "`runs` runs it in a process of its own, with a cluster"]
    fn program() {
        main().unwrap();
    }

    /// Runs the program as a user does: with a kubeconfig, until Ctrl-C.
    #[tokio::test]
    async fn runs() {
        use rustix::process::Signal;
        use tokio::process::Command;

        use crate::process::Process;

        let server = crate::server();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["readme::library::program", "--exact", "--ignored", "--nocapture"]);
        let mut program = Process::start(command, &server, |kubeconfig| kubeconfig).await;
        while program.line().await != "running 1 test" {}
        // The handler and `main` run concurrently, and nothing orders different objects.
        let mut first = Vec::new();
        while first.len() < 7 {
            // The harness may print the name of the test in front of the first line.
            let line = program.line().await;
            first.push(line.rsplit(" ... ").next().unwrap().to_owned());
        }
        first.sort();
        let adds = ["Add: default/db-0", "Add: default/web-0", "Add: default/web-1"];
        assert_eq!(first[1..4], adds);
        assert_eq!(first[0], "0 pods run on node-1");
        assert_eq!(first[4..], ["db-0 is Pending", "web-0 is Pending", "web-1 is Pending"]);

        let mut pod = server.get("pods", "default", "db-0").unwrap();
        let old = pod["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        pod["metadata"]["labels"]["track"] = "canary".into();
        let new = server.update(pod).unwrap()["metadata"]["resourceVersion"].clone();
        let new = new.as_str().unwrap();
        let update = format!("Update: default/db-0, old RV: {old}, new RV: {new}");
        assert_eq!(program.line().await, update);
        server.delete("pods", "default", "db-0").unwrap();
        // A pod on a node is first marked for deletion.
        let mut last = program.line().await;
        while last.starts_with(&format!("Update: default/db-0, old RV: {new}")) {
            last = program.line().await;
        }
        assert_eq!(last, "Delete: default/db-0");
        program.end(Signal::INT).await;
    }
}

mod controller {
    use embedded_apiserver::ApiServer;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, PostParams};
    use kube::{Client, CustomResource, CustomResourceExt};
    use kube_informer::{Action, Controller, Object, Reconciler, Request, SharedInformer, SharedInformerFactory};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Website", namespaced)]
    struct WebsiteSpec {
        html: String,
    }

    fn page(site: &Object<Website>) -> anyhow::Result<ConfigMap> {
        let mut page = ConfigMap::default();
        page.metadata.name = Some(site.name().to_owned());
        site.control(&mut page)?;
        Ok(page)
    }

    async fn run(client: Client, stop: impl Future + Send + 'static) -> anyhow::Result<()> {
        struct Websites { client: Client, pages: SharedInformer<ConfigMap> }

        impl Reconciler<Website> for Websites {
            type Error = anyhow::Error;

            async fn reconcile(&self, request: Request<Website>) -> anyhow::Result<Action> {
                let Some(site) = &request.object else { return Ok(Action::await_change()) };
                if self.pages.lister().get(site.key()).is_none() {
                    let api = Api::namespaced(self.client.clone(), site.namespace().unwrap_or_default());
                    let made = api.create(&PostParams::default(), &page(site)?).await?;
                    request.wrote(&self.pages, made.metadata.resource_version); // waits for the cache
                }
                Ok(Action::await_change())
            }
        }

        let factory = SharedInformerFactory::new(client.clone());
        let pages = factory.informer::<ConfigMap>();
        let controller = Controller::new(&factory.informer::<Website>()).owns(&pages).workers(4);
        controller.stop_on(stop).run(Websites { client, pages }).await?;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_pages() {
        let server = ApiServer::start();
        server.create(serde_json::to_value(Website::crd()).unwrap()).unwrap();
        let site = json!({
            "apiVersion": "example.com/v1", "kind": "Website",
            "metadata": {"namespace": "default", "name": "hello"}, "spec": {"html": "1"},
        });
        server.create(site).unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(run(server.client(), stopped));
        for _ in 0..2 {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            server.delete("configmaps", "default", "hello").expect("it is made, and made again");
        }
        drop(stop);
        running.await.unwrap().unwrap();
    }
}

mod server {
    use embedded_apiserver::ApiServer;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, Patch, PatchParams};
    use serde_json::json;

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        // Create the initial state directly …
        let server = ApiServer::start();
        server.create(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"colour": "blue"},
        }))?;

        // … and change it through a client.
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
        let red = Patch::Merge(json!({"data": {"colour": "red"}}));
        maps.patch("settings", &PatchParams::default(), &red).await?;

        let settings = server.get("configmaps", "default", "settings").unwrap();
        assert_eq!(settings["data"]["colour"], "red");
        assert_eq!(server.requests().len(), 1);
        Ok(())
    }

    #[test]
    fn runs() {
        main().unwrap();
    }
}
