//! FA-: factories.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{ApiResource, GroupVersionKind};
use kube_informer::{NotSyncedReason, SharedInformerFactory, Transform};
use tokio::time::{Instant, timeout};

use crate::scene::{Notes, add, lists, names, seconds, server, settle};

const LONG: Duration = Duration::from_secs(3600);

fn factory(server: &ApiServer) -> SharedInformerFactory {
    SharedInformerFactory::new(server.client())
}

#[tokio::test(start_paused = true)]
async fn fa1_equal_requests_share_an_informer() {
    let server = server();
    add(&server, "a");
    let factory = factory(&server);
    let maps = factory.informer::<ConfigMap>();
    let same = [
        factory.informer::<ConfigMap>().name().to_owned(),
        factory.dynamic(&ApiResource::erase::<ConfigMap>(&())).name().to_owned(),
        factory.builder_for::<ConfigMap>().resync(Duration::from_secs(9)).build().name().to_owned(),
    ];
    assert!(same.iter().all(|name| name == maps.name()), "{same:?}");
    let others = [
        factory.builder_for::<ConfigMap>().namespace("default").build(),
        factory.builder_for::<ConfigMap>().labels("app=web").build(),
        factory.builder_for::<ConfigMap>().fields("metadata.name=a").build(),
        factory.builder_for::<ConfigMap>().drop_fields(["data"]).build(),
    ];
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(factory.status().len(), 5);
    assert_eq!(lists(&server), 5);
    let sizes: Vec<_> = others.iter().map(|other| other.lister().len()).collect();
    assert_eq!((names(&maps), sizes), (vec!["a".to_owned()], vec![1, 0, 1, 1]));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn fa2_fa3_late_informers_start_until_the_stop() {
    let server = server();
    let factory = factory(&server);
    let maps = factory.informer::<ConfigMap>();
    settle().await;
    assert!(server.requests().is_empty(), "nothing runs before the start");
    factory.start();
    factory.start();
    maps.wait_for_sync().await.unwrap();
    let pods = factory.informer::<Pod>();
    pods.wait_for_sync().await.unwrap();
    assert_eq!(lists(&server), 2);
    factory.stop();
    let nodes = factory.informer::<Node>();
    factory.start();
    seconds(10).await;
    assert!(nodes.is_stopped() && pods.is_stopped());
    assert_eq!(lists(&server), 2);
}

#[tokio::test(start_paused = true)]
async fn fa4_shutdown_stops_and_waits_for_all_informers() {
    let server = server();
    let factory = factory(&server);
    let (maps, pods) = (factory.informer::<ConfigMap>(), factory.informer::<Pod>());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    settle().await;
    assert_eq!(server.watches(), 2);
    let began = Instant::now();
    tokio::join!(factory.shutdown(), factory.shutdown());
    assert_eq!(began.elapsed(), Duration::ZERO);
    settle().await;
    assert_eq!(server.watches(), 0);
    assert!(maps.is_stopped() && pods.is_stopped());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn fa5_waiting_covers_all_informers() {
    let server = server();
    let factory = factory(&server);
    factory.wait_for_sync().await.expect("nothing to wait for");
    let (maps, _pods) = (factory.informer::<ConfigMap>(), factory.informer::<Pod>());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    let waited = timeout(LONG, factory.wait_for_sync()).await.expect("it does not hang");
    assert_eq!(waited.unwrap_err().reason, NotSyncedReason::NotStarted);
    factory.start();
    factory.wait_for_sync().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fa6_what_the_factory_says_holds_for_all_and_can_be_added_to() {
    let server = server();
    for (namespace, name, app) in [("web", "a", "x"), ("web", "b", "y"), ("db", "c", "x")] {
        if server.get("namespaces", "", namespace).is_none() {
            let metadata = serde_json::json!({"name": namespace});
            let object =
                serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            server.create(object).unwrap();
        }
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v", "l": "w"},
            "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}},
        });
        server.create(object).unwrap();
    }
    let factory = SharedInformerFactory::builder(server.client())
        .namespace("web")
        .labels("app=x")
        .transform(Transform::drop_fields(["data.k"]))
        .build();
    let maps = factory.informer::<ConfigMap>();
    let all = factory.builder_for::<ConfigMap>().all_namespaces().build();
    let less = factory.builder_for::<ConfigMap>().drop_fields(["data.l"]).build();
    let nodes = factory.informer::<Node>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(names(&maps), ["a"]);
    assert_eq!(names(&all), ["a", "c"]);
    assert!(nodes.name().starts_with("nodes") && !nodes.name().contains("web"));
    let data = |maps: &kube_informer::SharedInformer<ConfigMap>| {
        let map = maps.lister().get(("web", "a")).unwrap();
        map.field::<serde_json::Value>("data").unwrap().unwrap()
    };
    assert_eq!(data(&maps), serde_json::json!({"l": "w"}));
    assert_eq!(data(&less), serde_json::json!({}), "both transforms");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn fa7_a_resource_that_is_not_served_is_retried_slowly() {
    let server = server();
    let reports = Notes::default();
    let factory =
        SharedInformerFactory::builder(server.client()).on_error(reports.reporter()).build();
    let unknown = GroupVersionKind::gvk("example.com", "v1", "Nothing");
    let nothing = factory.dynamic(&ApiResource::from_gvk(&unknown));
    factory.start();
    let error = nothing.wait_for_sync().await.unwrap_err().to_string();
    assert!(error.contains("nothings.example.com"), "{error}");
    let reports = reports.take();
    assert!(reports[0].error.is_not_found(), "{}", reports[0]);
    assert!((6..=9).contains(&reports.len()), "in two minutes: {}", reports.len());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn fa8_s10_every_cache_has_an_index_by_namespace() {
    let server = server();
    add(&server, "a");
    let factory = factory(&server);
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(maps.lister().by_index("namespace", "default").unwrap().len(), 1);
    assert!(maps.lister().by_index("namespace", "other").unwrap().is_empty());
    factory.shutdown().await;
}
