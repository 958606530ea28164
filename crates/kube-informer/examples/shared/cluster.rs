//! The cluster of the examples: yours or, without a kubeconfig, an API server in this process with some
//! activity.
//!
//! `KUBE_INFORMER_TIME=paused` makes time on the embedded server pass instantly, as in the tests of the
//! examples.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::runtime::wait::{Condition as _, await_condition, conditions};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::time::sleep;

/// A cluster, real or embedded.
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

    /// Returns a client for it.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the embedded server, if there is one.
    pub(crate) fn server(&self) -> Option<&ApiServer> {
        self.server.as_ref()
    }

    /// Creates objects on the embedded server; a real cluster has its own.
    pub(crate) fn given(&self, objects: impl IntoIterator<Item = Value>) -> anyhow::Result<()> {
        for object in objects {
            let Some(server) = &self.server else { continue };
            let status = object.get("status").cloned();
            let mut created = server.create(object)?;
            // As on every API server, the status is written separately.
            if let Some(status) = status {
                created["status"] = status;
                server.update_status(created)?;
            }
        }
        Ok(())
    }

    /// Creates a custom resource definition unless it exists, and waits until the resource is
    /// served.
    pub(crate) async fn define(&self, crd: &CustomResourceDefinition) -> anyhow::Result<()> {
        let api = Api::all(self.client());
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let there = api.get_opt(name).await?;
        if conditions::is_crd_established().matches_object(there.as_ref()) {
            return Ok(());
        }
        match api.create(&PostParams::default(), crd).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            result => drop(result?),
        }
        await_condition(api, name, conditions::is_crd_established()).await?;
        // The part of a real server that serves objects learns of it a moment later.
        let Some(version) = crd.spec.versions.first() else { return Ok(()) };
        let names = &crd.spec.names;
        let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &names.plural);
        let objects = Api::<DynamicObject>::all_with(self.client(), &resource);
        loop {
            match objects.list(&ListParams::default().limit(1)).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                result => {
                    result?;
                    return Ok(());
                }
            }
        }
    }

    /// Waits for Ctrl-C or, as a kubelet sends it, SIGTERM on a real cluster. On the embedded server, and with
    /// `KUBE_INFORMER_PLAY=1` on a real one too, runs the script.
    pub(crate) async fn stage(
        &self,
        play: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        if self.server.is_some() || std::env::var("KUBE_INFORMER_PLAY").is_ok_and(|is| is == "1") {
            return play.await;
        }
        terminated().await
    }

    /// Waits for Ctrl-C on a real cluster. On the embedded server, does what every article on
    /// informers does: `kubectl run nginx`, `kubectl label pods nginx foo=bar`, `kubectl delete pod
    /// nginx`.
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

/// Waits for Ctrl-C or SIGTERM.
async fn terminated() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            biased;
            _ = terminate.recv() => Ok(()),
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        }
    }
    #[cfg(not(unix))]
    Ok(tokio::signal::ctrl_c().await?)
}

/// Returns whether kube would find a cluster: then it is used, and it is an error if that fails.
fn has_cluster() -> bool {
    let home = std::env::home_dir().unwrap_or_default();
    std::env::var_os("KUBECONFIG").is_some()
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
        || Path::new(&home).join(".kube/config").exists()
}

/// Returns a pod without a node, so that it is deleted without a grace period.
pub(crate) fn pod(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]},
    })
}
