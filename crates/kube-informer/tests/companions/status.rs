//! Status patches: sent only if something differs, and never over a newer state.

use embedded_apiserver::{ApiServer, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube_informer::{Conditions, Object, patch_status};
use serde_json::json;

use crate::scene::{create, object, requests, server};

fn pod(server: &ApiServer) -> Object<Pod> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a:1"}]},
    });
    object(&server.create(pod).unwrap())
}

fn api(server: &ApiServer) -> Api<Pod> {
    Api::all(server.client())
}

#[tokio::test]
async fn status_is_written_once() {
    let server = server();
    let (api, pod) = (api(&server), pod(&server));
    let status = json!({"message": "hello", "conditions": []});
    let written = patch_status(&api, &pod, status.clone()).await.unwrap().expect("it is new");
    assert_eq!(written.field::<String>("status.message").unwrap().as_deref(), Some("hello"));
    let stored: Object<Pod> = object(&server.get("pods", "default", "a").unwrap());
    assert!(written.same_version(&stored));
    assert!(written.resource_version() > pod.resource_version());
    assert!(patch_status(&api, &written, status).await.unwrap().is_none());
    assert_eq!(requests(&server), ["Patch"]);
    assert_eq!(server.requests()[0].verb, Some(Verb::Patch));
    assert!(server.requests()[0].uri.ends_with("/namespaces/default/pods/a/status"));
}

#[tokio::test]
async fn members_that_are_not_named_stay() {
    let server = server();
    let (api, pod) = (api(&server), pod(&server));
    let first = json!({"message": "hello", "reason": "Because"});
    let written = patch_status(&api, &pod, first).await.unwrap().unwrap();
    let written = patch_status(&api, &written, json!({"message": null})).await.unwrap().unwrap();
    assert_eq!(written.field::<String>("status.message").unwrap(), None);
    assert_eq!(written.field::<String>("status.reason").unwrap().as_deref(), Some("Because"));
}

#[tokio::test]
async fn status_of_a_stale_object_is_a_conflict() {
    let server = server();
    let (api, stale) = (api(&server), pod(&server));
    let newer = patch_status(&api, &stale, json!({"message": "newer"})).await.unwrap().unwrap();
    let error = patch_status(&api, &stale, json!({"message": "older"})).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(
        error.to_string().starts_with("the status of default/a cannot be written: "),
        "{error}"
    );
    let stored: Object<Pod> = object(&server.get("pods", "default", "a").unwrap());
    assert!(stored.same_version(&newer));
}

#[tokio::test]
async fn object_without_a_status_subresource_is_not_found() {
    let server = server();
    let map = create(&server, "a");
    let api: Api<ConfigMap> = Api::all(server.client());
    let error = patch_status(&api, &map, json!({"a": 1})).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert!(patch_status(&api, &map, json!({})).await.unwrap().is_none());
}

#[tokio::test]
async fn conditions_keep_their_transition_times_across_reconciles() {
    let server = server();
    let (api, mut pod) = (api(&server), pod(&server));
    let time = "2026-03-01T12:00:00Z";
    let known = json!([{"type": "A", "status": "True", "reason": "X", "message": "", "lastTransitionTime": time}]);
    pod = patch_status(&api, &pod, json!({"conditions": known})).await.unwrap().unwrap();
    for (status, message, sent, moved) in [
        (true, "", true, false), // The reason is new.
        (true, "", false, false),
        (true, "more", true, false),
        (false, "more", true, true),
    ] {
        let mut conditions = Conditions::of(&pod).unwrap();
        let changed = conditions.set("A", status, "Y", message);
        let written = patch_status(&api, &pod, json!({"conditions": conditions})).await.unwrap();
        assert_eq!((changed, written.is_some()), (sent, sent), "{message}");
        pod = written.unwrap_or(pod);
        let at = pod.field::<String>("status.conditions[0].lastTransitionTime").unwrap().unwrap();
        assert_eq!(at != time, moved);
    }
}
