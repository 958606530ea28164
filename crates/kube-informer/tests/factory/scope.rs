//! FA-6 to FA-8: namespaces, selectors and transforms of a factory.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::core::{ApiResource, DynamicObject};
use kube::discovery::Scope;
use kube_informer::{SharedInformerFactory, Transform};
use serde_json::json;

use super::scene::{Maps, map, requests, server, settle};

#[tokio::test(start_paused = true)]
async fn fa6_a_namespace_is_of_all_kinds_that_have_one() {
    let server = server();
    server
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .unwrap();
    server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).unwrap();
    server.add("here", "1");
    let mut elsewhere = map("there", "1");
    elsewhere["metadata"]["namespace"] = "shop".into();
    server.create(elsewhere).unwrap();
    let factory = SharedInformerFactory::builder(server.client()).namespace("shop").build();
    let maps = factory.informer::<ConfigMap>();
    let nodes = factory.informer::<Node>();
    let namespaces = factory.informer::<Namespace>();
    let everywhere = factory.builder_for::<ConfigMap>().all_namespaces().build();
    let other = factory.builder_for::<ConfigMap>().namespace("default").build();
    let node = ApiResource::erase::<Node>(&());
    let dynamic = factory.builder_with::<DynamicObject>(&node).scope(&Scope::Cluster).build();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(maps.lister().keys()[0].to_string(), "shop/there");
    assert_eq!((maps.lister().len(), other.lister().len(), everywhere.lister().len()), (1, 1, 2));
    assert_eq!((nodes.lister().len(), dynamic.lister().len()), (1, 1));
    assert_eq!(namespaces.lister().len(), 5);
    let mut paths: Vec<_> = requests(&server)
        .iter()
        .map(|request| request.uri.split('?').next().unwrap_or_default().to_owned())
        .collect();
    paths.sort();
    // Typed and dynamic nodes share one.
    assert_eq!(
        paths,
        [
            "/api/v1/configmaps",
            "/api/v1/namespaces",
            "/api/v1/namespaces/default/configmaps",
            "/api/v1/namespaces/shop/configmaps",
            "/api/v1/nodes",
        ]
    );
    // FA-8.
    assert_eq!(everywhere.lister().by_index("namespace", "shop").unwrap().len(), 1);
    assert_eq!(everywhere.lister().namespace("default").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fa6_selectors_are_of_all_and_leaving_them_is_a_delete() {
    let server = server();
    server.add("in", "yes");
    server.add("out", "no");
    let factory = SharedInformerFactory::builder(server.client()).labels("value=yes").build();
    let maps = factory.informer::<ConfigMap>();
    let one = factory.builder_for::<ConfigMap>().fields("metadata.name=out").build();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!((maps.lister().len(), one.lister().len()), (1, 0));
    server.change("out", "yes");
    server.change("in", "no");
    settle().await;
    assert_eq!(maps.lister().keys()[0].name(), "out");
    assert_eq!(one.lister().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fa6_the_factory_transform_runs_first() {
    let server = server();
    server.add("a", "1");
    let add = |text: &'static str| {
        Transform::map(move |map: &mut ConfigMap| {
            map.data.get_or_insert_default().entry("value".to_owned()).or_default().push_str(text);
        })
    };
    let factory = SharedInformerFactory::builder(server.client()).transform(add("-f")).build();
    let plain = factory.informer::<ConfigMap>();
    let own = factory.builder_for::<ConfigMap>().transform(add("-i")).build();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let value = |informer: &kube_informer::SharedInformer<ConfigMap>| {
        let object = informer.lister().get(("default", "a")).unwrap();
        object.field::<String>("data.value").unwrap().unwrap()
    };
    assert_eq!((value(&plain), value(&own)), ("1-f".to_owned(), "1-f-i".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn fa6_fields_dropped_by_the_factory_are_dropped_everywhere() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::builder(server.client()).drop_fields(["data"]).build();
    let typed = factory.informer::<ConfigMap>();
    let dynamic = factory.dynamic(&ApiResource::erase::<ConfigMap>(&()));
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(typed.lister().list()[0].field::<String>("data.value").unwrap(), None);
    assert!(dynamic.lister().list()[0].is_same_instance(&typed.lister().list()[0]));
}

#[tokio::test(start_paused = true)]
async fn fa6_transforms_of_a_factory_are_done_one_after_the_other() {
    let server = server();
    let mut secret = map("a", "1");
    secret["data"]["password"] = "hunter2".into();
    secret["data"]["token"] = "t".into();
    server.create(secret).unwrap();
    let note = |text: &'static str| {
        Transform::map(move |map: &mut ConfigMap| {
            let data = map.data.get_or_insert_default();
            let seen: Vec<_> = data.keys().cloned().collect();
            data.insert(text.to_owned(), seen.join(","));
        })
    };
    let factory = SharedInformerFactory::builder(server.client())
        .drop_fields(["data.password"])
        .transform(note("first"))
        .drop_fields(["data.token"])
        .transform(note("second"))
        .build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let kept: serde_json::Value = maps.lister().list()[0].field("data").unwrap().unwrap();
    let expected = json!({"value": "1", "first": "token,value", "second": "first,value"});
    assert_eq!(kept, expected);
}
