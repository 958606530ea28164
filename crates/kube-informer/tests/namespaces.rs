//! Several namespaces in one informer: a list and a watch for each, and one cache.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Denial, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{
    Event, FinalState, KubeListWatch, ListWatch, SharedInformer, SharedInformerFactory,
};
use serde_json::json;
use tokio::time::sleep;

fn server() -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    for namespace in ["a", "b", "c"] {
        server
            .create(
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .unwrap();
        put(&server, namespace, "one");
    }
    server
}

fn put(server: &ApiServer, namespace: &str, name: &str) {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name},
    });
    server.create(map).unwrap();
}

fn informer(server: &ApiServer) -> (SharedInformerFactory, SharedInformer<ConfigMap>) {
    let factory = SharedInformerFactory::builder(server.client()).seed(1).build();
    let maps = factory.builder_for::<ConfigMap>().namespaces(["b", "a", "b"]).build();
    (factory, maps)
}

fn keys(maps: &SharedInformer<ConfigMap>) -> BTreeSet<String> {
    maps.lister().keys().iter().map(ToString::to_string).collect()
}

fn set<const N: usize>(keys: [&str; N]) -> BTreeSet<String> {
    keys.map(str::to_owned).into()
}

#[tokio::test(start_paused = true)]
async fn they_are_one_cache_with_a_list_and_a_watch_each() {
    let server = server();
    let (factory, maps) = informer(&server);
    server.clear_record();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(keys(&maps), set(["a/one", "b/one"]));
    assert_eq!(maps.name(), "configmaps in a, b");

    put(&server, "a", "two");
    put(&server, "c", "two");
    server.delete("configmaps", "b", "one").unwrap();
    // Bookmarks advance both parts.
    maps.wait_for_version(server.store().revision()).await.unwrap();
    assert_eq!(keys(&maps), set(["a/one", "a/two"]));
    assert!(maps.is_live());
    let path = |uri: &str| uri.split('?').next().unwrap_or_default().to_owned();
    let asked: BTreeSet<_> = server.requests().iter().map(|request| path(&request.uri)).collect();
    assert_eq!(
        asked,
        set(["/api/v1/namespaces/a/configmaps", "/api/v1/namespaces/b/configmaps"]),
        "nothing that a permission for these two does not allow"
    );
}

#[tokio::test(start_paused = true)]
async fn i7_the_version_is_that_of_the_part_that_is_least_far() {
    let server = server();
    let (factory, maps) = informer(&server);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let before = maps.resource_version();
    for number in 0..20 {
        put(&server, "a", &format!("new-{number}"));
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(maps.lister().namespace("a").len(), 21);
    assert_eq!(
        maps.resource_version(),
        before,
        "b may have changed meanwhile, nobody said it has not"
    );
    sleep(Duration::from_secs(70)).await;
    assert!(maps.resource_version() > before, "now somebody has");
}

#[tokio::test(start_paused = true)]
async fn i6_a_relist_of_one_deletes_nothing_of_the_other() {
    let server = server();
    let (factory, maps) = informer(&server);
    let gone = Arc::new(Mutex::new(Vec::new()));
    let seen = gone.clone();
    maps.handler().for_each(move |event| {
        if let Event::Deleted(deleted) = event {
            seen.lock().unwrap().push((deleted.key().to_string(), deleted.final_state));
        }
    });
    factory.start();
    factory.wait_for_sync().await.unwrap();

    let denied = server.access().deny(Denial::all().resource("configmaps").namespace("a"));
    server.drop_watches();
    server.delete("configmaps", "a", "one").unwrap();
    put(&server, "b", "two");
    server.store().compact(u64::MAX);
    sleep(Duration::from_secs(5)).await;
    assert!(!maps.is_live(), "a part of it is not");
    server.access().allow(denied);
    sleep(Duration::from_secs(180)).await;

    assert_eq!(keys(&maps), set(["b/one", "b/two"]));
    assert_eq!(*gone.lock().unwrap(), [("a/one".to_owned(), FinalState::Unknown)]);
    assert!(maps.is_live());
}

#[tokio::test(start_paused = true)]
async fn l4_it_is_synced_when_all_are_and_says_which_one_is_not() {
    let server = server();
    let denied = server.access().deny(Denial::verbs([Verb::List, Verb::Watch]).namespace("b"));
    let (factory, maps) = informer(&server);
    let mut events = maps.events();
    factory.start();
    let error = maps.wait_for_sync().await.unwrap_err().to_string();
    assert!(error.contains("(403)") && error.contains(r#"namespace "b""#), "{error}");
    assert!(!maps.has_synced());
    // Cached objects are readable already.
    let Some(Event::Added { object, initial: true }) = events.next().await else { panic!() };
    assert_eq!(object.key().to_string(), "a/one");

    server.access().allow(denied);
    maps.wait_for_sync().await.unwrap();
    let Some(Event::Added { object, initial: true }) = events.next().await else { panic!() };
    assert_eq!(object.key().to_string(), "b/one");
    assert!(matches!(events.next().await, Some(Event::Synced)));
    factory.shutdown().await;
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn fa1_the_same_namespaces_in_any_order_are_the_same_informer() {
    let server = server();
    let (factory, _maps) = informer(&server);
    let _same = factory.builder_for::<ConfigMap>().namespaces(["a", "b"]).build();
    assert_eq!(factory.status().len(), 1);
    let _other = factory.builder_for::<ConfigMap>().namespace("a").build();
    assert_eq!(factory.status().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn fa6_an_empty_namespace_is_all_of_them_and_deletes_arrive() {
    let server = server();
    let factory = SharedInformerFactory::builder(server.client()).seed(1).build();
    let maps = factory.builder_for::<ConfigMap>().namespaces("a,".split(',')).build();
    let empty = factory.builder_for::<ConfigMap>().namespace("").build();
    let _all = factory.informer::<ConfigMap>();
    assert_eq!(factory.status().len(), 1, "they are one informer");
    assert_eq!((maps.name(), empty.name()), ("configmaps", "configmaps"));
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(keys(&maps), set(["a/one", "b/one", "c/one"]));

    // One delete that is observed, and one that a relist finds.
    server.delete("configmaps", "a", "one").unwrap();
    maps.wait_for_version(server.store().revision()).await.unwrap();
    assert_eq!(keys(&maps), set(["b/one", "c/one"]));
    server.refuse_connections();
    server.delete("configmaps", "b", "one").unwrap();
    server.store().compact(u64::MAX);
    server.accept_connections();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(keys(&maps), set(["c/one"]));
}

#[tokio::test(start_paused = true)]
async fn fa6_namespaces_of_a_factory_hold_for_all_of_its_informers() {
    let server = server();
    let several: Vec<String> = ["b", "a", "b"].map(str::to_owned).into();
    let factory =
        SharedInformerFactory::builder(server.client()).seed(1).namespaces(&several).build();
    let maps = factory.informer::<ConfigMap>();
    let nodes = factory.informer::<k8s_openapi::api::core::v1::Node>();
    let everywhere = factory.builder_for::<ConfigMap>().all_namespaces().build();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(keys(&maps), set(["a/one", "b/one"]));
    assert_eq!((maps.name(), nodes.name()), ("configmaps in a, b", "nodes"));
    assert_eq!(everywhere.lister().len(), 3);

    let all = SharedInformerFactory::builder(server.client()).namespace("").build();
    let maps = all.informer::<ConfigMap>();
    let _everywhere = all.builder_for::<ConfigMap>().all_namespaces().build();
    assert_eq!((maps.name(), all.status().len()), ("configmaps", 1));
}

#[tokio::test(start_paused = true)]
async fn names_are_taken_as_any_text() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let (owned, shared): (String, Arc<str>) = ("a".to_owned(), "a".into());
    let builder = || factory.builder_for::<ConfigMap>();
    let all = [
        builder().namespace("a").build(),
        builder().namespace(&owned).build(),
        builder().namespace(owned.clone()).build(),
        builder().namespace(&shared).build(),
        builder().namespaces(["a"].iter()).build(),
        builder().namespaces(std::slice::from_ref(&owned)).build(),
    ];
    assert_eq!(factory.status().len(), 1);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let one = "one".to_owned();
    let lister = all[0].lister();
    assert!(lister.namespace(&owned).get(&one).is_some());
    assert!(lister.namespace(owned.clone()).get(one).is_some());
    let source = KubeListWatch::of::<ConfigMap>(server.client());
    assert_eq!(source.clone().namespace(&owned).name(), "configmaps in a");
    assert_eq!(source.namespace(owned).namespace(String::new()).name(), "configmaps");
    let version = server.store().revision().to_string();
    all[0].wait_for_version(&version).await.unwrap();
}
