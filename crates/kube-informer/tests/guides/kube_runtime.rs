//! The code of the guide for users of kube-runtime, on both sides.
#![expect(clippy::default_trait_access, reason = "as people write it")]

use std::collections::BTreeMap;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, predicates, watcher};
use kube::{Client, ResourceExt};
use kube_informer::{
    Event, KubeListWatch, Object, Selector, SharedInformer, SharedInformerFactory,
};

use super::server;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test(start_paused = true)]
async fn a_cache() -> Outcome {
    let server = server();
    let client = server.client();
    let api: Api<Pod> = Api::all(client);
    let (reader, writer) = reflector::store();
    let stream = watcher(api, Default::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .for_each(|pod| {
            if let Ok(pod) = pod {
                println!("{}", pod.name_any());
            }
            ready(())
        });
    tokio::spawn(stream);
    reader.wait_until_ready().await?;
    let all: Vec<Arc<Pod>> = reader.state();
    assert_eq!(all.len(), 3);
    let client = server.client();
    let factory = SharedInformerFactory::new(client);
    let pods = factory.informer::<Pod>();

    pods.handler()
        .on_add(|pod, _| println!("{}", pod.name()))
        .on_update(|_, pod| {
            println!("{}", pod.name());
        })
        .register();

    factory.start();
    factory.wait_for_sync().await?;
    let all = pods.lister().list();
    assert_eq!(all.len(), 3);
    factory.shutdown().await;
    Ok(())
}

async fn theirs_events(api: Api<Pod>) -> Result<usize, watcher::Error> {
    let mut seen = 0;
    let mut events = pin!(
        watcher(api, Default::default())
            .default_backoff()
    );
    while let Some(event) = events.try_next().await? {
        match event {
            watcher::Event::Init => {}
            watcher::Event::InitApply(_pod) => seen += 1,
            watcher::Event::InitDone => break,
            watcher::Event::Apply(_pod) => {}
            watcher::Event::Delete(_pod) => {}
        }
    }
    Ok(seen)
}

async fn our_events(pods: SharedInformer<Pod>) -> usize {
    let mut seen = 0;
    let mut events = pods.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Added { initial, .. } => {
                seen += usize::from(initial);
            }
            Event::Synced => break,
            Event::Updated { old: _, new: _ } => {}
            Event::Deleted(_pod) => {}
            Event::Resynced(_pod) => {}
        }
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn events() -> Outcome {
    let server = server();
    assert_eq!(theirs_events(Api::all(server.client())).await?, 3);
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    factory.start();
    assert_eq!(our_events(pods).await, 3);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reads() -> Outcome {
    let server = server();
    let api: Api<Pod> = Api::all(server.client());
    let (reader, writer) = reflector::store();
    tokio::spawn(watcher(api, Default::default()).reflect(writer).for_each(|_| ready(())));
    reader.wait_until_ready().await?;
    let one = reader.get(
        &ObjectRef::new("web-0").within("default"));
    let on_b: Vec<Arc<Pod>> = reader.state_filter(|pod| {
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| {
            spec.node_name.as_deref()
        });
        node == Some("b")
    });
    assert_eq!((one.is_some(), on_b.len()), (true, 2));

    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_sync().await?;
    let by_node = pods.index_by_field("spec.nodeName")?;

    let lister = pods.lister();
    let one = lister.get(("default", "web-0"));
    let on_b = by_node.get("b");
    let web = lister
        .namespace("default")
        .select(&Selector::label("app", "web"));
    assert_eq!((one.is_some(), on_b.len(), web.len()), (true, 2, 2));
    let Some(pod) = one else { panic!("it is there") };
    let name: &str = pod.name();
    let notes: BTreeMap<String, String> =
        pod.annotations();
    let phase: Option<String> =
        pod.field("status.phase")?;
    let whole: Arc<Pod> = pod.decode()?;
    assert_eq!(notes["example.com/team"], "shop");
    assert_eq!((name, phase.as_deref(), whole.spec.is_some()), ("web-0", Some("Pending"), true));
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn selections() -> Outcome {
    let server = server();
    let client = server.client();
    let api: Api<Pod> =
        Api::namespaced(client, "default");
    let config = watcher::Config::default()
        .labels("app=web")
        .fields("spec.nodeName=b");
    let pods = watcher(api, config);
    let mut pods = pin!(pods.touched_objects());
    assert_eq!(pods.next().await.expect("one")?.name_any(), "web-1");
    let client = server.client();
    let factory = SharedInformerFactory::new(client);
    let pods = factory
        .builder_for::<Pod>()
        .namespace("default")
        .labels("app=web")
        .fields("spec.nodeName=b")
        .build();
    factory.start();
    factory.wait_for_sync().await?;
    assert_eq!(pods.lister().len(), 1);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn changes_only() -> Outcome {
    let server = server();
    let api: Api<Pod> = Api::all(server.client());
    let changed = watcher(api, Default::default())
        .default_backoff()
        .touched_objects()
        .predicate_filter(
            predicates::generation,
            Default::default(),
        );
    assert!(pin!(changed).next().await.is_some());
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let registered = pods.handler()
        .only_changes()
        .on_update(|old, new| {
            if old.generation() == new.generation() {
                return;
            }
            println!("{} has a new spec", new.key());
        })
        .register();
    let web = pods.handler()
        .filter(|pod| {
            pod.labels().get("app") == Some("web")
        })
        .stream();
    factory.start();
    registered.wait_for_sync().await?;
    drop(web);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn metadata_and_dynamic() -> Outcome {
    let server = server();
    let client = server.client();
    let api: Api<PartialObjectMeta<Secret>> =
        Api::all(client);
    let secrets = watcher(api, Default::default());
    drop(secrets);
    let client = server.client();
    let gvk = GroupVersionKind::gvk(
        "apps", "v1", "Deployment");
    let kind = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> =
        Api::all_with(client, &kind);
    let writer = reflector::store::Writer::new(kind);
    let deployments = watcher(api, Default::default())
        .reflect(writer);
    drop(deployments);
    let factory = SharedInformerFactory::new(server.client());
    let secrets = factory.metadata::<Secret>();
    let gvk = GroupVersionKind::gvk(
        "apps", "v1", "Deployment");
    let kind = ApiResource::from_gvk(&gvk);
    let deployments = factory.dynamic(&kind);
    factory.start();
    factory.wait_for_sync().await?;
    assert_eq!((secrets.lister().len(), deployments.lister().len()), (0, 0));
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn memory() -> Outcome {
    let server = server();
    let api: Api<Pod> = Api::all(server.client());
    let slim = watcher(api, Default::default())
        .modify(|pod| {
            pod.managed_fields_mut().clear();
            pod.status = None;
        });
    assert!(pin!(slim).next().await.is_some());
    let factory = SharedInformerFactory::new(server.client());
    let slim = factory
        .builder_for::<Pod>()
        .drop_fields(["status"])
        .build();
    factory.start();
    factory.wait_for_sync().await?;
    assert_eq!(slim.lister().len(), 3);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn errors() -> Outcome {
    let server = server();
    let api: Api<Pod> = Api::all(server.client());
    let mut pods = pin!(
        watcher(api, Default::default())
            .default_backoff()
            .applied_objects()
    );
    let next = match pods.next().await {
        Some(Err(error)) => {
            eprintln!("{error}");
            pods.next().await
        }
        other => other,
    };
    assert!(next.is_some());
    let client = server.client();
    let factory = SharedInformerFactory::builder(client)
        .on_error(|report| eprintln!("{report}"))
        .build();
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_sync().await?;
    let ready = pods.has_synced() && pods.is_live();
    let behind: Option<Duration> = pods.staleness();
    assert!(ready && behind.is_some());
    factory.shutdown().await;
    Ok(())
}

struct Cleaner {
    pods: SharedInformer<Pod>,
}

struct Reporter {
    pods: SharedInformer<Pod>,
}

fn parts(
    factory: &SharedInformerFactory,
) -> (Cleaner, Reporter) {
    let cleaner = Cleaner { pods: factory.informer() };
    let reporter = Reporter { pods: factory.informer() };
    (cleaner, reporter) // one list, one watch
}

#[tokio::test(start_paused = true)]
async fn sharing() -> Outcome {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let (cleaner, reporter) = parts(&factory);
    factory.start();
    factory.wait_for_sync().await?;
    assert_eq!(cleaner.pods.lister().len(), reporter.pods.lister().len());
    assert_eq!(factory.status().len(), 1);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn on_an_api_that_is_there() -> Outcome {
    let server = server();
    let client: Client = server.client();
    let api: Api<Pod> =
        Api::namespaced(client, "default");
    let source = KubeListWatch::from(api);
    let pods = SharedInformer::<Pod>::from_source(source)
        .build();
    pods.start();
    pods.wait_for_sync().await?;
    let pod: Object<Pod> = pods.lister().get("default/web-0").expect("it is there");
    assert_eq!(pod.name(), "web-0");
    pods.shutdown().await;
    Ok(())
}
