//! Watches whose version expires while they are disconnected.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use real_kubernetes::RealKubernetes;

use super::mirror::Mirror;
use super::scene::Scene;

/// Disconnects an informer, deletes, updates and creates objects, compacts the history, and reconnects the informer.
async fn miss(mut kubernetes: RealKubernetes, restarts: bool) -> Result<()> {
    let scene = Scene::new(kubernetes.client().await?, "expiry").await?;
    for name in ["stays", "changes", "goes", "again"] {
        scene.create(name).await?;
    }
    let (gate, client, _) = kubernetes.gate().await?;
    let mirror = Mirror::<ConfigMap>::start(client, scene.client.clone(), &scene.all());
    assert_eq!(mirror.settle().await?, 4);

    gate.close();
    mirror.error(|_| true).await?;
    scene.delete("goes").await?;
    scene.delete("again").await?;
    scene.create("again").await?;
    scene.set("changes", 1).await?;
    scene.create("comes").await?;
    kubernetes.compact().await?;
    if restarts {
        kubernetes.restart().await?;
    }
    gate.open();
    assert_eq!(mirror.settle().await?, 4);
    assert!(mirror.has_reported(|report| report.error.is_expired()), "{}", mirror.story());
    let beliefs = mirror.beliefs();
    assert_eq!(beliefs.tombstones, ["expiry/goes"]);
    assert_eq!((beliefs.added, beliefs.deleted), (5, 1));

    scene.set("stays", 2).await?;
    mirror.settle().await?;
    mirror.end().await;
    Ok(())
}

/// kube-apiserver's watch cache retains what etcd has compacted, until it is restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_forgotten_by_a_restart() -> Result<()> {
    let Some(kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    miss(kubernetes, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_forgotten_by_a_compaction() -> Result<()> {
    let builder = RealKubernetes::builder().flag("--watch-cache=false");
    let Some(kubernetes) = builder.start().await? else { return Ok(()) };
    miss(kubernetes, false).await
}

/// The watch cache starts with the current revision of etcd, so clients with an older version have to relist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_tells_handlers_nothing_where_nothing_happened() -> Result<()> {
    let Some(mut kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "quiet").await?;
    scene.create("a").await?;
    scene.create("b").await?;
    let client = kubernetes.client().await?;
    let mirror = Mirror::<ConfigMap>::start(client, scene.client.clone(), &scene.all());
    assert_eq!(mirror.settle().await?, 2);
    // Advances etcd's revision without an event for this informer.
    Scene::new(scene.client.clone(), "other").await?;
    kubernetes.kill9()?;
    kubernetes.start_again().await?;
    mirror.error(|report| report.error.is_expired()).await?;
    assert_eq!(mirror.settle().await?, 2);
    let beliefs = mirror.beliefs();
    assert_eq!((beliefs.added, beliefs.deleted), (2, 0));
    mirror.end().await;
    Ok(())
}
