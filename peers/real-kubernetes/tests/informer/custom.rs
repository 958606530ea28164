//! Custom resources, and definitions that are created and deleted.

use std::fmt::Debug;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::conditions::{is_crd_established, is_deleted};
use kube::runtime::wait::await_condition;
use kube::{Client, CustomResource, CustomResourceExt as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::mirror::Mirror;
use super::scene::{Scene, shared};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

/// Another kind, whose definition is deleted.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Gadget", namespaced)]
struct GadgetSpec {
    size: u32,
}

/// Creates a definition, and waits until its objects are served.
async fn define<K>(
    client: &Client,
    definition: &CustomResourceDefinition,
    objects: &Api<K>,
) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), definition).await?;
    await_condition(definitions, &definition.name_any(), is_crd_established()).await?;
    // The part of the server that serves objects learns of it a moment later.
    while let Err(error) = objects.list(&ListParams::default()).await {
        if !matches!(error, kube::Error::Api(_)) {
            return Err(error.into());
        }
    }
    Ok(())
}

async fn forget(client: &Client, definition: &CustomResourceDefinition) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition.name_any();
    let uid = definitions.get(&name).await?.uid().unwrap_or_default();
    definitions.delete(&name, &DeleteParams::default()).await?;
    await_condition(definitions, &name, is_deleted(&uid)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_typed() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "custom").await?;
    let widgets: Api<Widget> = Api::namespaced(scene.client.clone(), "custom");
    define(&scene.client, &Widget::crd(), &widgets).await?;
    let make = async |name: &str, size| {
        widgets.create(&PostParams::default(), &Widget::new(name, WidgetSpec { size })).await
    };
    make("one", 1).await?;
    let mirror =
        Mirror::<Widget>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    assert_eq!(mirror.settle().await?, 1);
    make("two", 2).await?;
    widgets.delete("one", &DeleteParams::default()).await?;
    assert_eq!(mirror.settle().await?, 1);
    let left = mirror.informer.lister().list();
    assert_eq!(left[0].decode()?.spec.size, 2);
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_is_deleted_and_made_again() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "redefined").await?;
    let gadgets: Api<Gadget> = Api::namespaced(scene.client.clone(), "redefined");
    let make = async |name: &str, size| {
        gadgets.create(&PostParams::default(), &Gadget::new(name, GadgetSpec { size })).await
    };
    // The kind is not defined yet.
    let mirror =
        Mirror::<Gadget>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.error(|report| report.error.is_not_found()).await?;
    define(&scene.client, &Gadget::crd(), &gadgets).await?;
    make("one", 1).await?;
    make("two", 2).await?;
    assert_eq!(mirror.settle().await?, 2);

    let before = mirror.reported();
    forget(&scene.client, &Gadget::crd()).await?;
    mirror.error_after(&before, |report| report.error.is_not_found()).await?;
    define(&scene.client, &Gadget::crd(), &gadgets).await?;
    make("one", 11).await?;
    make("three", 3).await?;
    assert_eq!(mirror.settle().await?, 2);
    let beliefs = mirror.beliefs();
    assert_eq!((beliefs.added, beliefs.deleted), (4, 2), "{beliefs:?}");
    assert!(beliefs.tombstones.is_empty(), "each was seen to go: {beliefs:?}");
    mirror.end().await;
    Ok(())
}
