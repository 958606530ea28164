//! `wait`: conditions and deletions.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::{json, to_value};
use tokio::time::{Instant, sleep};

use crate::document::Document;
use crate::harness::{map, with_data};

#[tokio::test(start_paused = true)]
async fn a_definition_is_established() {
    let server = ApiServer::start();
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    let wait = await_condition(
        definitions.clone(),
        Document::crd_name(),
        conditions::is_crd_established(),
    );
    let create = async {
        sleep(Duration::from_secs(5)).await;
        definitions.create(&PostParams::default(), &Document::crd()).await.unwrap();
    };
    let (established, ()) = tokio::join!(wait, create);
    assert_eq!(established.unwrap().unwrap().name_any(), "documents.tests.example.com");
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_waited_for_until_it_holds() {
    let server = ApiServer::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let is_ready = |map: Option<&ConfigMap>| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data["value"] == "3")
    };
    let started = Instant::now();
    let change = async {
        for value in 1..=3 {
            sleep(Duration::from_secs(10)).await;
            let map = to_value(with_data("a", &value.to_string())).unwrap();
            if value == 1 { server.create(map) } else { server.update(map) }.unwrap();
        }
    };
    let (ready, ()) = tokio::join!(await_condition(maps, "a", is_ready), change);
    assert_eq!(ready.unwrap().unwrap().data.unwrap()["value"], "3");
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_is_seen_to() {
    let server = ApiServer::start();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    server.create(pod.clone()).unwrap();
    pod["status"] = json!({"phase": "Running"});
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let run = async {
        sleep(Duration::from_secs(1)).await;
        server.update_status(pod).unwrap();
    };
    let (running, ()) = tokio::join!(await_condition(pods, "p", conditions::is_pod_running()), run);
    assert!(running.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_is_deleted_when_another_of_its_name_has_taken_its_place() {
    let server = ApiServer::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let made = maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let uid = made.uid().unwrap();
    let replace = async {
        sleep(Duration::from_secs(1)).await;
        server.delete("configmaps", "default", "a").unwrap();
        server.create(to_value(map("a")).unwrap()).unwrap();
    };
    let wait = await_condition(maps.clone(), "a", conditions::is_deleted(&uid));
    let (other, ()) = tokio::join!(wait, replace);
    assert_ne!(other.unwrap().and_then(|other| other.uid()), Some(uid));
}

#[tokio::test(start_paused = true)]
async fn a_delete_waits_for_finalizers_and_not_if_there_are_none() {
    let server = ApiServer::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &map("plain")).await.unwrap();
    let started = Instant::now();
    delete_and_finalize(maps.clone(), "plain", &DeleteParams::default()).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 0);

    let mut held = map("held");
    held.metadata.finalizers = Some(vec!["tests.example.com/hold".to_owned()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    let release = async {
        sleep(Duration::from_secs(20)).await;
        server.update(to_value(map("held")).unwrap()).unwrap();
    };
    let options = DeleteParams::default();
    let delete = delete_and_finalize(maps.clone(), "held", &options);
    let (deleted, ()) = tokio::join!(delete, release);
    deleted.unwrap();
    assert_eq!(started.elapsed().as_secs(), 20);
    assert_eq!(maps.get_opt("held").await.unwrap(), None);
}
