//! Server-side apply over HTTP. The merge itself is tested beside its code.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Answer, Client, MAPS, map, version};

const A: &str = "/api/v1/namespaces/default/configmaps/a";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const APPLY: [(&str, &str); 1] = [("content-type", "application/apply-patch+yaml")];

async fn apply(client: &Client, path: &str, query: &str, config: &Value) -> Answer {
    client.request("PATCH", &format!("{path}?{query}"), &APPLY, config.to_string()).await
}

/// Starts a server that shows all managers.
fn start() -> (ApiServer, Client) {
    let server = ApiServer::builder().show_managed_fields(true).build();
    let client = Client::of(&server);
    (server, client)
}

fn data(data: Value) -> Value {
    let mut config = map("a");
    config["data"] = data;
    config
}

/// Returns the manager, operation, subresource and fields of each entry.
fn managers(object: &Value) -> Vec<(String, String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .iter()
        .map(|entry| {
            assert_eq!(entry["fieldsType"], "FieldsV1", "{entry}");
            let how = format!("{} {}", text(&entry["operation"]), text(&entry["subresource"]));
            (text(&entry["manager"]), how.trim().to_owned(), entry["fieldsV1"].clone())
        })
        .collect()
}

fn entry(manager: &str, operation: &str, fields: Value) -> (String, String, Value) {
    (manager.to_owned(), operation.to_owned(), fields)
}

fn web(replicas: i64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image, "ports": [{"containerPort": 80}]}]},
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn apply_creates_an_object_that_its_manager_owns() {
    let (_server, client) = start();
    let answer = apply(&client, A, "fieldManager=one", &data(json!({"x": "1"}))).await;
    assert_eq!(answer.code, 201);
    let created = answer.ok();
    assert_eq!(managers(&created), [entry("one", "Apply", json!({"f:data": {"f:x": {}}}))]);
    assert_eq!(created["metadata"]["managedFields"][0]["apiVersion"], "v1");
    let again = apply(&client, A, "fieldManager=one", &data(json!({"x": "1"}))).await;
    assert_eq!(
        (again.code, again.ok()),
        (200, created),
        "nothing changes, so there is no new version"
    );
}

#[tokio::test(start_paused = true)]
async fn fields_that_no_manager_applies_any_more_are_removed() {
    let (_server, client) = start();
    apply(&client, A, "fieldManager=one", &data(json!({"x": "1", "y": "1"}))).await.ok();
    apply(&client, A, "fieldManager=two", &data(json!({"y": "1", "z": "1"}))).await.ok();
    let less = apply(&client, A, "fieldManager=one", &data(json!({}))).await.ok();
    assert_eq!(less["data"], json!({"y": "1", "z": "1"}), "the second manager still owns y");
    let less = apply(&client, A, "fieldManager=two", &map("a")).await.ok();
    assert_eq!(less["data"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_field_of_another_manager_is_a_conflict_unless_forced() {
    let (_server, client) = start();
    apply(&client, A, "fieldManager=one", &data(json!({"x": "1", "y": "1"}))).await.ok();
    let status = apply(&client, A, "fieldManager=two", &data(json!({"x": "2"}))).await.failed(409);
    assert_eq!(status["reason"], "Conflict");
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"one\": .data.x");
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.x"});
    assert_eq!(status["details"], json!({"causes": [cause]}));
    let both = data(json!({"x": "2", "y": "2"}));
    let status = apply(&client, A, "fieldManager=two", &both).await.failed(409);
    let message = "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.x\n- .data.y";
    assert_eq!(status["message"], message);
    let forced =
        apply(&client, A, "fieldManager=two&force=true", &data(json!({"x": "2"}))).await.ok();
    assert_eq!(forced["data"], json!({"x": "2", "y": "1"}));
    let fields = |name: &str| json!({"f:data": {name: {}}});
    let expected = [entry("one", "Apply", fields("f:y")), entry("two", "Apply", fields("f:x"))];
    assert_eq!(managers(&forced), expected);
}

#[tokio::test(start_paused = true)]
async fn every_write_is_tracked() {
    let (_server, client) = start();
    let agent = [("user-agent", "tester/1.0 (linux)")];
    let body = data(json!({"x": "1"})).to_string();
    let created = client.request("POST", MAPS, &agent, body).await.ok();
    let all = json!({"f:data": {".": {}, "f:x": {}}});
    assert_eq!(managers(&created), [entry("tester", "Update", all.clone())]);
    let read = client.get(A).await.ok();
    assert_eq!(read, created);
    client.merge(&format!("{A}?fieldManager=other"), json!({"data": {"y": "1"}})).await.ok();
    let read = client.get(A).await.ok();
    let mine = json!({"f:data": {"f:y": {}}});
    assert_eq!(managers(&read), [entry("other", "Update", mine), entry("tester", "Update", all)]);
    let status = apply(&client, A, "fieldManager=two", &data(json!({"y": "2"}))).await.failed(409);
    let message = "Apply failed with 1 conflict: conflict with \"other\" using v1: .data.y";
    assert_eq!(status["message"], message);
    let same = apply(&client, A, "fieldManager=two", &data(json!({"y": "1"}))).await.ok();
    assert_eq!(managers(&same).len(), 3, "both own a field on whose value they agree");
}

#[tokio::test(start_paused = true)]
async fn objects_show_their_managers_once_something_was_applied() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{MAPS}?fieldManager=one");
    let created = client.post(&path, data(json!({"x": "1"}))).await.ok();
    assert_eq!(managers(&created), []);
    client
        .merge(&format!("{A}?fieldManager=two"), json!({"data": {"x": "2", "y": "1"}}))
        .await
        .ok();
    assert_eq!(managers(&client.get(A).await.ok()), []);
    let applied = apply(&client, A, "fieldManager=three", &data(json!({"z": "1"}))).await.ok();
    let fields = |fields: Value| json!({"f:data": fields});
    let expected = [
        entry("three", "Apply", fields(json!({"f:z": {}}))),
        entry("one", "Update", fields(json!({}))),
        entry("two", "Update", fields(json!({"f:x": {}, "f:y": {}}))),
    ];
    assert_eq!(managers(&applied), expected);
    let listed = &client.get(MAPS).await.ok()["items"][0];
    assert_eq!(managers(listed), expected);
}

#[tokio::test(start_paused = true)]
async fn lists_are_merged_by_their_keys() {
    let (_server, client) = start();
    apply(&client, WEB, "fieldManager=one", &web(1, "web:1")).await.ok();
    let more = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "log", "image": "log:1"}]}}},
    });
    let both = apply(&client, WEB, "fieldManager=two", &more).await.ok();
    let containers = &both["spec"]["template"]["spec"]["containers"];
    assert_eq!((&containers[0]["name"], &containers[1]["name"]), (&json!("web"), &json!("log")));
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
        "k:{\"name\":\"log\"}": {".": {}, "f:image": {}, "f:name": {}},
    }}}}});
    assert_eq!(managers(&both)[1], entry("two", "Apply", fields));
    let ports = &managers(&both)[0].2["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"web\"}"]
        ["f:ports"];
    let port =
        json!({"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}});
    assert_eq!(*ports, port, "the protocol of the key is its default");
    assert_eq!(managers(&both)[0].2["f:spec"]["f:selector"], json!({}), "a selector is one field");
}

#[tokio::test(start_paused = true)]
async fn subresources_are_managers_of_their_own() {
    let (_server, client) = start();
    apply(&client, WEB, "fieldManager=one", &web(1, "web:1")).await.ok();
    let mut status =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    status["status"] = json!({"replicas": 1});
    let path = format!("{WEB}/status");
    let shown = apply(&client, &path, "fieldManager=one", &status).await.ok();
    let fields = json!({"f:status": {"f:replicas": {}}});
    assert_eq!(managers(&shown)[1], entry("one", "Apply status", fields));
    assert_eq!(managers(&shown)[0].2["f:status"], Value::Null);

    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"},
        "spec": {"replicas": 3}});
    let path = format!("{WEB}/scale");
    let refused = apply(&client, &path, "fieldManager=hpa", &scale).await.failed(409);
    let message = "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas";
    assert_eq!(refused["message"], message);
    let scaled = apply(&client, &path, "fieldManager=hpa&force=true", &scale).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let read = client.get(WEB).await.ok();
    let owner = managers(&read).into_iter().find(|(manager, ..)| manager == "hpa");
    assert_eq!(owner, Some(entry("hpa", "Apply scale", json!({"f:spec": {"f:replicas": {}}}))));
    let status = apply(&client, WEB, "fieldManager=one", &web(1, "web:1")).await.failed(409);
    let message = "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\": .spec.replicas";
    assert_eq!(status["message"], message);
}

#[tokio::test(start_paused = true)]
async fn kubectl_takes_over_what_it_applied_itself() {
    let (_server, client) = start();
    let last = data(json!({"x": "1", "y": "1"}));
    let mut object = last.clone();
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    let path = format!("{MAPS}?fieldManager=kubectl-client-side-apply");
    client.post(&path, object).await.ok();
    client.merge(&format!("{A}?fieldManager=edit"), json!({"data": {"y": "2"}})).await.ok();
    let refused =
        apply(&client, A, "fieldManager=kubectl", &data(json!({"x": "3", "y": "3"}))).await;
    let message = "Apply failed with 1 conflict: conflict with \"edit\" using v1: .data.y";
    assert_eq!(refused.failed(409)["message"], message);
    let config = data(json!({"x": "3", "y": "2"}));
    let applied = apply(&client, A, "fieldManager=kubectl", &config).await.ok();
    assert_eq!(applied["data"], json!({"x": "3", "y": "2"}));
    let annotations = &applied["metadata"]["annotations"];
    let kept = annotations["kubectl.kubernetes.io/last-applied-configuration"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(kept).unwrap(), config);
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_merged_by_their_schemas() {
    let (_server, client) = start();
    let mut widgets = crate::harness::definition("widgets", "Widget");
    widgets["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "port": {"type": "integer"},
                }},
            },
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "order": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets).await.ok();
    let path = "/apis/tests.example.com/v1/namespaces/default/widgets/w";
    let widget = |spec: Value| json!({"apiVersion": "tests.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let one = widget(json!({"ports": [{"name": "a", "port": 1}], "tags": ["x"], "order": ["1"],
        "whole": {"a": "1"}, "free": {"deep": {"a": 1}}}));
    apply(&client, path, "fieldManager=one", &one).await.ok();
    let two = widget(
        json!({"ports": [{"name": "b", "port": 2}], "tags": ["y"], "free": {"deep": {"b": 2}}}),
    );
    let both = apply(&client, path, "fieldManager=two", &two).await.ok();
    assert_eq!(both["spec"]["tags"], json!(["x", "y"]));
    assert_eq!(both["spec"]["ports"], json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]));
    assert_eq!(both["spec"]["free"], json!({"deep": {"a": 1, "b": 2}}));
    let whole = widget(json!({"whole": {"b": "2"}, "order": ["2"]}));
    let status = apply(&client, path, "fieldManager=three", &whole).await.failed(409);
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(fields, [".spec.order", ".spec.whole"]);
    let unknown = widget(json!({"colour": "blue"}));
    let status = apply(&client, path, "fieldManager=one", &unknown).await.failed(400);
    let message = "failed to create typed patch object (/w; tests.example.com/v1, Kind=Widget): \
                   .spec.colour: field not declared in schema";
    assert_eq!(status["message"], message);
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_be_applied_are_refused() {
    let (_server, client) = start();
    let config = data(json!({"x": "1"}));
    let status = apply(&client, A, "", &config).await.failed(422);
    assert_eq!(
        status["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let sent = |body: &'static str| {
        client.request(
            "PATCH",
            "/api/v1/namespaces/default/configmaps/a?fieldManager=m",
            &APPLY,
            body,
        )
    };
    assert!(sent("{").await.message().starts_with("error decoding YAML: "));
    assert_eq!(sent("[]").await.code, 400);
    assert_eq!(
        sent("kind: Secret\napiVersion: v1").await.message(),
        "invalid object type: /v1, Kind=Secret"
    );
    let managed = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: []}}";
    assert_eq!(sent(managed).await.message(), "metadata.managedFields must be nil");
    assert_eq!(sent("apiVersion: v1\nkind: ConfigMap\ndata: {x: 'y'}").await.code, 400, "no name");
    assert_eq!(
        sent("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'y'}").await.code,
        201
    );
    let mut stale = config.clone();
    stale["metadata"]["resourceVersion"] = json!("1");
    apply(&client, A, "fieldManager=m", &stale).await.failed(409);
    stale["metadata"] = json!({"name": "b", "uid": "none"});
    let b = format!("{MAPS}/b");
    apply(&client, &b, "fieldManager=m", &stale).await.failed(409);
    apply(&client, &format!("{A}/status"), "fieldManager=m", &config).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn dry_runs_show_the_outcome_and_store_nothing() {
    let (_server, client) = start();
    let config = data(json!({"x": "1"}));
    let dry = apply(&client, A, "fieldManager=m&dryRun=All", &config).await;
    assert_eq!((dry.code, managers(&dry.ok()).len()), (201, 1));
    client.get(A).await.failed(404);
    let made = apply(&client, A, "fieldManager=m", &config).await.ok();
    let dry = apply(&client, A, "fieldManager=m&dryRun=All", &data(json!({"x": "2"}))).await.ok();
    assert_eq!(dry["data"]["x"], "2");
    assert_eq!(version(&client.get(A).await.ok()), version(&made));
}

#[tokio::test(start_paused = true)]
async fn managers_can_be_edited_and_reset() {
    let (_server, client) = start();
    client.post(&format!("{MAPS}?fieldManager=one"), data(json!({"x": "1"}))).await.ok();
    let renamed =
        json!([{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "two"}]);
    let object = client.json_patch(A, renamed).await.ok();
    assert_eq!(managers(&object)[0].0, "two");
    let mut object = client.get(A).await.ok();
    object["metadata"]["managedFields"] = json!([{}]);
    let reset = client.put(A, object).await.ok();
    assert_eq!(managers(&reset), []);
    client.merge(A, json!({"data": {"x": "2"}})).await.ok();
    assert_eq!(managers(&client.get(A).await.ok()), []);
    let status = apply(&client, A, "fieldManager=two", &data(json!({"x": "3"}))).await.failed(409);
    let message =
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.x";
    assert_eq!(status["message"], message);
}

#[tokio::test(start_paused = true)]
async fn protobuf_shows_the_same_managers() {
    let (_server, client) = start();
    client.post(&format!("{MAPS}?fieldManager=one"), data(json!({"x": "1"}))).await.ok();
    let json = client.get(A).await.ok();
    let protobuf = client.get_as(A, kube_schema::MEDIA_TYPE).await.protobuf();
    assert_eq!(managers(&protobuf), managers(&json));
    assert_eq!(managers(&json).len(), 1);
    apply(&client, A, "fieldManager=two", &data(json!({"y": "1"}))).await.ok();
    let protobuf = client.get_as(A, kube_schema::MEDIA_TYPE).await.protobuf();
    assert_eq!(managers(&protobuf), managers(&client.get(A).await.ok()));
}

/// Managers are computed in a shorter way if an object is only updated by its creator and in its status. A server that
/// shows all managers always takes the longer way.
#[tokio::test(start_paused = true)]
async fn managers_are_the_same_whether_they_are_computed_early_or_late() {
    const MERGE: [(&str, &str); 1] = [("content-type", "application/merge-patch+json")];
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    const WRITERS: [&str; 3] = ["creator", "other", "third"];
    let values = [Value::Null, json!("1"), json!("2")];
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let now: jiff::Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let early = ApiServer::builder().show_managed_fields(true).starting_at(now).build();
        let late = ApiServer::builder().starting_at(now).build();
        let clients = [&early, &late].map(Client::of);
        for client in &clients {
            let path = format!("{DEPLOYMENTS}?fieldManager=creator");
            client.post(&path, web(1, "one")).await.ok();
        }
        for _ in 0..random.usize(0..6) {
            tokio::time::advance(std::time::Duration::from_secs(random.u64(0..3))).await;
            let [a, b, c] = [(); 3].map(|()| random.choice(&values).unwrap().clone());
            // The creator writes more often than the others, so that the shorter way is taken more than once.
            let writer = WRITERS[random.usize(0..5).saturating_sub(2)];
            let (target, patch) = match random.u8(0..5) {
                0 => (WEB.to_owned(), json!({"metadata": {"labels": {"a": a, "b": b}}})),
                1 => (WEB.to_owned(), json!({"spec": {"replicas": random.u8(1..3)}})),
                2 => (format!("{WEB}/status"), json!({"metadata": {"annotations": {"c": c}}})),
                _ => {
                    let condition = json!({"type": "Ready", "status": "True", "reason": c});
                    let conditions = json!([condition]);
                    let status = json!({"replicas": random.u8(1..4), "conditions": conditions});
                    (format!("{WEB}/status"), json!({"status": status}))
                }
            };
            for client in &clients {
                let uri = format!("{target}?fieldManager={writer}");
                client.request("PATCH", &uri, &MERGE, patch.to_string()).await.ok();
            }
        }
        let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"labels": {"z": "z"}}});
        let mut shown = Vec::new();
        for client in &clients {
            let applied = apply(client, WEB, "fieldManager=last&dryRun=All", &config).await.ok();
            shown.push(applied["metadata"]["managedFields"].clone());
        }
        assert_eq!(shown[0], shown[1], "seed {seed}");
    }
}
