//! Sync, events, resync, selectors, metadata, streaming lists and plain lists.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use kube_informer::{Event, SharedInformer};
use real_kubernetes::{Builder, RealKubernetes};
use serde_json::json;

use super::mirror::{Choice, Mirror};
use super::scene::{Scene, shared};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_informer_syncs_and_tells_what_happens() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "events").await?;
    for name in ["a", "b", "c"] {
        scene.create(name).await?;
    }
    let mut mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.wait_for_sync().await?;
    assert_eq!(mirror.settle().await?, 3);
    scene.create("d").await?;
    scene.set("a", 1).await?;
    scene.set("a", 2).await?;
    scene.delete("b").await?;
    mirror.settle().await?;
    mirror.join();
    let last = scene.create("e").await?;
    mirror.informer.wait_for_version(last).await?;
    assert!(
        mirror.informer.lister().namespace("events").get("e").is_some(),
        "what was written is read"
    );
    assert_eq!(mirror.settle().await?, 4);
    let beliefs = mirror.beliefs();
    assert_eq!((beliefs.added, beliefs.updated, beliefs.deleted), (5, 2, 1));
    assert!(beliefs.tombstones.is_empty() && mirror.is_untroubled(), "{}", mirror.story());
    assert!(mirror.all(SharedInformer::is_live));
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resync_repeats_what_there_is() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "resyncs").await?;
    scene.create("a").await?;
    scene.create("b").await?;
    let mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.wait_for_sync().await?;
    let mut events = mirror.informer.handler().resync(Duration::from_secs(1)).stream();
    let mut repeated = Vec::new();
    while repeated.len() < 4 {
        if let Event::Resynced(object) = events.next().await.context("the stream goes on")? {
            repeated.push(object.name().to_owned());
        }
    }
    repeated.sort();
    assert_eq!(repeated, ["a", "a", "b", "b"]);
    mirror.settle().await?;
    assert_eq!(mirror.beliefs().resynced, 0, "others did not ask for it");
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_choose_and_what_leaves_the_choice_is_deleted() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "labels").await?;
    scene.create_labelled("stays", "red").await?;
    scene.create_labelled("leaves", "red").await?;
    scene.create_labelled("comes", "blue").await?;
    let choice = Choice { labels: "colour in (red, green)".into(), ..scene.all() };
    let mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &choice);
    assert_eq!(mirror.settle().await?, 2);
    scene.colour("leaves", "blue").await?;
    scene.colour("comes", "green").await?;
    scene.create_labelled("other", "blue").await?;
    assert_eq!(mirror.settle().await?, 2);
    let beliefs = mirror.beliefs();
    assert_eq!((beliefs.added, beliefs.updated, beliefs.deleted), (3, 0, 1));
    assert!(beliefs.tombstones.is_empty(), "the server says that it left: {beliefs:?}");
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_choose_pods_by_their_phase() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "fields").await?;
    let pods: Api<Pod> = Api::namespaced(scene.client.clone(), "fields");
    for name in ["one", "two"] {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }
    let choice = Choice { fields: "status.phase=Running".into(), ..scene.all() };
    let mirror = Mirror::<Pod>::start(kubernetes.client().await?, scene.client.clone(), &choice);
    assert_eq!(mirror.settle().await?, 0);
    for phase in ["Running", "Failed", "Running"] {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        pods.patch_status("one", &PatchParams::default(), &patch).await?;
        assert_eq!(mirror.settle().await?, usize::from(phase == "Running"));
    }
    let beliefs = mirror.beliefs();
    assert_eq!((beliefs.added, beliefs.deleted), (2, 1));
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_comes_without_the_rest() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "metadata").await?;
    scene.create("a").await?;
    let mirror = Mirror::<PartialObjectMeta<ConfigMap>>::start(
        kubernetes.client().await?,
        scene.client.clone(),
        &scene.all(),
    );
    mirror.settle().await?;
    scene.set("a", 1).await?;
    scene.create("b").await?;
    assert_eq!(mirror.settle().await?, 2);
    for object in mirror.informer.lister().list() {
        let text = String::from_utf8(object.to_json()?.to_vec())?;
        assert!(!text.contains("\"data\""), "{text}");
        assert!(object.decode()?.metadata.uid.is_some());
    }
    assert!(mirror.is_untroubled(), "{}", mirror.story());
    mirror.end().await;
    Ok(())
}

/// Returns the sum of a server metric for config maps.
async fn metric(client: &Client, name: &str, parts: &[&str]) -> Result<usize> {
    let metrics = client.request_text(Request::get("/metrics").body(Vec::new())?).await?;
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(name) && parts.iter().all(|part| line.contains(part)));
    let mut sum = 0;
    for line in lines {
        sum += line.rsplit(' ').next().unwrap_or_default().parse::<usize>()?;
    }
    Ok(sum)
}

/// Returns the number of lists of config maps that the server has answered.
async fn lists(client: &Client) -> Result<usize> {
    metric(client, "apiserver_request_total", &["resource=\"configmaps\"", "verb=\"LIST\""]).await
}

/// More objects than fit on one page.
const MANY: usize = 1_100;

async fn many(scene: &Scene) -> Result<()> {
    for part in (0..MANY).collect::<Vec<_>>().chunks(50) {
        try_join_all(part.iter().map(async |number| scene.create(&format!("m-{number}")).await))
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_streamed() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "streamed").await?;
    many(&scene).await?;
    let mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.wait_for_sync().await?;
    assert_eq!(mirror.settle().await?, MANY);
    assert!(mirror.is_untroubled(), "{}", mirror.story());
    let streamed =
        metric(&scene.client, "apiserver_watch_list_duration_seconds_count", &["configmaps"]);
    assert!(streamed.await? >= mirror.informers());
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_stream_is_listed() -> Result<()> {
    let builder = RealKubernetes::builder().flag("--feature-gates=WatchList=false");
    let Some(kubernetes) = builder.start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "listed").await?;
    many(&scene).await?;
    let mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.wait_for_sync().await?;
    assert_eq!(mirror.settle().await?, MANY);
    assert!(mirror.fell_back() && mirror.reported() == [1, 1], "{}", mirror.story());
    scene.delete("m-7").await?;
    scene.set("m-8", 1).await?;
    assert_eq!(mirror.settle().await?, MANY - 1);
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_no_cache_either_is_listed_in_pages() -> Result<()> {
    let flags = ["--feature-gates=WatchList=false", "--watch-cache=false"];
    let builder = flags.into_iter().fold(RealKubernetes::builder(), Builder::flag);
    let Some(kubernetes) = builder.start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "paged").await?;
    many(&scene).await?;
    let before = lists(&scene.client).await?;
    let mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.wait_for_sync().await?;
    assert_eq!(lists(&scene.client).await? - before, mirror.informers() * MANY.div_ceil(500));
    assert_eq!(mirror.settle().await?, MANY);
    scene.delete("m-7").await?;
    scene.set("m-8", 1).await?;
    assert_eq!(mirror.settle().await?, MANY - 1);
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_no_cache_streams_all_the_same() -> Result<()> {
    let builder = RealKubernetes::builder().flag("--watch-cache=false");
    let Some(kubernetes) = builder.start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "uncached").await?;
    many(&scene).await?;
    let mirror =
        Mirror::<ConfigMap>::start(kubernetes.client().await?, scene.client.clone(), &scene.all());
    mirror.wait_for_sync().await?;
    assert_eq!(mirror.settle().await?, MANY);
    assert!(mirror.is_untroubled(), "{}", mirror.story());
    mirror.end().await;
    Ok(())
}
