//! A server that keeps its connections open but sends nothing.

use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::SharedInformer;
use real_kubernetes::RealKubernetes;
use tokio::time::sleep;

use super::mirror::Mirror;
use super::scene::Scene;

/// Longer than a watch may be silent. This test really has to wait: silence is nothing but time.
const PAUSE: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_paused_is_noticed() -> Result<()> {
    let Some(mut kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "silence").await?;
    scene.create("a").await?;
    scene.create("b").await?;
    let client = kubernetes.client().await?;
    let mirror = Mirror::<ConfigMap>::start(client, scene.client.clone(), &scene.all());
    assert_eq!(mirror.settle().await?, 2);

    kubernetes.pause()?;
    let began = Instant::now();
    mirror.error(|report| report.error.is_silence()).await?;
    assert!(began.elapsed() < PAUSE, "noticed after {:?}", began.elapsed());
    assert!(mirror.all(|informer| !informer.is_live()));
    assert!(mirror.all(|informer| informer.lister().len() == 2), "what was known stays known");
    sleep(PAUSE.saturating_sub(began.elapsed())).await;
    kubernetes.resume()?;
    scene.delete("a").await?;
    scene.create("c").await?;
    scene.create("d").await?;
    assert_eq!(mirror.settle().await?, 3);
    assert!(mirror.all(SharedInformer::is_live), "{}", mirror.story());
    mirror.end().await;
    Ok(())
}
