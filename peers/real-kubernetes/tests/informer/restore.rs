//! etcd is restored from a backup.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::SharedInformer;
use real_kubernetes::RealKubernetes;

use super::mirror::Mirror;
use super::scene::Scene;

/// Enough that the server's own writes do not reach the versions that informers have seen.
const WRITES: usize = 300;

async fn go_back(mut kubernetes: RealKubernetes, bumped: bool) -> Result<()> {
    let scene = Scene::new(kubernetes.client().await?, "restore").await?;
    for name in ["stays", "changes", "returns"] {
        scene.create(name).await?;
    }
    let client = kubernetes.client().await?;
    let mirror = Mirror::<ConfigMap>::start(client, scene.client.clone(), &scene.all());
    mirror.settle().await?;

    let snapshot = kubernetes.snapshot().await?;
    scene.delete("returns").await?;
    scene.create("never-was").await?;
    for count in 0..WRITES {
        scene.set("changes", count).await?;
    }
    assert_eq!(mirror.settle().await?, 3);
    if bumped {
        kubernetes.restore_bumped(&snapshot).await?;
    } else {
        kubernetes.restore(&snapshot).await?;
    }
    scene.create("after").await?;
    assert_eq!(mirror.settle().await?, 4);
    let is_back = |informer: &SharedInformer<ConfigMap>| {
        let lister = informer.lister();
        let maps = lister.namespace("restore");
        maps.get("never-was").is_none() && maps.get("returns").is_some()
    };
    assert!(mirror.all(is_back));

    scene.set("stays", 1).await?;
    scene.delete("after").await?;
    assert_eq!(mirror.settle().await?, 3);
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_go_back() -> Result<()> {
    let Some(kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    go_back(kubernetes, false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_go_far_ahead() -> Result<()> {
    let Some(kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    go_back(kubernetes, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_go_back_where_there_is_no_watch_cache() -> Result<()> {
    let builder = RealKubernetes::builder().flag("--watch-cache=false");
    let Some(kubernetes) = builder.start().await? else { return Ok(()) };
    go_back(kubernetes, false).await
}
