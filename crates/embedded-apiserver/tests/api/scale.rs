//! The scale subresource, of built-in kinds and of custom resources.

use embedded_apiserver::ApiServer;
use kube_schema::MEDIA_TYPE;
use serde_json::{Value, json};

use crate::harness::{Client, definition, version};

const APPS: &str = "/apis/apps/v1/namespaces/default";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/web/scale";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const WIDGETS: &str = "/apis/tests.example.com/v1/namespaces/default/widgets";

fn selector() -> Value {
    json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["2", "1"]}],
    })
}

/// A deployment of two replicas, one of which runs.
async fn deployment() -> (ApiServer, Client, Value) {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let web = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": selector()}});
    client.post(&format!("{APPS}/deployments"), web).await.ok();
    let status = format!("{APPS}/deployments/web/status");
    let made = client.merge(&status, json!({"status": {"replicas": 1}})).await.ok();
    (server, client, made)
}

#[tokio::test(start_paused = true)]
async fn scale_shows_replicas_selector_and_metadata() {
    let (_server, client, made) = deployment().await;
    let meta = |field: &str| made["metadata"][field].clone();
    let want = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {
            "name": "web", "namespace": "default", "uid": meta("uid"),
            "resourceVersion": meta("resourceVersion"),
            "creationTimestamp": meta("creationTimestamp"),
        },
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a in (1,2),app=web"},
    });
    assert_eq!(client.get(SCALE).await.ok(), want);
    assert_eq!(client.get_as(SCALE, MEDIA_TYPE).await.protobuf(), want);
    let table = client.get_as(SCALE, TABLE).await.ok();
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    assert_eq!(cells[..3], [json!("web"), json!(2), json!(1)]);
}

#[tokio::test(start_paused = true)]
async fn every_workload_is_scaled() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let labels = json!({"b": "2", "a": "1"});
    let kinds = [
        (format!("{APPS}/deployments"), json!({"matchLabels": labels})),
        (format!("{APPS}/replicasets"), json!({"matchLabels": labels})),
        (format!("{APPS}/statefulsets"), json!({"matchLabels": labels})),
        ("/api/v1/namespaces/default/replicationcontrollers".to_owned(), labels.clone()),
    ];
    for (path, selector) in kinds {
        let object = json!({"metadata": {"name": "web"}, "spec": {"selector": selector}});
        client.post(&path, object).await.ok();
        let scale = format!("{path}/web/scale");
        let mut read = client.get(&scale).await.ok();
        assert_eq!(read["spec"], json!({"replicas": 1}), "{path}");
        assert_eq!(read["status"], json!({"replicas": 0, "selector": "a=1,b=2"}), "{path}");
        read["spec"]["replicas"] = json!(5);
        let put = client.put(&scale, read).await.ok();
        assert_eq!((&put["kind"], &put["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
        let object = client.get(&format!("{path}/web")).await.ok();
        assert_eq!(object["spec"]["replicas"], 5, "{path}");
        assert_eq!(object["metadata"]["generation"], 2, "{path}");
        assert_eq!(version(&object), version(&put), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn scale_is_patched_in_every_way() {
    let (_server, client, _) = deployment().await;
    let patch = json!({"spec": {"replicas": 3}, "metadata": {"labels": {"not": "taken"}}});
    assert_eq!(client.merge(SCALE, patch).await.ok()["spec"]["replicas"], 3);
    let operations = json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]);
    assert_eq!(client.json_patch(SCALE, operations).await.ok()["spec"]["replicas"], 4);
    let headers = [("content-type", STRATEGIC), ("accept", MEDIA_TYPE)];
    let body = r#"{"spec":{"replicas":6}}"#;
    let patched = client.request("PATCH", SCALE, &headers, body).await.protobuf();
    assert_eq!((&patched["kind"], &patched["spec"]["replicas"]), (&json!("Scale"), &json!(6)));
    let dry = format!("{SCALE}?dryRun=All");
    let would = client.merge(&dry, json!({"spec": {"replicas": 9}})).await.ok();
    assert_eq!(would["spec"]["replicas"], 9);
    let web = client.get(&format!("{APPS}/deployments/web")).await.ok();
    assert_eq!((&web["spec"]["replicas"], &web["spec"]["selector"]), (&json!(6), &selector()));
    assert_eq!((&web["status"], web["metadata"].get("labels")), (&json!({"replicas": 1}), None));
}

#[tokio::test(start_paused = true)]
async fn zero_replicas_are_the_same_in_json_and_protobuf() {
    let (_server, client, _) = deployment().await;
    let headers = [("accept", MEDIA_TYPE), ("content-type", MEDIA_TYPE)];
    let none =
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}});
    let body = kube_schema::to_vec(&none).expect("a Scale");
    let put = client.request("PUT", SCALE, &headers, body).await.protobuf();
    assert_eq!(put["spec"], json!({}));
    assert_eq!(client.get(SCALE).await.ok(), put);
    assert_eq!(client.get(&format!("{APPS}/deployments/web")).await.ok()["spec"]["replicas"], 0);
}

#[tokio::test(start_paused = true)]
async fn bad_scales_are_refused() {
    let (_server, client, made) = deployment().await;
    let scale = |metadata: Value, replicas: Value| json!({"metadata": metadata, "spec": {"replicas": replicas}});
    let named = json!({"name": "web"});
    let negative = client.put(SCALE, scale(named.clone(), json!(-1))).await.failed(422);
    assert_eq!(
        negative["message"],
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater \
         than or equal to 0"
    );
    for replicas in [json!("3"), json!(1.5), json!(1_i64 << 40), json!({})] {
        client.put(SCALE, scale(named.clone(), replicas.clone())).await.failed(400);
        client.merge(SCALE, json!({"spec": {"replicas": replicas}})).await.failed(422);
    }
    client.put(SCALE, json!({"metadata": named, "spec": []})).await.failed(400);
    client.put(SCALE, scale(json!({"name": "other"}), json!(3))).await.failed(400);
    client.put(SCALE, made.clone()).await.failed(400);
    let uid = client.put(SCALE, scale(json!({"name": "web", "uid": "x"}), json!(3))).await;
    assert_eq!(uid.failed(409)["details"]["kind"], "deployments/scale");
    let old = json!({"name": "web", "resourceVersion": "1"});
    let conflict = client.put(SCALE, scale(old.clone(), json!(3))).await.failed(409);
    assert_eq!(conflict["reason"], "Conflict");
    client.merge(SCALE, scale(old, json!(3))).await.failed(409);
    let version = json!({"name": "web", "resourceVersion": made["metadata"]["resourceVersion"]});
    client.put(SCALE, scale(version, json!(3))).await.ok();
    client.delete(SCALE).await.failed(405);
}

#[tokio::test(start_paused = true)]
async fn scales_of_missing_objects_are_404() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{APPS}/deployments/none/scale");
    let got = client.get(&path).await.failed(404);
    assert_eq!(got["message"], r#"deployments/scale.apps "none" not found"#);
    client.merge(&path, json!({"spec": {"replicas": 1}})).await.failed(404);
    let body = json!({"metadata": {"name": "none"}, "spec": {"replicas": 1}});
    client.put(&path, body).await.failed(404);
    client.get(&format!("{APPS}/daemonsets/none/scale")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn scale_is_discovered() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let list = client.get("/apis/apps/v1").await.ok();
    let resources = list["resources"].as_array().expect("resources");
    let scale = resources.iter().find(|it| it["name"] == "deployments/scale");
    let want = json!({
        "name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
        "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
    });
    assert_eq!(scale, Some(&want));
    assert!(!resources.iter().any(|it| it["name"] == "daemonsets/scale"));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let core = client.get_as("/api", aggregated).await.ok();
    let resources = core["items"][0]["versions"][0]["resources"].as_array().expect("resources");
    let of = |plural: &str| {
        let found = resources.iter().find(|it| it["resource"] == plural).expect("it is served");
        found["subresources"].clone()
    };
    let want = json!({
        "subresource": "scale", "verbs": ["get", "patch", "update"],
        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    });
    assert_eq!(of("replicationcontrollers")[0], want);
    assert_eq!(of("replicationcontrollers")[1]["subresource"], "status");
}

fn scalable(scale: &Value) -> Value {
    let mut definition = definition("widgets", "Widget");
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": scale});
    definition
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_scaled_by_the_paths_of_their_definition() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let paths = json!({
        "specReplicasPath": ".spec.size.wanted", "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    });
    server.create(scalable(&paths)).unwrap();
    let meta =
        json!({"apiVersion": "tests.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    client.post(WIDGETS, meta).await.ok();
    let path = format!("{WIDGETS}/a/scale");
    let unset = client.get(&path).await.failed(500);
    let why = r#"the spec replicas field ".spec.size.wanted" does not exist"#;
    assert!(unset["message"].as_str().is_some_and(|message| message.ends_with(why)), "{unset}");
    client.merge(&path, json!({"spec": {"replicas": 2}})).await.ok();
    let status = json!({"status": {"size": 1, "selector": "app=a"}});
    client.merge(&format!("{WIDGETS}/a/status"), status).await.ok();
    let mut scale = client.get_as(&path, MEDIA_TYPE).await.protobuf();
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(scale["status"], json!({"replicas": 1, "selector": "app=a"}));
    let old = scale.clone();
    scale["spec"]["replicas"] = json!(7);
    client.put(&path, scale).await.ok();
    client.put(&path, old).await.failed(409);
    let widget = client.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(widget["spec"], json!({"size": {"wanted": 7}}));
    assert_eq!(widget["status"]["size"], 1);
    client.merge(&format!("{WIDGETS}/a"), json!({"spec": {"size": 5}})).await.ok();
    client.merge(&path, json!({"spec": {"replicas": 2}})).await.failed(500);
    let strategic = [("content-type", STRATEGIC)];
    client.request("PATCH", &path, &strategic, "{}").await.failed(415);
    client.get(&format!("{WIDGETS}/none/scale")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn paths_of_a_scale_are_checked() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let deep = format!(".spec{}", ".x".repeat(100_000));
    for (spec, status, selector, field) in [
        ("", ".status.size", "", "specReplicasPath"),
        (".status.size", ".status.size", "", "specReplicasPath"),
        (&*deep, ".status.size", "", "specReplicasPath"),
        (".spec.size", ".status..size", "", "statusReplicasPath"),
        (".spec.size", ".status.size", ".metadata.labels", "labelSelectorPath"),
    ] {
        let scale = json!({
            "specReplicasPath": spec, "statusReplicasPath": status, "labelSelectorPath": selector,
        });
        let refused = client.post(crds, scalable(&scale)).await.failed(422);
        let causes = refused["details"]["causes"].as_array().expect("causes");
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0]["field"], format!("spec.subresources.scale.{field}"));
    }
}
