//! Custom resources, from the creation of their definition to its deletion.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, Event, definition, failure, name, names, version};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "/apis/tests.example.com";
const WIDGETS: &str = "/apis/tests.example.com/v1/namespaces/default/widgets";

fn widget(name: &str) -> Value {
    json!({"apiVersion": "tests.example.com/v1", "kind": "Widget", "metadata": {"name": name}})
}

async fn widgets() -> (ApiServer, Client) {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(CRDS, definition("widgets", "Widget")).await.ok();
    (server, client)
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_and_served_at_once() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    assert_eq!(client.get(WIDGETS).await.code, 404);
    let made = client.post(CRDS, definition("widgets", "Widget")).await.ok();
    let conditions = made["status"]["conditions"].as_array().unwrap();
    let established = conditions.iter().find(|c| c["type"] == "Established").unwrap();
    assert_eq!(established["status"], "True");
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let names_made = json!({"plural": "widgets", "singular": "widget", "kind": "Widget",
        "listKind": "WidgetList"});
    assert_eq!(made["status"]["acceptedNames"], names_made);

    let made = client.post(WIDGETS, widget("a")).await.ok();
    assert_eq!((&made["kind"], &made["metadata"]["generation"]), (&json!("Widget"), &json!(1)));
    let list = client.get(WIDGETS).await.ok();
    assert_eq!((&list["kind"], names(&list)), (&json!("WidgetList"), vec!["a"]));
    assert_eq!(list["items"][0], made, "items of custom resources say what they are");
}

/// Only the body names the type of a custom object. That of a built-in one is implied.
#[tokio::test(start_paused = true)]
async fn an_object_has_to_say_its_kind_and_version() {
    let (server, client) = widgets().await;
    let without_kind = client.post(WIDGETS, json!({"metadata": {"name": "f"}})).await;
    let message = "the object provided is unrecognized (must be of type Widget): Object 'Kind' is \
                   missing";
    assert_eq!(without_kind.json(), failure(400, "BadRequest", message, json!(null)));
    for (version, shown) in
        [(json!(null), ""), (json!("tests.example.com/v2"), "tests.example.com/v2")]
    {
        let mut object = widget("a");
        object["apiVersion"] = version;
        let refused = client.post(WIDGETS, object).await;
        let message = format!(
            "the API version in the data ({shown}) does not match the expected API version \
             (tests.example.com/v1)"
        );
        assert_eq!(refused.json(), failure(400, "BadRequest", &message, json!(null)));
    }
    let mut other = widget("f");
    other["kind"] = json!("Gadget");
    let refused = client.post(WIDGETS, other).await;
    let why = "Invalid value: \"Gadget\": must be Widget";
    let details = json!({"name": "f", "group": "tests.example.com", "kind": "Gadget",
        "causes": [{"reason": "FieldValueInvalid", "message": why, "field": "kind"}]});
    let message = format!("Gadget.tests.example.com \"f\" is invalid: kind: {why}");
    assert_eq!(refused.json(), failure(422, "Invalid", &message, details));
    assert_eq!(server.count("widgets.tests.example.com", ""), 0);
}

#[tokio::test(start_paused = true)]
async fn an_update_needs_a_version_and_says_so_of_the_resource() {
    let (_server, client) = widgets().await;
    let made = client.post(WIDGETS, widget("a")).await.ok();
    let refused = client.put(&format!("{WIDGETS}/a"), widget("a")).await;
    let why = "Invalid value: 0: must be specified for an update";
    let details = json!({"name": "a", "group": "tests.example.com", "kind": "widgets",
        "causes": [{"reason": "FieldValueInvalid", "message": why,
                    "field": "metadata.resourceVersion"}]});
    let message =
        format!("widgets.tests.example.com \"a\" is invalid: metadata.resourceVersion: {why}");
    assert_eq!(refused.json(), failure(422, "Invalid", &message, details));
    let mut changed = made;
    changed["spec"] = json!({"x": 1});
    let changed = client.put(&format!("{WIDGETS}/a"), changed).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn one_object_is_served_in_all_versions() {
    let client = Client::of(&ApiServer::start());
    let mut crd = definition("widgets", "Widget");
    let mut old = crd["spec"]["versions"][0].clone();
    old["name"] = json!("v1beta1");
    old["storage"] = json!(false);
    let mut off = old.clone();
    off["name"] = json!("v1alpha1");
    off["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().unwrap().extend([old, off]);
    client.post(CRDS, crd).await.ok();

    let beta = WIDGETS.replace("v1", "v1beta1");
    let mut sent = widget("a");
    sent["apiVersion"] = json!("tests.example.com/v1beta1");
    let mut watch = client.watch(&format!("{WIDGETS}?watch=1")).await;
    let mut beta_watch = client.watch(&format!("{beta}?watch=1")).await;
    let made = client.post(&beta, sent).await.ok();
    assert_eq!(made["apiVersion"], "tests.example.com/v1beta1");
    for (path, version, watch) in [
        (WIDGETS, "tests.example.com/v1", &mut watch),
        (&*beta, "tests.example.com/v1beta1", &mut beta_watch),
    ] {
        let mut want = made.clone();
        want["apiVersion"] = json!(version);
        assert_eq!(client.get(&format!("{path}/a")).await.ok(), want);
        assert_eq!(client.get(path).await.ok()["items"], json!([want]));
        assert_eq!(watch.event().await.object, want);
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let rows = client.get_as(&format!("{path}?includeObject=Object"), table).await.ok();
        assert_eq!(rows["rows"][0]["object"], want);
    }
    for (path, version) in
        [(WIDGETS, "tests.example.com/v1"), (&*beta, "tests.example.com/v1beta1")]
    {
        let patch = json!({"spec": {"by": version}});
        let changed = client.merge(&format!("{path}/a"), patch).await.ok();
        assert_eq!(changed["apiVersion"], version);
        // An object is written in the version in which it was read.
        assert_eq!(client.put(&format!("{path}/a"), changed.clone()).await.ok(), changed);
    }
    assert_eq!(client.get(&WIDGETS.replace("v1", "v1alpha1")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_the_cluster_has_no_namespaces() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut crd = definition("widgets", "Widget");
    crd["spec"]["scope"] = json!("Cluster");
    client.post(CRDS, crd).await.ok();
    client.post(&format!("{GROUP}/v1/widgets"), widget("a")).await.ok();
    let got = client.get(&format!("{GROUP}/v1/widgets/a")).await.ok();
    assert_eq!(got["metadata"].get("namespace"), None);
    assert_eq!(client.get(WIDGETS).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn discovery_tells_of_a_definition_in_both_forms_as_long_as_it_exists() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut crd = definition("widgets", "Widget");
    crd["spec"]["names"]["shortNames"] = json!(["wd"]);
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    client.post(CRDS, crd).await.ok();

    let groups = client.get("/apis").await.ok()["groups"].clone();
    let group = groups.as_array().unwrap().last().unwrap().clone();
    assert_eq!(group["name"], "tests.example.com");
    assert_eq!(client.get(GROUP).await.ok()["preferredVersion"], group["preferredVersion"]);
    let version = client.get(&format!("{GROUP}/v1")).await.ok();
    let resources = version["resources"].as_array().unwrap();
    let listed: Vec<_> = resources.iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(listed, ["widgets", "widgets/status"]);
    assert_eq!(resources[0]["shortNames"], json!(["wd"]));

    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = client.get_as("/apis", v2).await.ok();
    let last = all["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(name(&last), "tests.example.com");
    let resource = &last["versions"][0]["resources"][0];
    assert_eq!(
        (&resource["resource"], &resource["scope"]),
        (&json!("widgets"), &json!("Namespaced"))
    );
    assert_eq!(resource["subresources"][0]["subresource"], "status");

    client.delete(&format!("{CRDS}/widgets.tests.example.com")).await.ok();
    assert_eq!(client.get(GROUP).await.code, 404);
    assert_eq!(client.get(&format!("{GROUP}/v1")).await.code, 404);
    assert!(!client.get_as("/apis", v2).await.ok().to_string().contains("tests.example.com"));
}

/// When its definition is deleted, a resource's objects are deleted, its watches end, and its path
/// is unknown.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_definition_is_the_end_of_its_objects_and_watches() {
    let (server, client) = widgets().await;
    for name in ["a", "b"] {
        client.post(WIDGETS, widget(name)).await.ok();
    }
    let from = server.store().revision();
    let watch = client.watch(&format!("{WIDGETS}?watch=1&resourceVersion={from}")).await;
    let selected =
        client.watch(&format!("{WIDGETS}?watch=1&fieldSelector=metadata.name%3Db")).await;
    let mut definitions = client.watch(&format!("{CRDS}?watch=1&resourceVersion={from}")).await;
    client.delete(&format!("{CRDS}/widgets.tests.example.com")).await.ok();
    // In this order: the definition is marked, its objects are deleted, it is removed.
    let events = watch.rest().await;
    let briefs: Vec<_> = events.iter().map(Event::brief).collect();
    assert_eq!(briefs, [("DELETED", "a", from + 2), ("DELETED", "b", from + 3)]);
    let marked = definitions.event().await;
    assert!(marked.object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!((marked.kind.as_str(), marked.version()), ("MODIFIED", from + 1));
    let gone = definitions.event().await;
    assert_eq!((gone.kind.as_str(), gone.version()), ("DELETED", from + 4));
    drop(definitions);
    let kinds: Vec<_> = selected.rest().await.iter().map(|e| e.kind.clone()).collect();
    assert_eq!(kinds, ["ADDED", "DELETED"]);
    for path in [WIDGETS, &format!("{WIDGETS}/a"), &format!("{WIDGETS}?watch=1")] {
        assert_eq!(client.get(path).await.code, 404);
    }
    assert_eq!(client.post(WIDGETS, widget("c")).await.code, 404);
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_comes_back_begins_empty() {
    let (server, client) = widgets().await;
    client.post(WIDGETS, widget("a")).await.ok();
    let crd = format!("{CRDS}/widgets.tests.example.com");
    client.delete(&crd).await.ok();
    client.post(CRDS, definition("widgets", "Widget")).await.ok();
    assert_eq!(client.get(WIDGETS).await.ok()["items"], json!([]));
    let mut watch = client.watch(&format!("{WIDGETS}?watch=1")).await;
    let made = client.post(WIDGETS, widget("a")).await.ok();
    assert_eq!(watch.event().await.brief(), ("ADDED", "a", version(&made)));
    assert_eq!(version(&made), server.store().revision());
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_changed_changes_what_is_served() {
    let (_server, client) = widgets().await;
    let made = client.post(WIDGETS, widget("a")).await.ok();
    let crd = format!("{CRDS}/widgets.tests.example.com");
    assert_eq!(client.get(&format!("{WIDGETS}/a/status")).await.code, 404);
    let patch = json!([{"op": "add", "path": "/spec/versions/0/subresources",
        "value": {"status": {}}}]);
    let changed = client.json_patch(&crd, patch).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    let status = json!({"status": {"ready": true}});
    let patched = client.merge(&format!("{WIDGETS}/a/status"), status).await.ok();
    assert_eq!(patched["status"]["ready"], true);
    assert_eq!(patched["metadata"]["generation"], made["metadata"]["generation"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_wrong_is_refused_and_not_served() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut misnamed = definition("widgets", "Widget");
    misnamed["metadata"]["name"] = json!("other.tests.example.com");
    let status = client.post(CRDS, misnamed).await.failed(422);
    assert_eq!(
        status["message"],
        "CustomResourceDefinition.apiextensions.k8s.io \"other.tests.example.com\" is invalid: \
         metadata.name: Invalid value: \"other.tests.example.com\": must be \
         spec.names.plural+\".\"+spec.group"
    );
    assert_eq!(client.get(WIDGETS).await.code, 404);
}
