//! Strategic merge patches over HTTP. The merge itself is tested beside its code.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Answer, Client};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

async fn patch(client: &Client, path: &str, body: Value) -> Answer {
    client.request("PATCH", path, &[("content-type", STRATEGIC)], body.to_string()).await
}

/// Creates a deployment with two containers.
async fn deployment() -> (ApiServer, Client) {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let pod = json!({"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}});
    client.post(DEPLOYMENTS, json!({"metadata": {"name": "web"}, "spec": spec})).await.ok();
    (server, client)
}

fn images(deployment: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers.iter().map(|it| (text(&it["name"]), text(&it["image"]))).collect()
}

fn containers(containers: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[tokio::test(start_paused = true)]
async fn containers_are_patched_by_name() {
    let (_server, client) = deployment().await;
    let patched =
        patch(&client, WEB, containers(&json!([{"name": "b", "image": "b:2"}]))).await.ok();
    let pair = |name: &str, image: &str| (name.to_owned(), image.to_owned());
    assert_eq!(images(&patched), [pair("a", "a:1"), pair("b", "b:2")]);
    assert_eq!(patched["metadata"]["generation"], 2);
    let gone = containers(&json!([{"name": "a", "$patch": "delete"}]));
    let dry = patch(&client, &format!("{WEB}?dryRun=All"), gone.clone()).await.ok();
    assert_eq!(images(&dry), [pair("b", "b:2")]);
    assert_eq!(images(&client.get(WEB).await.ok()).len(), 2);
    patch(&client, WEB, gone).await.ok();
    assert_eq!(images(&client.get(WEB).await.ok()), [pair("b", "b:2")]);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_the_status_are_patched_by_type() {
    let (_server, client) = deployment().await;
    let status = format!("{WEB}/status");
    let condition = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    patch(&client, &status, condition("Available", "False")).await.ok();
    patch(&client, &status, condition("Progressing", "True")).await.ok();
    let patched = patch(&client, &status, condition("Available", "True")).await.ok();
    let found = patched["status"]["conditions"].as_array().unwrap().len();
    assert_eq!((found, images(&patched).len()), (2, 2));
    assert!(
        patched["status"]["conditions"].as_array().unwrap().iter().all(|it| it["status"] == "True")
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_names_an_old_version_is_a_conflict() {
    let (_server, client) = deployment().await;
    let version = client.get(WEB).await.ok()["metadata"]["resourceVersion"].clone();
    patch(&client, WEB, json!({"spec": {"replicas": 2}})).await.ok();
    let stale = json!({"metadata": {"resourceVersion": version}, "spec": {"replicas": 3}});
    assert_eq!(patch(&client, WEB, stale).await.code, 409);
    assert_eq!(patch(&client, &format!("{WEB}-none"), json!({})).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_does_not_fit_says_why() {
    let (_server, client) = deployment().await;
    let failed = |answer: Answer| {
        let status = answer.json();
        (answer.code, status["reason"].clone(), status["message"].clone())
    };
    let no_key = patch(&client, WEB, containers(&json!([{"image": "x"}]))).await;
    let why = "map does not contain declared merge key: name";
    assert_eq!(failed(no_key), (500, json!(null), json!(why)));
    let keys = json!({"spec": {"$retainKeys": "replicas"}});
    let why = "invalid patch format of retainKeys";
    assert_eq!(failed(patch(&client, WEB, keys).await), (400, json!("BadRequest"), json!(why)));
    let why = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(
        failed(patch(&client, WEB, json!([])).await),
        (400, json!("BadRequest"), json!(why))
    );
    // The result is validated as for any patch.
    let renamed = patch(&client, WEB, json!({"metadata": {"name": "other"}})).await;
    assert_eq!(renamed.code, 400);
    let labels = json!({"metadata": {"labels": {"a": 1}}});
    assert_eq!(patch(&client, WEB, labels).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_no_strategic_merge_patch() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(definitions, definition).await.ok();
    let answer = patch(&client, "/apis/example.com/v1/widgets/a", json!({})).await;
    let why = "the body of the request was in an unknown format - accepted media types include: \
               application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    assert_eq!((answer.code, answer.json()["message"].as_str()), (415, Some(why)));
    // The definition itself is a built-in kind, which supports it.
    let path = format!("{definitions}/widgets.example.com");
    let labelled = patch(&client, &path, json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["metadata"]["labels"], json!({"a": "b"}));
}
