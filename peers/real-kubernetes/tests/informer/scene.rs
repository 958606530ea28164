//! Servers, namespaces and objects for the tests.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use real_kubernetes::RealKubernetes;
use serde_json::json;
use tokio::sync::OnceCell;

use super::mirror::Choice;

/// Returns the server that is shared by all tests that do not disturb it. It ends with the process.
pub(crate) async fn shared() -> Result<Option<&'static RealKubernetes>> {
    static SHARED: OnceCell<Option<RealKubernetes>> = OnceCell::const_new();
    Ok(SHARED.get_or_try_init(RealKubernetes::start).await?.as_ref())
}

/// A namespace, and the config maps in it.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    maps: Api<ConfigMap>,
}

impl Scene {
    pub(crate) async fn new(client: Client, namespace: &str) -> Result<Self> {
        let object = json!({"metadata": {"name": namespace}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        let maps = Api::namespaced(client.clone(), namespace);
        Ok(Self { client, namespace: namespace.to_owned(), maps })
    }

    /// Selects everything in the namespace.
    pub(crate) fn all(&self) -> Choice {
        Choice { namespace: self.namespace.clone(), ..Choice::default() }
    }

    /// Creates a config map, and returns its version.
    pub(crate) async fn create(&self, name: &str) -> Result<String> {
        self.create_labelled(name, "none").await
    }

    pub(crate) async fn create_labelled(&self, name: &str, colour: &str) -> Result<String> {
        let map = json!({
            "metadata": {"name": name, "labels": {"colour": colour}},
            "data": {"count": "0"},
        });
        let made = self.maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
        made.resource_version().context("what was made has a version")
    }

    pub(crate) async fn set(&self, name: &str, count: usize) -> Result<()> {
        let patch = json!({"data": {"count": count.to_string()}});
        self.maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn colour(&self, name: &str, colour: &str) -> Result<()> {
        let patch = json!({"metadata": {"labels": {"colour": colour}}});
        self.maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.maps.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }
}
