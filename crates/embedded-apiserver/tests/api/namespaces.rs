//! Namespaces, their contents and their deletion.

use embedded_apiserver::ApiServer;
use serde_json::json;

use crate::harness::{Client, Event, failure, map};

const HOME: &str = "/api/v1/namespaces/home";
const MAPS: &str = "/api/v1/namespaces/home/configmaps";

async fn home(server: &ApiServer) -> Client {
    let client = Client::of(server);
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "home"}})).await.ok();
    client
}

#[tokio::test(start_paused = true)]
async fn a_new_namespace_is_active_and_labelled_with_its_name() {
    let server = ApiServer::start();
    let client = home(&server).await;
    let namespace = client.get(HOME).await.ok();
    assert_eq!(namespace["status"], json!({"phase": "Active"}));
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "home"}));
}

/// The namespace of a cluster-scoped object is not an error: it is dropped.
#[tokio::test(start_paused = true)]
async fn objects_of_the_cluster_have_no_namespace_whatever_they_say() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let sent = json!({"metadata": {"name": "n", "namespace": "default"}});
    let made = client.post("/api/v1/nodes", sent).await.ok();
    assert_eq!(made["metadata"].get("namespace"), None);
    let patch = json!({"metadata": {"namespace": "x", "labels": {"a": "b"}}});
    let patched = client.merge("/api/v1/nodes/n", patch).await.ok();
    assert_eq!(patched["metadata"].get("namespace"), None);
}

#[tokio::test(start_paused = true)]
async fn reading_a_namespace_that_does_not_exist_finds_nothing_in_it() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    assert_eq!(client.get(MAPS).await.ok()["items"], json!([]));
    client.get(&format!("{MAPS}/a")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_content_takes_no_more_and_goes_when_it_is_empty() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let client = home(&server).await;
    client.post(MAPS, map("held")).await.ok();
    let of_home = "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dhome";
    let mut watch = client.watch(of_home).await;
    assert_eq!(watch.event().await.brief().0, "ADDED");

    let marked = client.delete(HOME).await.ok();
    assert_eq!(marked["status"], json!({"phase": "Terminating"}));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());

    let late = client.post(MAPS, map("late")).await;
    let message = "configmaps \"late\" is forbidden: unable to create new content in namespace \
                   home because it is being terminated";
    let details = json!({
        "name": "late", "kind": "configmaps",
        "causes": [{"reason": "NamespaceTerminating",
                    "message": "namespace home is being terminated",
                    "field": "metadata.namespace"}],
    });
    assert_eq!((late.code, late.json()), (403, failure(403, "Forbidden", message, details)));
    client.merge(&format!("{MAPS}/held"), json!({"data": {"x": "y"}})).await.ok();

    client.delete(&format!("{MAPS}/held")).await.ok();
    client.get(HOME).await.failed(404);
    let kinds: Vec<_> =
        watch.events(2).await.iter().map(Event::brief).map(|brief| brief.0.to_owned()).collect();
    assert_eq!(kinds, ["MODIFIED", "DELETED"]);
    home(&server).await.post(MAPS, map("late")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied() {
    const CONTENTS: usize = 200;
    let server = ApiServer::start();
    let client = home(&server).await;
    for at in 0..CONTENTS {
        client.post(MAPS, map(&format!("map-{at}"))).await.ok();
    }
    // A job would orphan its dependents, which does not matter here.
    let jobs = "/apis/batch/v1/namespaces/home/jobs";
    client.post(jobs, json!({"metadata": {"name": "j"}, "spec": {}})).await.ok();
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion=0")).await;
    watch.events(CONTENTS).await;
    let of_home = "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dhome";
    let mut end = client.watch(of_home).await;
    assert_eq!(end.event().await.brief().0, "ADDED");

    let marked = client.delete(HOME).await.ok();
    assert_eq!(marked["status"]["phase"], "Terminating");
    for deleted in watch.events(CONTENTS).await {
        assert_eq!(deleted.brief().0, "DELETED");
    }
    let kinds: Vec<_> =
        end.events(2).await.iter().map(|event| event.brief().0.to_owned()).collect();
    assert_eq!(kinds, ["MODIFIED", "DELETED"]);
    client.get(HOME).await.failed(404);
    assert_eq!(server.count("jobs.batch", ""), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_waits_for_finalizers() {
    let server = ApiServer::start();
    let client = home(&server).await;
    client.post(MAPS, map("a")).await.ok();
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["a.b/c"]);
    client.post(MAPS, held).await.ok();
    client.delete(HOME).await.ok();
    assert_eq!(client.get(HOME).await.ok()["status"]["phase"], "Terminating");
    client.get(&format!("{MAPS}/a")).await.failed(404);
    client.merge(&format!("{MAPS}/held"), json!({"metadata": {"finalizers": null}})).await.ok();
    client.get(HOME).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_goes_at_once() {
    let server = ApiServer::start();
    let client = home(&server).await;
    client.delete(HOME).await.ok();
    client.get(HOME).await.failed(404);
    client.post(MAPS, map("a")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_the_system_stay() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for name in ["default", "kube-system", "kube-public"] {
        let refused = client.delete(&format!("/api/v1/namespaces/{name}")).await;
        let message =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        let details = json!({"name": name, "kind": "namespaces"});
        assert_eq!(refused.json(), failure(403, "Forbidden", &message, details));
    }
    client.delete("/api/v1/namespaces/kube-node-lease").await.ok();
}
