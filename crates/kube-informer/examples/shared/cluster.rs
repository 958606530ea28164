//! Where the examples run: on your cluster or, where there is none, on an API server in this process
//! on which a little happens.
//!
//! `KUBE_INFORMER_TIME=paused` lets time on the embedded server fly, as the tests of the examples do.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::time::sleep;

/// A cluster, real or played.
pub(crate) struct Cluster {
    client: Client,
    server: Option<ApiServer>,
}

/// Runs an example on a cluster.
pub(crate) fn run<E: Future<Output = anyhow::Result<()>>>(
    example: impl FnOnce(Cluster) -> E,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = Cluster::connect().await?;
        example(cluster).await
    })
}

impl Cluster {
    async fn connect() -> anyhow::Result<Self> {
        if has_cluster() {
            let client = kube_informer::client(Config::infer().await?)?;
            return Ok(Self { client, server: None });
        }
        if std::env::var("KUBE_INFORMER_TIME").is_ok_and(|time| time == "paused") {
            tokio::time::pause();
        }
        eprintln!("no kubeconfig: this runs on an embedded API server");
        let server = ApiServer::start();
        Ok(Self { client: server.client(), server: Some(server) })
    }

    /// A client for it.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The embedded server, where that is what this runs on.
    pub(crate) fn server(&self) -> Option<&ApiServer> {
        self.server.as_ref()
    }

    /// Puts objects on the embedded server; a real cluster has its own.
    pub(crate) fn given(&self, objects: impl IntoIterator<Item = Value>) -> anyhow::Result<()> {
        for object in objects {
            let Some(server) = &self.server else { continue };
            let status = object.get("status").cloned();
            let mut created = server.create(object)?;
            // As on every API server, a status is written by itself.
            if let Some(status) = status {
                created["status"] = status;
                server.update_status(created)?;
            }
        }
        Ok(())
    }

    /// Defines a custom resource, unless it is defined already, and waits until it is served.
    pub(crate) async fn define(&self, crd: &CustomResourceDefinition) -> anyhow::Result<()> {
        let api = Api::all(self.client());
        match api.create(&PostParams::default(), crd).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            result => drop(result?),
        }
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        await_condition(api, name, conditions::is_crd_established()).await?;
        Ok(())
    }

    /// On a real cluster: until Ctrl-C. On the embedded server, and with `KUBE_INFORMER_PLAY=1` on a real
    /// one too: until the play is over.
    pub(crate) async fn stage(
        &self,
        play: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        if self.server.is_some() || std::env::var("KUBE_INFORMER_PLAY").is_ok_and(|is| is == "1") {
            return play.await;
        }
        Ok(tokio::signal::ctrl_c().await?)
    }

    /// On a real cluster: until Ctrl-C. On the embedded server: what every informer article does,
    /// `kubectl run nginx`, `kubectl label pods nginx foo=bar`, `kubectl delete pod nginx`.
    pub(crate) async fn play(&self) -> anyhow::Result<()> {
        let Some(server) = &self.server else {
            tokio::signal::ctrl_c().await?;
            return Ok(());
        };
        let step = Duration::from_millis(400);
        sleep(step).await;
        server.create(pod("default", "nginx", &json!({"run": "nginx"})))?;
        sleep(step).await;
        let mut nginx = server.get("pods", "default", "nginx").expect("just made");
        nginx["metadata"]["labels"]["foo"] = "bar".into();
        server.update(nginx)?;
        sleep(Duration::from_millis(1200)).await;
        server.delete("pods", "default", "nginx")?;
        sleep(step).await;
        Ok(())
    }
}

/// Whether kube would find a cluster: then it is used, and if it fails that is an error.
fn has_cluster() -> bool {
    let home = std::env::home_dir().unwrap_or_default();
    std::env::var_os("KUBECONFIG").is_some()
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
        || Path::new(&home).join(".kube/config").exists()
}

/// A pod that runs on no node yet, so that deleting it takes no grace.
pub(crate) fn pod(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]},
    })
}
