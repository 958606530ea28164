//! The building blocks alone: a custom source, a reflector, a queue, a store, and a controller made of them.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_informer::list_watch::{ListItem, ListOptions, ListStream, WatchOptions, WatchStream};
use kube_informer::{
    Deleted, DeltaFifo, Event, EventHandler, FinalState, Indexer, KubeListWatch, ListWatch, Object,
    Reflector, Result, SharedInformer, Storage,
};
use serde_json::json;

/// A source that lists the given objects and never changes.
struct Still(Vec<Object>);

impl ListWatch for Still {
    fn name(&self) -> &'static str {
        "still"
    }
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let end = ListItem::End { resource_version: "1".into(), continue_token: None };
        let items: Vec<_> = self.0.iter().cloned().map(ListItem::Object).chain([end]).collect();
        async { Ok(stream::iter(items).map(Ok).boxed()) }.boxed()
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        async { Ok(stream::pending().boxed()) }.boxed()
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

/// A handler with state, as a type.
#[derive(Default)]
struct Count {
    pods: usize,
}

impl EventHandler<Pod> for Count {
    fn on_add(&mut self, pod: &Object<Pod>, _initial: bool) {
        self.pods += 1;
        println!("{} is pod number {}", pod.key(), self.pods);
    }
    fn on_delete(&mut self, pod: &Deleted<Pod>) {
        self.pods -= 1;
        if pod.final_state == FinalState::Unknown {
            println!("{} went while nobody looked", pod.key());
        }
    }
}

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    let pod: Object<Pod> =
        Object::from_json(cluster::pod("default", "web-0", &json!({})).to_string())?;

    // A handler can be tested by calling it.
    let mut count = Count::default();
    count.on_add(&pod, true);
    count.on_delete(&Deleted { object: pod.clone(), final_state: FinalState::Unknown });

    // An informer on a custom source, without a factory; a handler behind a pointer, tied to a
    // scope.
    let source = Still(vec![pod.clone().cast()]);
    let informer = SharedInformer::<Pod>::from_source(source).storage(Storage::Decoded).build();
    let boxed: Box<dyn EventHandler<Pod>> = Box::new(count);
    let guard = informer.handler().name("count").register(boxed).remove_on_drop();
    informer.start();
    guard.wait_for_sync().await?;
    drop(guard);

    // A reflector that writes to a store, and nothing else.
    let store = Indexer::<Pod>::new();
    let (lister, by_image) = (store.lister(), store.index_by_field("spec.containers[*].image")?);
    let reflector = Reflector::new(Still(vec![pod.cast()]), store);
    let store = reflector.run_until(tokio::task::yield_now()).await;
    println!(
        "{} of {} run nginx, at {}",
        by_image.get("nginx:1.29").len(),
        lister.len(),
        store.resource_version()
    );

    by_hand(&cluster).await?;
    controller(&cluster).await;
    Ok(())
}

/// Combines source, queue, store and handler by hand.
async fn by_hand(cluster: &cluster::Cluster) -> anyhow::Result<()> {
    cluster.given([json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": "settings"},
    })])?;
    let api: kube::Api<ConfigMap> = kube::Api::default_namespaced(cluster.client());
    let mut store = Indexer::<ConfigMap>::new();
    let queue = DeltaFifo::in_order(store.lister().cast());
    let reflecting = Reflector::new(KubeListWatch::from(api), queue.clone());
    let processing = async {
        while let Some(deltas) = queue.pop().await {
            for event in store.process(deltas) {
                match event {
                    Event::Added { object, initial } => {
                        println!("{} is there, initial: {initial}", object.key());
                    }
                    // The example ends after the first list.
                    Event::Synced => queue.close(),
                    _ => {}
                }
            }
        }
    };
    tokio::select! {
        biased;
        _ = reflecting.run_until(std::future::pending::<()>()) => {}
        () = processing => {}
    }
    Ok(())
}

/// The low-level controller of many articles: client-go's `cache.New(&cache.Config{…}).Run(stop)`.
async fn controller(cluster: &cluster::Cluster) {
    let mut store = Indexer::<Pod>::new();
    let queue = DeltaFifo::by_key(store.lister().cast());
    let pods = KubeListWatch::of::<Pod>(cluster.client()).namespace("default");
    let mut handler = Count::default();
    Reflector::new(pods, queue)
        .on_error(|report| eprintln!("{report}"))
        .process_until(cluster.play(), |deltas| {
            for event in store.process(deltas) {
                handler.on_event(&event);
            }
        })
        .await;
    println!("{} pods are left", handler.pods);
}
