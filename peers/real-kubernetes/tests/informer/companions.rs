//! Controller support beside informers: finalizers, status and events.

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use kube_informer::{
    Conditions, Error, EventType, Finalizer, Object, Recorder, finalizer, patch_status,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::scene::{Scene, shared};

const OURS: &str = "example.com/ours";
const OTHERS: &str = "example.com/others";

/// Returns the most recent state, or `None` if the object is gone.
async fn read<K>(api: &Api<K>, name: &str) -> Result<Option<Object<K>>>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let found = api.get_opt(name).await?;
    Ok(found.map(|found| Object::pack(&found)).transpose()?)
}

async fn there<K>(api: &Api<K>, name: &str) -> Result<Object<K>>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    read(api, name).await?.context("it is there")
}

async fn set_finalizers(api: &Api<ConfigMap>, name: &str, finalizers: &[&str]) -> Result<()> {
    let patch = json!({"metadata": {"finalizers": finalizers}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Reconciles without doing anything, and returns the callback that was called.
async fn reconcile(
    client: &Client,
    map: &Object<ConfigMap>,
    name: &str,
) -> Result<Option<&'static str>, Error> {
    let api = Api::all(client.clone());
    finalizer(&api, map, name, async |state| match state {
        Finalizer::Apply(map) if map.has_finalizer(name) => Ok("apply"),
        Finalizer::Apply(_) => Ok("apply too early"),
        Finalizer::Cleanup(_) => Ok("cleanup"),
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_are_added_and_removed() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "finalizers").await?;
    let api: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "finalizers");
    scene.create("a").await?;
    let fresh = there(&api, "a").await?;
    assert_eq!(reconcile(&scene.client, &fresh, OURS).await?, Some("apply"));
    // From here on `fresh` is stale, so the first JSON patch of both calls fails its `test` of the list.
    assert_eq!(reconcile(&scene.client, &fresh, OTHERS).await?, Some("apply"));
    assert_eq!(reconcile(&scene.client, &fresh, OURS).await?, Some("apply"));
    let live = there(&api, "a").await?;
    assert_eq!(live.finalizers(), [OURS, OTHERS]);
    scene.delete("a").await?;
    // No other finalizer can be added any more: that is a conflict, not an invalid object.
    let error = reconcile(&scene.client, &live, "example.com/late").await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("being deleted"), "{error}");
    let dying = there(&api, "a").await?;
    assert_eq!(reconcile(&scene.client, &dying, OURS).await?, Some("cleanup"));
    assert_eq!(there(&api, "a").await?.finalizers(), [OTHERS]);
    // The finalizer's position in the list has changed.
    assert_eq!(reconcile(&scene.client, &dying, OTHERS).await?, Some("cleanup"));
    assert!(read(&api, "a").await?.is_none());
    assert_eq!(reconcile(&scene.client, &dying, OURS).await?, Some("cleanup"), "404 is success");
    let error = reconcile(&scene.client, &fresh, OURS).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("gone"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_of_another_object_are_left_alone() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "replaced").await?;
    let api: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "replaced");
    scene.create("a").await?;
    let live = there(&api, "a").await?;
    set_finalizers(&api, "a", &[OURS, OTHERS, OURS]).await?;
    scene.delete("a").await?;
    let dying = there(&api, "a").await?;
    assert_eq!(reconcile(&scene.client, &dying, OURS).await?, Some("cleanup"));
    assert_eq!(there(&api, "a").await?.finalizers(), [OTHERS]);
    set_finalizers(&api, "a", &[]).await?;
    scene.create("a").await?;
    set_finalizers(&api, "a", &[OURS]).await?;
    assert_eq!(reconcile(&scene.client, &dying, OURS).await?, Some("cleanup"));
    assert_eq!(there(&api, "a").await?.finalizers(), [OURS]);
    assert!(reconcile(&scene.client, &live, OTHERS).await.unwrap_err().is_conflict());
    set_finalizers(&api, "a", &[]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_is_written_where_it_differs() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "status").await?;
    let deployments: Api<Deployment> = Api::namespaced(scene.client.clone(), "status");
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "a", "image": "a:1"}]},
            },
        },
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment)?).await?;
    let first = there(&deployments, "a").await?;
    let everywhere: Api<Deployment> = Api::all(scene.client.clone());
    let mut conditions = Conditions::of(&first)?.observed_generation(None);
    assert!(conditions.set("example.com/Ready", true, "Up", "it is up"));
    let status = json!({"observedGeneration": first.generation(), "conditions": conditions});
    let written = patch_status(&everywhere, &first, status.clone()).await?.context("it is new")?;
    assert!(written.same_version(&there(&deployments, "a").await?));
    assert!(patch_status(&everywhere, &written, status).await?.is_none());
    assert!(!Conditions::of(&written)?.observed_generation(None).set(
        "example.com/Ready",
        true,
        "Up",
        "it is up"
    ));
    let stale = patch_status(&everywhere, &first, json!({"replicas": 1})).await.unwrap_err();
    assert!(stale.is_conflict(), "{stale}");
    scene.create("map").await?;
    let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "status");
    let none = patch_status(&maps, &there(&maps, "map").await?, json!({"a": 1})).await.unwrap_err();
    assert!(none.is_not_found(), "{none}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_accepted() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "recorded").await?;
    scene.create("a").await?;
    let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "recorded");
    let map = there(&maps, "a").await?;
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    let namespace = there(&namespaces, "recorded").await?;
    let recorder = Recorder::new(scene.client.clone(), "example.com/controller")?;
    for _ in 0..3 {
        recorder.related_event(&map, &namespace, EventType::Warning, "Failed", "Try", "it broke");
    }
    // The longest values allowed, and a cluster-scoped object.
    recorder.event(&namespace, EventType::Normal, &"R".repeat(128), "Try", &"名".repeat(1024));
    recorder.flush().await;
    let counts = recorder.counts();
    assert_eq!((counts.written, counts.counted, counts.failed), (4, 1, 0), "{counts:?}");
    let events: Api<Event> = Api::namespaced(scene.client.clone(), "recorded");
    let [event] = &events.list(&ListParams::default()).await?.items[..] else {
        anyhow::bail!("one event is expected")
    };
    let series = event.series.as_ref().context("it was repeated")?;
    assert_eq!((series.count, event.note.as_deref()), (3, Some("it broke")));
    let regarding = event.regarding.as_ref().context("it is about something")?;
    assert_eq!(regarding.uid.as_deref(), Some(map.uid()));
    // An event that has expired is created again, with its whole series.
    let name = event.metadata.name.as_deref().context("it has a name")?;
    events.delete(name, &kube::api::DeleteParams::default()).await?;
    recorder.related_event(&map, &namespace, EventType::Warning, "Failed", "Try", "it broke");
    recorder.shutdown().await;
    let again = events.get(name).await?;
    assert_eq!(again.series.map(|series| series.count), Some(4));
    let events: Api<Event> = Api::namespaced(scene.client.clone(), "default");
    let about = ListParams::default().fields("regarding.kind=Namespace,regarding.name=recorded");
    assert_eq!(events.list(&about).await?.items.len(), 1);
    Ok(())
}
