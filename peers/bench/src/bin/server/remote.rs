//! An existing server, filled over HTTP.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use peers_bench::data::{self, CREATOR, KUBELET};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{Server, version};

/// Concurrent requests. More do not make etcd faster.
const AT_ONCE: usize = 24;

pub(crate) struct Remote {
    runtime: Runtime,
    client: Client,
}

impl Remote {
    pub(crate) fn at(runtime: Runtime, kubeconfig: &Path) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let client = runtime.block_on(async {
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
            anyhow::Ok(Client::try_from(config)?)
        })?;
        Ok(Self { runtime, client })
    }

    fn pods(&self, pod: &Value) -> Api<Pod> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates a pod and writes its status, each as the pod's manager would.
    async fn make(&self, mut pod: Value) -> Result<usize> {
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            // The server sets them, per manager.
            metadata.remove("managedFields");
        }
        let creator = PostParams { field_manager: Some(CREATOR.to_owned()), ..Default::default() };
        let typed: Pod = serde_json::from_value(pod.clone())?;
        self.pods(&pod).create(&creator, &typed).await?;
        Ok(self.write_status(&pod).await?.to_string().len())
    }

    async fn write_status(&self, pod: &Value) -> Result<Value> {
        let kubelet = PatchParams { field_manager: Some(KUBELET.to_owned()), ..Default::default() };
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Merge(json!({"status": pod["status"]}));
        let patched = self.pods(pod).patch_status(name, &kubelet, &patch).await?;
        Ok(serde_json::to_value(patched)?)
    }
}

impl Server for Remote {
    fn prepare(&self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        self.runtime.block_on(async {
            for namespace in data::namespaces() {
                let namespace: Namespace = serde_json::from_value(namespace)?;
                if namespaces.get_opt(&namespace.name_any()).await?.is_none() {
                    namespaces.create(&PostParams::default(), &namespace).await?;
                }
            }
            Ok(())
        })
    }

    fn create(&self, numbers: Range<usize>) -> Result<usize> {
        let made = stream::iter(numbers).map(|number| self.make(data::pod(number, 1)));
        let largest = made
            .buffer_unordered(AT_ONCE)
            .try_fold(0, |largest, bytes| async move { Ok(bytes.max(largest)) });
        self.runtime.block_on(largest)
    }

    fn create_sentinel(&self) -> Result<()> {
        self.runtime.block_on(self.make(data::sentinel(0))).map(drop)
    }

    fn change_all(&self, pods: &[Value]) -> Result<()> {
        let changed = stream::iter(pods).map(|pod| self.write_status(pod));
        let changed = changed.buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) });
        self.runtime.block_on(changed)
    }

    fn change(&self, pod: &Value) -> Result<u64> {
        version(&self.runtime.block_on(self.write_status(pod))?)
    }

    fn expire(&self) -> Result<()> {
        bail!("a real server cannot be told to forget its history")
    }
}
