//! FA-1: equal requests share an informer, according to the server's record.

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::core::{ApiResource, DynamicObject};
use kube_informer::{SharedInformerFactory, Storage, Transform};

use super::scene::{Errors, Maps, asked, requests, server, settle};

/// Returns the number of streams that a factory requests.
async fn streams(server: &ApiServer, factory: &SharedInformerFactory) -> usize {
    factory.start();
    factory.wait_for_sync().await.expect("all is well");
    assert_eq!(server.watches(), requests(server).len(), "each is one request");
    assert!(asked(server).iter().all(|asked| asked == "stream"));
    server.watches()
}

#[tokio::test(start_paused = true)]
async fn fa1_typed_and_dynamic_requests_share_one_informer() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::new(server.client());
    let typed = factory.informer::<ConfigMap>();
    let again = factory.clone().informer::<ConfigMap>();
    let built = factory.builder_for::<ConfigMap>().build();
    let dynamic = factory.dynamic(&ApiResource::erase::<ConfigMap>(&()));
    assert_eq!(streams(&server, &factory).await, 1);
    // Also if it is requested while the factory runs.
    let late = factory.informer::<ConfigMap>();
    assert!(late.has_synced());
    settle().await;
    assert_eq!(server.watches(), 1);
    // The very same objects.
    let object = typed.lister().get(("default", "a")).unwrap();
    for other in [again, built, late] {
        assert!(object.is_same_instance(&other.lister().get(("default", "a")).unwrap()));
    }
    let other = dynamic.lister().get(("default", "a")).unwrap();
    assert!(object.is_same_instance(&other));
    let decoded: &DynamicObject = &other.decode().unwrap();
    assert_eq!(decoded.data["data"]["value"], "1");
    assert_eq!(object.decode().unwrap().data.as_ref().unwrap()["value"], "1");
    assert_eq!(factory.status().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fa1_metadata_informers_are_separate() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::new(server.client());
    let whole = factory.informer::<ConfigMap>();
    let metadata = factory.metadata::<ConfigMap>();
    let again = factory.metadata::<ConfigMap>();
    assert_eq!(streams(&server, &factory).await, 2);
    let object = metadata.lister().get(("default", "a")).unwrap();
    assert!(object.is_same_instance(&again.lister().get(("default", "a")).unwrap()));
    assert_eq!(object.field::<String>("data.value").unwrap(), None);
    assert_eq!(object.decode().unwrap().metadata.name.as_deref(), Some("a"));
    assert_eq!(object.labels().get("value"), Some("1"));
    let object = whole.lister().get(("default", "a")).unwrap();
    assert_eq!(object.field::<String>("data.value").unwrap().as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn fa1_b23_whatever_makes_a_difference_makes_another_informer() {
    // client-go has one informer per type and factory.
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let builder = || factory.builder_for::<ConfigMap>();
    let all = [
        builder().build(),
        builder().namespace("default").build(),
        builder().labels("value=1").build(),
        builder().fields("metadata.name=a").build(),
        builder().drop_fields(["data"]).build(),
        builder().map(|_| {}).build(),
        builder().storage(Storage::Decoded).build(),
        builder().keep_managed_fields().build(),
    ];
    let _secrets = factory.informer::<Secret>();
    assert_eq!(streams(&server, &factory).await, all.len() + 1);
    let mut names: Vec<_> = factory.status().iter().map(|status| status.name.to_string()).collect();
    names.sort();
    names.dedup();
    assert!(names.contains(&"configmaps in default".to_owned()), "{names:?}");
    assert!(names.contains(&"configmaps, labels value=1".to_owned()), "{names:?}");
    assert!(names.contains(&"secrets".to_owned()), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn fa1_equal_options_share_whoever_gives_them() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let lean = Transform::drop_fields(["data"]);
    let same = Transform::map(|_: &mut ConfigMap| {});
    let builder = || factory.builder_for::<ConfigMap>();
    let _all = [
        builder().drop_fields(["data"]).build(),
        builder().transform(lean.clone()).build(),
        builder().transform(same.clone()).build(),
        builder().transform(same).build(),
        builder().storage(Storage::Decoded).build(),
        builder().storage(Storage::Decoded).build(),
        builder().storage(Storage::Packed).build(),
        // Settings of each caller do not create another informer.
        builder().resync(std::time::Duration::from_secs(9)).build(),
        builder().page_size(10).seed(3).build(),
    ];
    assert_eq!(streams(&server, &factory).await, 4);
}

#[tokio::test(start_paused = true)]
async fn fa1_decoded_as_another_type_is_another_informer() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::builder(server.client()).storage(Storage::Decoded).build();
    let typed = factory.informer::<ConfigMap>();
    let dynamic = factory.dynamic(&ApiResource::erase::<ConfigMap>(&()));
    assert_eq!(streams(&server, &factory).await, 2);
    let object = typed.lister().get(("default", "a")).unwrap();
    let kept = std::sync::Arc::downgrade(&object.decode().unwrap());
    assert!(kept.upgrade().is_some());
    assert!(dynamic.lister().get(("default", "a")).unwrap().decode().is_ok());
}

#[tokio::test(start_paused = true)]
async fn e3_everybody_who_shares_is_told_of_errors() {
    let server = server();
    let (of_factory, first, second) = (Errors::default(), Errors::default(), Errors::default());
    let factory =
        SharedInformerFactory::builder(server.client()).on_error(of_factory.recorder()).build();
    let builder = || factory.builder_for::<ConfigMap>();
    let _first = builder().on_error(first.recorder()).build();
    let _second = builder().on_error(second.recorder()).build();
    server.faults().any().inject(embedded_apiserver::Fault::status(503));
    factory.start();
    settle().await;
    assert_eq!([of_factory.len(), first.len(), second.len()], [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn fa1_two_factories_share_nothing() {
    let server = server();
    let factories = [0, 1].map(|_| SharedInformerFactory::new(server.client()));
    for factory in &factories {
        factory.informer::<ConfigMap>();
        factory.start();
    }
    settle().await;
    assert_eq!(server.watches(), 2);
}

#[tokio::test(start_paused = true)]
async fn fa1_cluster_scoped_informers_are_shared_too() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let _typed = factory.informer::<Node>();
    let _dynamic = factory.dynamic(&ApiResource::erase::<Node>(&()));
    assert_eq!(streams(&server, &factory).await, 1);
}
