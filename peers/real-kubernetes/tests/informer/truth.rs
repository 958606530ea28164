//! The oracle: a plain list.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

/// Lists the objects of an informer, without using any of its code.
pub(crate) struct Truth {
    api: Api<DynamicObject>,
    params: ListParams,
    metadata_only: bool,
}

impl Truth {
    pub(crate) fn new(
        client: Client,
        resource: &ApiResource,
        namespace: &str,
        params: ListParams,
        metadata_only: bool,
    ) -> Self {
        Self { api: Api::namespaced_with(client, namespace, resource), params, metadata_only }
    }

    /// Returns the most recent state, by key.
    pub(crate) async fn list(&self) -> Result<BTreeMap<String, Value>> {
        let list = self.api.list(&self.params).await?;
        let objects = list.items.into_iter().map(|object| {
            let namespace = object.namespace().context("the objects here have a namespace")?;
            let key = format!("{namespace}/{}", object.name_any());
            Ok((key, plain(serde_json::to_value(object)?, self.metadata_only)))
        });
        objects.collect()
    }
}

/// Removes the fields that lists omit from their items, and those that informers omit.
pub(crate) fn plain(mut object: Value, metadata_only: bool) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        if metadata_only {
            fields.retain(|name, _| name == "metadata");
        }
    }
    object
}

pub(crate) fn state(object: &Value) -> super::fold::State {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("uid"), text("resourceVersion"))
}
