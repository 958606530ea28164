//! Lists.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube_informer::list_watch::ListOptions;
use kube_informer::{KubeListWatch, ListWatch};
use serde_json::{Value, json};

use crate::support::{
    Page, add, add_labelled, add_namespace, create, last_uri, list, list_all, list_error, maps,
    server,
};

fn json_of(page: &Page, at: usize) -> Value {
    serde_json::from_slice(&page.objects[at].to_json().unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_its_objects_and_its_version() {
    let server = server();
    add(&server, "default", "a");
    let newest = add(&server, "default", "b");
    let page = list_all(&maps(&server)).await;
    assert_eq!(page.keys(), ["default/a", "default/b"]);
    assert_eq!((page.version, page.token), (newest.clone(), None));
    assert_eq!(page.objects[1].resource_version().as_str(), newest);
    let map = page.objects[0].clone().cast::<ConfigMap>().decode().unwrap();
    assert_eq!(map.data.as_ref().unwrap()["key"], "Größe");
}

#[tokio::test(start_paused = true)]
async fn items_know_what_they_are_although_the_list_does_not_say_it_for_each() {
    let server = server();
    add(&server, "default", "a");
    let item = json_of(&list_all(&maps(&server)).await, 0);
    assert_eq!((&item["apiVersion"], &item["kind"]), (&json!("v1"), &json!("ConfigMap")));
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_a_version_too() {
    let server = server();
    let page = list_all(&maps(&server)).await;
    assert!(page.objects.is_empty() && !page.version.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_is_made_of_a_type_a_resource_or_an_api() {
    let server = server();
    add_namespace(&server, "web");
    add(&server, "default", "a");
    add(&server, "web", "b");
    let client = || server.client();
    let resource = ApiResource::erase::<ConfigMap>(&());
    let dynamic = Api::<DynamicObject>::namespaced_with(client(), "web", &resource);
    for (source, name, keys) in [
        (KubeListWatch::of::<ConfigMap>(client()), "configmaps", &["default/a", "web/b"][..]),
        (KubeListWatch::new(client(), &resource), "configmaps", &["default/a", "web/b"]),
        (KubeListWatch::new(client(), &resource).namespace("web"), "configmaps in web", &["web/b"]),
        (Api::<ConfigMap>::all(client()).into(), "configmaps", &["default/a", "web/b"]),
        (Api::<ConfigMap>::namespaced(client(), "web").into(), "configmaps in web", &["web/b"]),
        (dynamic.into(), "configmaps in web", &["web/b"]),
    ] {
        assert_eq!(source.name(), name);
        assert_eq!(list_all(&source).await.keys(), keys);
        assert_eq!(format!("{source:?}"), format!("KubeListWatch({name})"));
    }
    let all = KubeListWatch::of::<ConfigMap>(client()).namespace("web").namespace("");
    assert_eq!(list_all(&all).await.objects.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_objects_have_keys_without_a_namespace() {
    let server = server();
    let page = list_all(&KubeListWatch::of::<Namespace>(server.client())).await;
    assert!(page.keys().contains(&"default"), "{:?}", page.keys());
}

fn define_wires(server: &embedded_apiserver::ApiServer) -> ApiResource {
    let spec = json!({"spec": {
        "group": "test.example", "scope": "Namespaced",
        "names": {"plural": "wires", "singular": "wire", "kind": "Wire", "listKind": "WireList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
                      "schema": {"openAPIV3Schema": {"type": "object"}},
                      "selectableFields": [{"jsonPath": ".spec.colour"}]}]}});
    let metadata = json!({"name": "wires.test.example"});
    create(server, "apiextensions.k8s.io/v1", "CustomResourceDefinition", &metadata, &spec);
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("test.example", "v1", "Wire"), "wires")
}

#[tokio::test(start_paused = true)]
async fn custom_resources_come_with_their_items_first() {
    let server = server();
    let wires = define_wires(&server);
    for (name, colour) in [("a", "red"), ("b", "blue")] {
        let metadata = json!({"namespace": "default", "name": name, "labels": {"colour": colour}});
        let spec = json!({"spec": {"colour": colour}});
        create(&server, "test.example/v1", "Wire", &metadata, &spec);
    }
    let source = KubeListWatch::new(server.client(), &wires);
    assert_eq!(source.name(), "wires.test.example/v1");
    let page = list_all(&source).await;
    assert_eq!(page.keys(), ["default/a", "default/b"]);
    assert_eq!(page.objects[1].field::<String>("spec.colour").unwrap().unwrap(), "blue");
    assert_eq!(list_all(&source.clone().labels("colour=red")).await.keys(), ["default/a"]);
    assert_eq!(list_all(&source.fields("spec.colour=blue")).await.keys(), ["default/b"]);
    // The same if the kind is unknown.
    let api = Api::<DynamicObject>::all_with(server.client(), &wires);
    assert_eq!(list_all(&KubeListWatch::from(api)).await.keys(), ["default/a", "default/b"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_all_that_is_asked_for() {
    let server = server();
    add_labelled(&server, "default", "a", &json!({"l": "m"}));
    let client = || server.client();
    for source in [
        maps(&server).metadata_only(),
        KubeListWatch::of::<PartialObjectMeta<ConfigMap>>(client()).namespace("default"),
        Api::<PartialObjectMeta<ConfigMap>>::namespaced(client(), "default").into(),
    ] {
        assert_eq!(source.name(), "configmaps in default, metadata only");
        let page = list_all(&source).await;
        assert_eq!(page.keys(), ["default/a"]);
        assert_eq!(page.objects[0].labels().get("l"), Some("m"));
        assert_eq!(page.objects[0].field::<Value>("data").unwrap(), None);
        assert_eq!(json_of(&page, 0)["kind"], "PartialObjectMetadata");
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_select() {
    let server = server();
    add_labelled(&server, "default", "a", &json!({"app": "web", "tier": "x"}));
    add_labelled(&server, "default", "b", &json!({"app": "web", "tier": "y"}));
    add_labelled(&server, "default", "c", &json!({"app": "db"}));
    let source = maps(&server).labels("app=web,tier in (y, z)");
    assert_eq!(source.name(), "configmaps in default, labels app=web,tier in (y, z)");
    assert_eq!(list_all(&source).await.keys(), ["default/b"]);
    let source = maps(&server).fields("metadata.name!=b");
    assert_eq!(list_all(&source).await.keys(), ["default/a", "default/c"]);
}

#[tokio::test(start_paused = true)]
async fn r23_pages_follow_each_other_at_one_version() {
    let server = server();
    for name in ["a", "b", "c", "d", "e"] {
        add(&server, "default", name);
    }
    let source = maps(&server);
    let mut options = ListOptions::default();
    options.limit = Some(2);
    let first = list(&source, options.clone()).await.unwrap();
    assert_eq!(first.keys(), ["default/a", "default/b"]);
    // An object that is created now is on no page of this list.
    add(&server, "default", "f");
    let mut keys: Vec<String> = Vec::new();
    let mut token = first.token;
    while let Some(next) = token {
        options.continue_token = Some(next);
        options.resource_version = Some("1".into());
        let page = list(&source, options.clone()).await.unwrap();
        assert!(!last_uri(&server).contains("resourceVersion"), "{}", last_uri(&server));
        assert_eq!(page.version, first.version);
        keys.extend(page.keys().iter().map(ToString::to_string));
        token = page.token;
    }
    assert_eq!(keys, ["default/c", "default/d", "default/e"]);
}

#[tokio::test(start_paused = true)]
async fn r22_any_version_can_be_asked_for_in_pages() {
    let server = server();
    add(&server, "default", "a");
    let mut options = ListOptions::default();
    options.limit = Some(500);
    options.resource_version = Some("0".into());
    let page = list(&maps(&server), options.clone()).await.unwrap();
    assert_eq!(page.keys(), ["default/a"]);
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(last_uri(&server), format!("{path}?limit=500&resourceVersion=0"));

    options.resource_version = Some("1".into());
    options.limit = None;
    list(&maps(&server), options).await.unwrap();
    let query = "resourceVersion=1&resourceVersionMatch=NotOlderThan";
    assert_eq!(last_uri(&server), format!("{path}?{query}"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_in_a_path_is_an_error_and_not_a_request() {
    let server = server();
    for namespace in ["a/b", "a?watch=true", "..", "A B"] {
        let api = Api::<ConfigMap>::namespaced(server.client(), namespace);
        for source in [maps(&server).namespace(namespace), KubeListWatch::from(api)] {
            let error = list_error(&source).await.to_string();
            assert!(error.contains(&format!("{namespace:?} cannot be a namespace")), "{error}");
        }
    }
    let mut resource = ApiResource::erase::<ConfigMap>(&());
    resource.plural = "configmaps/a".into();
    let error = list_error(&KubeListWatch::new(server.client(), &resource)).await.to_string();
    assert!(error.contains("\"configmaps/a\" cannot be the plural"), "{error}");
    assert!(server.requests().is_empty());
}
