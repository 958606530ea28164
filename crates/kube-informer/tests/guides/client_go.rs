//! The code of the guide for users of client-go.
#![expect(clippy::default_trait_access, reason = "as people write it")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::core::{ApiResource, GroupVersionKind};
use kube_informer::{
    Deleted, DeltaFifo, EventHandler, FinalState, Indexer, InformerBuilder, KubeListWatch, Next, Object,
    Reflector, Selector, SharedInformer, SharedInformerFactory, Storage, Transform,
};

use super::{pod, server};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test(start_paused = true)]
async fn the_whole_program() -> Outcome {
    let server = server();
    let client = server.client();
    let factory = SharedInformerFactory::builder(client)
        .resync(Duration::from_secs(60))
        .build();
    let pods = factory.informer::<Pod>();

    pods.handler()
        .on_add(|pod, _initial| {
            println!("+ {}", pod.key());
        })
        .on_update(|old, new| {
            let was = old.resource_version();
            let is = new.resource_version();
            println!("~ {} {was} {is}", new.key());
        })
        .on_delete(|pod| {
            println!("- {}", pod.key());
        })
        .register();

    factory.start();
    factory.wait_for_sync().await?;

    let lister = pods.lister().namespace("default");
    for pod in lister.list() {
        println!("{}", pod.name());
    }
    assert_eq!(lister.len(), 3);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn deletes() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let gone = Arc::new(Mutex::new(Vec::new()));
    let told = gone.clone();
    let forget = move |key: &kube_informer::ObjectKey, certain: bool| {
        told.lock().unwrap().push((key.to_string(), certain));
    };
    pods.handler()
        .on_delete(move |pod| {
            let seen = pod.final_state
                == FinalState::Known;
            forget(pod.key(), seen);
        })
        .register();
    factory.start();
    factory.wait_for_sync().await?;
    server.delete("pods", "default", "web-0")?;
    wait_until(|| gone.lock().unwrap().len() == 1).await;
    assert_eq!(*gone.lock().unwrap(), [("default/web-0".to_owned(), true)]);
    factory.shutdown().await;
    Ok(())
}

struct Count {
    pods: Arc<AtomicUsize>,
}

impl EventHandler<Pod> for Count {
    fn on_add(&mut self, _: &Object<Pod>, _: bool) {
        self.pods.fetch_add(1, Ordering::Relaxed);
    }
    fn on_delete(&mut self, _: &Deleted<Pod>) {
        self.pods.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_as_types() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let count = Arc::new(AtomicUsize::new(0));
    let handler = Count { pods: count.clone() };
    factory.start();
    let registered = pods.add_event_handler(handler);
    registered.wait_for_sync().await?;
    assert_eq!(count.load(Ordering::Relaxed), 3);
    registered.remove().await;
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn filters() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let seen = Arc::new(AtomicUsize::new(0));
    let add = { let seen = seen.clone(); move || { seen.fetch_add(1, Ordering::Relaxed); } };
    let ours = pods.handler()
        .filter(|pod| {
            pod.labels().get("app") == Some("web")
        })
        .on_add(move |_, _| add())
        .register();
    factory.start();
    ours.wait_for_sync().await?;
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn resyncs() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let (again, real) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let check = { let again = again.clone(); move |_: &Object<Pod>| { again.fetch_add(1, Ordering::Relaxed); } };
    let changed = { let real = real.clone(); move || { real.fetch_add(1, Ordering::Relaxed); } };
    pods.handler()
        .resync(Duration::from_secs(30))
        .on_resync(check)
        .register();
    pods.handler()
        .only_changes()
        .on_update(move |_, _| changed())
        .register();
    factory.start();
    factory.wait_for_sync().await?;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!((again.load(Ordering::Relaxed), real.load(Ordering::Relaxed)), (6, 0));
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn listers_and_indexes() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let by_node = pods.index_by_field("spec.nodeName")?;
    let by_image = pods.index_by("image", |pod| {
        pod.decode().ok().and_then(|pod| {
            let spec = pod.spec.as_ref()?;
            spec.containers[0].image.clone()
        })
    })?;
    factory.start();
    factory.wait_for_sync().await?;
    let lister = pods.lister();
    let one = lister.get(("default", "web-0"));
    let web = lister
        .namespace("default")
        .select(&Selector::label("app", "web"));
    let some = lister
        .select(&"app in (web,db),!old".parse()?);
    assert_eq!((one.is_some(), web.len(), some.len()), (true, 2, 3));
    let on_b = by_node.get("b");
    let keys = by_node.keys("b");
    let nodes = by_node.values();
    assert_eq!((on_b.len(), keys.len(), nodes.len()), (2, 2, 2));
    assert_eq!(by_image.get("nginx:1.29").len(), 3);
    let Some(pod) = one else { panic!("web-0 is there") };
    let node: Option<String> =
        pod.field("spec.nodeName")?;
    let typed: Arc<Pod> = pod.decode()?;
    let mut mine = Pod::clone(&typed);
    mine.spec = None;
    assert_eq!((node.as_deref(), mine.spec.is_none()), (Some("a"), true));
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn scopes() -> Outcome {
    let server = server();
    server.create(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))?;
    server.create(pod("shop", "web-0", "web", "a"))?;
    let client = server.client();
    let factory = SharedInformerFactory::builder(client)
        .namespace("shop")
        .labels("app=web")
        .build();
    let pods = factory.informer::<Pod>();
    let here = factory
        .builder_for::<Pod>()
        .fields("spec.nodeName=a")
        .build();
    let both = factory
        .builder_for::<Pod>()
        .namespaces(["shop", "default"])
        .build();
    factory.start();
    factory.wait_for_sync().await?;
    let len = |informer: &SharedInformer<Pod>| informer.lister().len();
    assert_eq!((len(&pods), len(&here), len(&both)), (1, 1, 3));
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn transforms() -> Outcome {
    let server = server();
    let client = server.client();
    let factory = SharedInformerFactory::builder(client)
        .drop_fields(["metadata.annotations", "status"])
        .build();
    let pods = factory
        .builder_for::<Pod>()
        .map(|pod| pod.spec = None)
        .build();
    factory.start();
    factory.wait_for_sync().await?;
    let pod = pods.lister().get("default/web-0").expect("it is there");
    assert_eq!(pod.field::<String>("status.phase")?, None);
    assert!(pod.decode()?.spec.is_none());
    let keep: InformerBuilder<Pod> = factory.builder_for::<Pod>();
    let kept = keep.transform(Transform::keep_fields(["spec.nodeName"])).storage(Storage::Decoded).build();
    assert!(!kept.is_stopped());
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn errors() -> Outcome {
    let server = server();
    let client = server.client();
    let lost = Arc::new(AtomicUsize::new(0));
    let relists = { let lost = lost.clone(); move || { lost.fetch_add(1, Ordering::Relaxed); } };
    let factory = SharedInformerFactory::builder(client)
        .on_error(move |report| {
            eprintln!("{report}");
            if report.error.is_forbidden() {
                eprintln!("who took my role?");
            }
            if let Next::Relist { .. } = report.next {
                relists();
            }
        })
        .build();
    let pods = factory.informer::<Pod>();
    factory.start();
    factory
        .wait_for_sync()
        .timeout(Duration::from_secs(30))
        .await?;
    server.drop_watches();
    server.create(pod("default", "new", "web", "a"))?;
    server.store().compact(u64::MAX);
    let first = pods.resource_version();
    wait_until(|| pods.resource_version() != first && pods.is_live()).await;
    assert!(lost.load(Ordering::Relaxed) > 0);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dynamic_and_metadata() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let gvk = GroupVersionKind::gvk(
        "apps", "v1", "Deployment");
    let kind = ApiResource::from_gvk(&gvk);
    let deployments = factory.dynamic(&kind);
    let secrets = factory.metadata::<Secret>();
    factory.start();
    factory.wait_for_sync().await?;
    assert_eq!((deployments.lister().len(), secrets.lister().len()), (0, 0));
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn stopping() -> Outcome {
    let server = server();
    let client = server.client();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown_signal = async move { drop(stopped.await) };
    let factory = SharedInformerFactory::builder(client)
        .stop_on(shutdown_signal)
        .build();
    let nodes = factory.informer::<Node>();
    factory.start();
    stop.send(()).expect("the factory waits for it");
    wait_until(|| nodes.is_stopped()).await;
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn running() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let nodes = factory.informer::<Node>();
    let shutdown_signal = wait_until(|| nodes.has_synced());
    factory.run(shutdown_signal).await;
    assert!(nodes.is_stopped());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_parts() -> Outcome {
    let server = server();
    let client = server.client();
    let seen = Mutex::new(Vec::new());
    let enqueue = |key: &kube_informer::ObjectKey| seen.lock().unwrap().push(key.to_string());
    let stop = wait_until(|| seen.lock().unwrap().len() == 3);
    let mut store = Indexer::<Pod>::new();
    let by_node = store.index_by_field("spec.nodeName")?;
    let queue = DeltaFifo::in_order(
        store.lister().cast());
    let source = KubeListWatch::of::<Pod>(client);

    Reflector::new(source, queue)
        .on_error(|report| eprintln!("{report}"))
        .process_until(stop, |deltas| {
            for event in store.process(deltas) {
                if let Some(key) = event.key() {
                    enqueue(key);
                }
            }
        })
        .await;
    assert_eq!((by_node.get("b").len(), store.lister().len()), (2, 3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn freshness() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_sync().await?;
    let api: kube::Api<Pod> = kube::Api::default_namespaced(server.client());
    let new: Pod = serde_json::from_value(pod("default", "mine", "web", "a"))?;
    let made = api.create(&Default::default(), &new).await?;
    let version = made.metadata.resource_version
        .unwrap_or_default();
    pods.wait_for_version(version).await?;
    assert!(pods.lister().get("default/mine").is_some());
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_cluster() -> Outcome {
    let web = pod("default", "web-0", "web", "a");
    let server = ApiServer::start();
    server.create(web)?; // any JSON
    let client = server.client();
    let factory = SharedInformerFactory::new(client);
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_sync().await?;
    server.delete("pods", "default", "web-0")?;
    wait_until(|| pods.lister().is_empty()).await;
    factory.shutdown().await;
    Ok(())
}

/// Paused time advances by itself while nothing else happens.
async fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
