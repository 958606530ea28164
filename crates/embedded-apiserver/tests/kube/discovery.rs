//! Discovery, and objects whose type is known only at run time.

use std::collections::BTreeSet;

use embedded_apiserver::ApiServer;
use futures::{StreamExt, TryStreamExt};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope, pinned_kind, verbs};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;

use crate::document::Document;

fn served(discovery: &Discovery) -> BTreeSet<String> {
    let groups = discovery.groups().flat_map(|group| {
        group.versions().flat_map(|version| {
            let resources = group.versioned_resources(version).into_iter();
            resources.map(|(resource, capabilities)| {
                let scope = if capabilities.scope == Scope::Namespaced { "in" } else { "of" };
                let mut verbs = capabilities.operations;
                verbs.sort();
                let ApiResource { api_version, kind, plural, .. } = resource;
                format!("{api_version} {kind} {plural} {scope} {}", verbs.join(","))
            })
        })
    });
    groups.collect()
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_discovery_say_the_same() {
    let server = ApiServer::start();
    server.create(serde_json::to_value(Document::crd()).unwrap()).unwrap();
    let one_by_one = Discovery::new(server.client()).run().await.unwrap();
    let requests = server.requests().len();
    assert!(requests > 10, "a request for each version of each group: {requests}");
    server.clear_record();
    let at_once = Discovery::new(server.client()).run_aggregated().await.unwrap();
    assert_eq!(server.requests().len(), 2);
    assert_eq!(served(&one_by_one), served(&at_once));
    let all = "create,delete,deletecollection,get,list,patch,update,watch";
    for wanted in [
        format!("v1 Pod pods in {all}"),
        format!("v1 Node nodes of {all}"),
        format!("apps/v1 Deployment deployments in {all}"),
        format!("tests.example.com/v1 Document documents in {all}"),
    ] {
        assert!(served(&at_once).contains(&wanted), "{wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_finds_a_kind_and_what_can_be_done_with_it() {
    let server = ApiServer::start();
    let client = server.client();
    let (pods, capabilities) =
        pinned_kind(&client, &GroupVersionKind::gvk("", "v1", "Pod")).await.unwrap();
    assert_eq!((pods.plural.as_str(), pods.api_version.as_str()), ("pods", "v1"));
    assert!(capabilities.supports_operation(verbs::WATCH));
    assert!(capabilities.subresources.iter().any(|(name, _)| name.plural == "status"));
    let document = GroupVersionKind::gvk("tests.example.com", "v1", "Document");
    assert!(pinned_kind(&client, &document).await.is_err());
    server.create(serde_json::to_value(Document::crd()).unwrap()).unwrap();
    let (found, capabilities) = pinned_kind(&client, &document).await.unwrap();
    assert_eq!((found.plural.as_str(), capabilities.scope), ("documents", Scope::Namespaced));
    let filtered = Discovery::new(client).filter(&["apps"]).run().await.unwrap();
    assert!(filtered.has_group("apps") && !filtered.has_group("batch"));
    let deployment = GroupVersionKind::gvk("apps", "v1", "Deployment");
    assert_eq!(filtered.resolve_gvk(&deployment).unwrap().0.plural, "deployments");
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_go_through_all_verbs() {
    let server = ApiServer::start();
    server.create(serde_json::to_value(Document::crd()).unwrap()).unwrap();
    let client = server.client();
    let kind = GroupVersionKind::gvk("tests.example.com", "v1", "Document");
    let (resource, _) = pinned_kind(&client, &kind).await.unwrap();
    let documents: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let mut watch = documents.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let document = DynamicObject::new("d", &resource).data(json!({"spec": {"text": "one"}}));
    let made = documents.create(&PostParams::default(), &document).await.unwrap();
    assert_eq!(made.types.as_ref().unwrap().kind, "Document");
    let patch = Patch::Merge(json!({"spec": {"text": "two"}}));
    let patched = documents.patch("d", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data["spec"]["text"], "two");
    assert_eq!(patched.metadata.generation, Some(2));
    let list = documents.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items, [patched]);
    documents.delete("d", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match watch.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(object) => seen.push(format!("+{}", object.name_any())),
            WatchEvent::Modified(object) => seen.push(format!("~{}", object.name_any())),
            WatchEvent::Deleted(object) => seen.push(format!("-{}", object.name_any())),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => panic!("{status:?}"),
        }
    }
    assert_eq!(seen, ["+d", "~d", "-d"]);
}
