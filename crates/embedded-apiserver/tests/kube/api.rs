//! `Api`: the verbs on objects.

use embedded_apiserver::{ApiServer, Denial, Verb};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use kube::api::{
    Api, DeleteParams, GetParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
    Preconditions, VersionMatch, WatchEvent, WatchParams,
};
use kube::{ResourceExt, api::entry::CommitError};
use serde_json::json;

use crate::harness::{labelled, map, status, with_data};

fn maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

#[tokio::test(start_paused = true)]
async fn one_object_is_created_read_changed_and_deleted() {
    let server = ApiServer::start();
    let maps = maps(&server);
    let made = maps.create(&PostParams::default(), &map("a")).await.unwrap();
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    assert_eq!(made.namespace().as_deref(), Some("default"));
    assert_eq!(maps.get("a").await.unwrap(), made);
    assert_eq!(maps.get_with("a", &GetParams::any()).await.unwrap(), made);

    let mut changed = made.clone();
    changed.data = with_data("a", "1").data;
    let changed = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(changed.resource_version(), made.resource_version());
    assert_eq!(changed.uid(), made.uid());

    let deleted = maps.delete("a", &DeleteParams::default()).await.unwrap();
    let details = deleted.right().expect("a Status").details.unwrap();
    assert_eq!((details.name.as_str(), Some(details.uid)), ("a", made.uid()));
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    assert!(status(maps.get("a").await).is_not_found());
}

#[tokio::test(start_paused = true)]
async fn errors_arrive_as_what_they_are() {
    let server = ApiServer::start();
    let maps = maps(&server);
    let made = maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let exists = status(maps.create(&PostParams::default(), &map("a")).await);
    assert!(exists.is_already_exists() && !exists.is_conflict(), "{exists:?}");
    assert!(status(maps.create(&PostParams::default(), &map("A")).await).is_invalid());
    maps.replace("a", &PostParams::default(), &with_data("a", "1")).await.unwrap();
    let conflict = status(maps.replace("a", &PostParams::default(), &made).await);
    assert!(conflict.is_conflict() && !conflict.is_already_exists(), "{conflict:?}");
    server.access().deny(Denial::verbs([Verb::Get]));
    assert!(status(maps.get("a").await).is_forbidden());
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_and_dry_runs_leave_no_trace() {
    let server = ApiServer::start();
    let maps = maps(&server);
    let metadata = ObjectMeta { generate_name: Some("job-".to_owned()), ..ObjectMeta::default() };
    let unnamed = ConfigMap { metadata, ..ConfigMap::default() };
    let made = maps.create(&PostParams::default(), &unnamed).await.unwrap();
    assert!(made.name_any().starts_with("job-") && made.name_any().len() == 9);

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let previewed = maps.create(&dry, &map("a")).await.unwrap();
    assert_eq!((previewed.uid().is_some(), previewed.resource_version()), (true, None));
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    let patch = Patch::Merge(json!({"data": {"x": "y"}}));
    let dry = PatchParams::default().dry_run();
    let previewed = maps.patch(&made.name_any(), &dry, &patch).await.unwrap();
    assert_eq!(previewed.data.unwrap()["x"], "y");
    assert_eq!(maps.get(&made.name_any()).await.unwrap(), made);
    maps.delete(&made.name_any(), &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(maps.get(&made.name_any()).await.unwrap(), made);
}

#[tokio::test(start_paused = true)]
async fn patches_of_both_kinds_apply() {
    let server = ApiServer::start();
    let maps = maps(&server);
    maps.create(&PostParams::default(), &with_data("a", "1")).await.unwrap();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"l": "m"}}, "data": {"value": null}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((&*patched.labels()["l"], &patched.data), ("m", &None));
    let operations = json!([
        {"op": "test", "path": "/metadata/labels/l", "value": "m"},
        {"op": "replace", "path": "/metadata/labels/l", "value": "n"},
    ]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(operations).unwrap());
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.labels()["l"], "n");
    let again = maps.patch("a", &PatchParams::default(), &patch).await;
    assert!(status(again).is_invalid(), "the test of the patch fails now");
}

#[tokio::test(start_paused = true)]
async fn lists_are_selected_paged_and_pinned() {
    let server = ApiServer::start();
    let maps = maps(&server);
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red"), ("d", "red")] {
        maps.create(&PostParams::default(), &labelled(name, ("color", color))).await.unwrap();
    }
    let names = |list: &kube::api::ObjectList<ConfigMap>| -> Vec<String> {
        list.items.iter().map(ResourceExt::name_any).collect()
    };
    let red = ListParams::default().labels("color in (red)").fields("metadata.name!=c");
    assert_eq!(names(&maps.list(&red).await.unwrap()), ["a", "d"]);

    let first = maps.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    maps.delete("d", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = maps.list(&ListParams::default().limit(3).continue_token(&token)).await.unwrap();
    assert_eq!((names(&rest), rest.metadata.continue_.as_deref()), (vec!["d".to_owned()], None));
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);

    let version = first.metadata.resource_version.unwrap();
    let exact = ListParams::default().at(&version).matching(VersionMatch::Exact);
    assert_eq!(maps.list(&exact).await.unwrap().items.len(), 4);
    assert_eq!(maps.list(&ListParams::default().match_any()).await.unwrap().items.len(), 3);
    let elsewhere: Api<ConfigMap> = Api::namespaced(server.client(), "nowhere");
    assert!(elsewhere.list(&ListParams::default()).await.unwrap().items.is_empty());
    let all: Api<ConfigMap> = Api::all(server.client());
    assert_eq!(all.list(&ListParams::default()).await.unwrap().items.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn collections_are_deleted_as_far_as_they_are_selected() {
    let server = ApiServer::start();
    let maps = maps(&server);
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        maps.create(&PostParams::default(), &labelled(name, ("color", color))).await.unwrap();
    }
    let red = ListParams::default().labels("color=red");
    let deleted = maps.delete_collection(&DeleteParams::default(), &red).await.unwrap();
    assert_eq!(deleted.left().expect("the objects").items.len(), 2);
    let left = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
    let namespaces: Api<Namespace> = Api::all(server.client());
    let all = namespaces.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    assert_eq!(status(all).code, 405);
}

#[tokio::test(start_paused = true)]
async fn deletes_take_preconditions_and_answer_with_the_object_for_some_kinds() {
    let server = ApiServer::start();
    let maps = maps(&server);
    let made = maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let only = |uid: Option<String>| {
        DeleteParams::background().preconditions(Preconditions { uid, resource_version: None })
    };
    let other = maps.delete("a", &only(Some("x".to_owned()))).await;
    assert!(status(other).is_conflict());
    maps.delete("a", &only(made.uid())).await.unwrap();

    let services: Api<Service> = Api::default_namespaced(server.client());
    let service = Service {
        metadata: ObjectMeta { name: Some("s".to_owned()), ..ObjectMeta::default() },
        ..Service::default()
    };
    services.create(&PostParams::default(), &service).await.unwrap();
    let deleted = services.delete("s", &DeleteParams::foreground().grace_period(0)).await.unwrap();
    assert_eq!(deleted.left().expect("the object").name_any(), "s");
}

#[tokio::test(start_paused = true)]
async fn entries_are_got_or_created_and_committed_once() {
    let server = ApiServer::start();
    let maps = maps(&server);
    let set = |value: &str| {
        let data = with_data("", value).data;
        move |map: &mut ConfigMap| map.data = data
    };
    let entry = maps.entry("a").await.unwrap();
    assert!(entry.get().is_none());
    let mut made = entry.or_insert(ConfigMap::default).and_modify(set("1"));
    made.commit(&PostParams::default()).await.unwrap();
    assert_eq!(maps.get("a").await.unwrap(), *made.get());

    let entry = maps.entry("a").await.unwrap().and_modify(set("2"));
    let mut second = entry.or_insert(|| unreachable!("it exists"));
    maps.replace("a", &PostParams::default(), &with_data("a", "3")).await.unwrap();
    let lost = second.commit(&PostParams::default()).await.unwrap_err();
    assert!(
        matches!(&lost, CommitError::Save(kube::Error::Api(status)) if status.is_conflict()),
        "{lost:?}"
    );
    let mut both = maps.entry("b").await.unwrap().or_insert(ConfigMap::default);
    maps.create(&PostParams::default(), &map("b")).await.unwrap();
    assert!(both.commit(&PostParams::default()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn watches_begin_at_a_version_and_end_in_time() {
    let server = ApiServer::start();
    let maps = maps(&server);
    let list = maps.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    maps.replace("a", &PostParams::default(), &with_data("a", "1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let params = WatchParams::default().timeout(10);
    let events: Vec<_> = maps.watch(&params, &version).await.unwrap().try_collect().await.unwrap();
    let [WatchEvent::Added(_), WatchEvent::Modified(_), WatchEvent::Deleted(gone), end] = &*events
    else {
        panic!("{events:?}")
    };
    assert_eq!(gone.data, with_data("a", "1").data);
    let WatchEvent::Bookmark(bookmark) = end else { panic!("{end:?}") };
    assert_eq!(bookmark.metadata.resource_version, server.store().revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_begin_with_the_state_and_a_mark_at_its_end() {
    let server = ApiServer::start();
    let maps = maps(&server);
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let mut watch = maps.watch(&WatchParams::streaming_lists(), "0").await.unwrap().boxed();
    let added = watch.try_next().await.unwrap().unwrap();
    assert!(matches!(added, WatchEvent::Added(map) if map.name_any() == "a"));
    let Some(WatchEvent::Bookmark(end)) = watch.try_next().await.unwrap() else {
        panic!("a bookmark")
    };
    assert_eq!(end.metadata.annotations["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_gets_the_error_that_makes_clients_list_again() {
    let server = ApiServer::start();
    let maps = maps(&server);
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    server.store().compact(u64::MAX);
    let mut watch = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let event = watch.try_next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
}

/// kube's own helper for workloads is a merge patch.
#[tokio::test(start_paused = true)]
async fn deployments_are_restarted() {
    let server = ApiServer::start();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {}, "template": {}},
    });
    server.create(deployment).unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(server.client());
    let restarted = deployments.restart("d").await.unwrap();
    let template = restarted.spec.template;
    let annotations = template.metadata.unwrap().annotations.unwrap();
    assert!(annotations.contains_key("kube.kubernetes.io/restartedAt"), "{annotations:?}");
    assert_eq!(restarted.metadata.generation, Some(2));
}
