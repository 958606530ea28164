//! Snapshots: the content of a cache in a file, from which the next run of the program starts.
//!
//! A snapshot has the objects, their version, and a description of them: which objects of which cluster, stored
//! how. An informer starts from it only if that description matches what the informer would list.

mod file;
mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Cause;
use crate::object::Packer;
use crate::wire::{Client, Endpoint, Target};
use crate::{Error, Object, ResourceVersion, Result};

/// The uid of this namespace identifies a cluster: it is created with the cluster and cannot be
/// deleted.
const NAMESPACE_OF_CLUSTER: &str = "kube-system";

/// The origin of an informer's objects, and how they are stored.
pub(crate) struct Origin {
    content: Content,
    namespaces: Endpoint,
    packer: Arc<Packer>,
}

/// A description of the objects in a snapshot. Two informers with equal descriptions would list the
/// same objects.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
struct Content {
    group: String,
    version: String,
    resource: String,
    /// Empty for all namespaces.
    namespace: String,
    labels: String,
    fields: String,
    metadata_only: bool,
    managed_fields: bool,
    /// `None` if the transform has a function: there is no way to tell whether that of the next run
    /// does the same.
    transform: Option<String>,
}

/// The header of a snapshot, before its objects.
#[derive(PartialEq, Serialize, Deserialize, Debug)]
struct Manifest {
    content: Content,
    /// The uid of the namespace `kube-system`.
    cluster: String,
    resource_version: String,
    objects: u64,
}

/// The content of a cache, and its version.
pub(crate) type Beginning = (Vec<Object>, ResourceVersion);

impl Origin {
    pub(crate) fn new(client: Client, target: &Target, packer: Arc<Packer>) -> Self {
        let content = Content {
            group: target.group.clone(),
            version: target.version.clone(),
            resource: target.plural.clone(),
            namespace: target.namespace.clone().unwrap_or_default(),
            labels: target.labels.clone(),
            fields: target.fields.clone(),
            metadata_only: target.metadata_only,
            managed_fields: packer.keeps_managed_fields(),
            transform: packer.transform_text(),
        };
        let namespaces = Target {
            prefix: target.prefix.clone(),
            version: "v1".to_owned(),
            plural: "namespaces".to_owned(),
            kind: Some("Namespace".to_owned()),
            metadata_only: true,
            ..Target::default()
        };
        Self { content, namespaces: Endpoint::new(client, namespaces), packer }
    }

    /// Returns whether a snapshot would write Secrets to a file.
    pub(crate) fn is_of_secrets(&self) -> bool {
        self.content.group.is_empty() && self.content.resource == "secrets"
    }

    /// Writes a snapshot. If that fails, the old file is left intact.
    pub(crate) async fn save(&self, path: &Path, content: Beginning) -> Result<()> {
        self.check_transform()?;
        let (objects, version) = content;
        let manifest = Manifest {
            content: self.content.clone(),
            cluster: self.cluster().await?,
            resource_version: version.as_str().to_owned(),
            objects: objects.len() as u64,
        };
        let (path, packer) = (path.to_owned(), self.packer.clone());
        blocking(move || file::write(&path, &manifest, &objects, &packer)).await
    }

    /// Reads a snapshot; `None` if there is no file. A snapshot of anything but what this informer
    /// lists is an error.
    pub(crate) async fn load(&self, path: PathBuf) -> Result<Option<Beginning>> {
        self.check_transform()?;
        let packer = self.packer.clone();
        let shown = path.display().to_string();
        let read = blocking(move || file::read(&path, &packer)).await?;
        let Some((manifest, objects)) = read else { return Ok(None) };
        let within = |error: Error| error.within(format!("{shown} is not used"));
        self.check(&manifest.content).map_err(within)?;
        let cluster = self.cluster().await.map_err(within)?;
        if manifest.cluster != cluster {
            let text =
                "it belongs to another cluster, whose namespace kube-system has a different uid";
            return Err(within(unusable(text)));
        }
        Ok(Some((objects, manifest.resource_version.into())))
    }

    fn check(&self, theirs: &Content) -> Result<()> {
        if *theirs == self.content {
            return Ok(());
        }
        let (theirs, ours) = (fields(theirs), fields(&self.content));
        let different = ours.iter().find(|(name, value)| theirs.get(*name) != Some(value));
        let (name, ours) = different.unwrap_or((&"content", &serde_json::Value::Null));
        let theirs = theirs.get(name).unwrap_or(&serde_json::Value::Null);
        Err(unusable(format!("its {name} is {theirs}, but the informer's is {ours}")))
    }

    /// Checks that a snapshot of this informer could be used.
    fn check_transform(&self) -> Result<()> {
        if self.content.transform.is_none() {
            return Err(unusable(
                "an informer whose transform is a function cannot start from a snapshot, because the function may \
                 differ in the next run; use `drop_fields` or `keep_fields`",
            ));
        }
        Ok(())
    }

    async fn cluster(&self) -> Result<String> {
        let namespace = self.namespaces.get(NAMESPACE_OF_CLUSTER).await.map_err(|error| {
            error.within("cannot identify the cluster (a snapshot needs the permission to get the namespace kube-system)")
        })?;
        Ok(namespace.uid().to_owned())
    }
}

/// Returns the fields by name, to report which of them differs.
fn fields(content: &Content) -> std::collections::BTreeMap<&'static str, serde_json::Value> {
    let Content { group, version, resource, namespace, labels, fields, .. } = content;
    let texts = [
        ("group", group),
        ("version", version),
        ("resource", resource),
        ("namespace", namespace),
        ("label selector", labels),
        ("field selector", fields),
    ];
    let texts = texts.map(|(name, text)| (name, text.as_str().into()));
    let others = [
        ("metadata-only", content.metadata_only.into()),
        ("keeping of managedFields", content.managed_fields.into()),
        ("transform", content.transform.as_deref().into()),
    ];
    texts.into_iter().chain(others).collect()
}

fn unusable(text: impl Into<String>) -> Error {
    Error::new(Cause::Snapshot, text)
}

/// Runs file I/O on a blocking thread, so that no task waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(unusable(format!("the snapshot's task ended: {error}"))))
}

#[cfg(test)]
mod tests;
