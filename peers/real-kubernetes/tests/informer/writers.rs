//! Fifty writers, while kube-apiserver is killed and restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use real_kubernetes::RealKubernetes;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::mirror::Mirror;
use super::scene::Scene;

const WRITERS: usize = 50;
const KILLS: usize = 3;
/// The number of successful writes between two kills.
const BETWEEN: usize = 400;

/// How long a writer waits after a failure: nothing notifies it when the server is back.
const DISMAY: Duration = Duration::from_millis(100);

struct Work {
    scene: Scene,
    done: AtomicUsize,
    over: AtomicBool,
}

impl Work {
    /// Creates, updates and deletes a few objects of its own, ignoring failures.
    async fn write(self: Arc<Self>, writer: usize) {
        let mut random = fastrand::Rng::with_seed(writer as u64);
        let mut count = 0;
        while !self.over.load(Ordering::Relaxed) {
            let name = format!("w-{writer}-{}", random.u8(..4));
            count += 1;
            let written = match random.u8(..4) {
                0 => self.scene.create(&name).await.map(drop),
                1 => self.scene.delete(&name).await,
                _ => self.scene.set(&name, count).await,
            };
            match written {
                Ok(()) => drop(self.done.fetch_add(1, Ordering::Relaxed)),
                Err(error) if refused(&error) => {}
                Err(_) => sleep(DISMAY).await,
            }
        }
    }

    /// Waits until this many more writes have succeeded.
    async fn more(&self, writes: usize) {
        let enough = self.done.load(Ordering::Relaxed) + writes;
        while self.done.load(Ordering::Relaxed) < enough {
            sleep(DISMAY).await;
        }
    }
}

/// Returns whether the server is up and rejected the write, because the object exists or does not exist.
fn refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if (400..500).contains(&status.code))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_is_killed_while_fifty_write() -> Result<()> {
    let Some(mut kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "writers").await?;
    let start = async || anyhow::Ok((kubernetes.client().await?, scene.client.clone()));
    let (client, asks) = start().await?;
    let mut whole = Mirror::<ConfigMap>::start(client, asks, &scene.all());
    let (client, asks) = start().await?;
    let metadata = Mirror::<PartialObjectMeta<ConfigMap>>::start(client, asks, &scene.all());

    let work = Work { scene, done: AtomicUsize::new(0), over: AtomicBool::new(false) };
    let work = Arc::new(work);
    let mut writers: JoinSet<()> = (0..WRITERS).map(|writer| work.clone().write(writer)).collect();
    for _ in 0..KILLS {
        work.more(BETWEEN).await;
        kubernetes.kill9()?;
        whole.join();
        kubernetes.start_again().await?;
    }
    work.more(BETWEEN).await;
    work.over.store(true, Ordering::Relaxed);
    while writers.join_next().await.is_some() {}

    let objects = whole.settle().await?;
    assert_eq!(metadata.settle().await?, objects);
    assert!(objects > 0 && !whole.is_untroubled());
    whole.end().await;
    metadata.end().await;
    Ok(())
}
