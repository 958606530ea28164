//! Label and field selectors.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, definition, escaped, failure, labelled, map, name, names};

#[tokio::test(start_paused = true)]
async fn label_selectors_select() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for (name, labels) in [
        ("a", json!({"tier": "web", "env": "prod", "n": "5"})),
        ("b", json!({"tier": "db", "env": "prod"})),
        ("c", json!({"tier": "web"})),
        ("d", json!({"empty": ""})),
        ("e", json!(null)),
    ] {
        client.post(MAPS, labelled(name, labels)).await.ok();
    }
    for (selector, want) in [
        ("", vec!["a", "b", "c", "d", "e"]),
        ("tier=web", vec!["a", "c"]),
        ("tier==web", vec!["a", "c"]),
        ("tier!=web", vec!["b", "d", "e"]),
        ("tier=web,env=prod", vec!["a"]),
        ("tier in (web, db)", vec!["a", "b", "c"]),
        ("tier notin (web)", vec!["b", "d", "e"]),
        ("env", vec!["a", "b"]),
        ("!env", vec!["c", "d", "e"]),
        ("tier,!env", vec!["c"]),
        ("empty=", vec!["d"]),
        ("tier in ()", vec![]),
        ("n>4", vec!["a"]),
        ("n>5", vec![]),
        ("n<6", vec!["a"]),
        ("tier=web,tier=db", vec![]),
    ] {
        let path = format!("{MAPS}?labelSelector={}", escaped(selector));
        assert_eq!(names(&client.get(&path).await.ok()), want, "{selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_that_are_none_are_400_with_the_reason() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let label_rule = "a valid label must be an empty string or consist of alphanumeric \
                      characters, '-', '_' or '.', and must start and end with an alphanumeric \
                      character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
                      validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let value =
        format!("unable to parse requirement: values[0][x]: Invalid value: \"%\": {label_rule}");
    let only = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    for (path, parameter, selector, message) in [
        (
            MAPS,
            "labelSelector",
            "a b c",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (MAPS, "labelSelector", "x=%", &*value),
        (MAPS, "fieldSelector", "foo", "invalid selector: 'foo'; can't understand 'foo'"),
        (MAPS, "fieldSelector", "foo=bar", &*format!("\"foo\" {only}")),
        ("/apis/apps/v1/deployments", "fieldSelector", "a=b", &*format!("\"a\" {only}")),
        ("/api/v1/pods", "fieldSelector", "foo=bar", "field label not supported: foo"),
        ("/api/v1/secrets", "fieldSelector", "data=x", "field label not supported: data"),
        (
            "/api/v1/nodes",
            "fieldSelector",
            "metadata.namespace=x",
            "field label not supported: metadata.namespace",
        ),
    ] {
        for watch in ["", "&watch=1"] {
            let path = format!("{path}?{parameter}={}{watch}", escaped(selector));
            let answer = client.get(&path).await;
            let want = failure(400, "BadRequest", message, json!(null));
            assert_eq!((answer.code, answer.json()), (400, want), "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_is_selected_by_name_and_namespace() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, map("a")).await.ok();
    client.post(MAPS, map("b")).await.ok();
    client.post("/api/v1/namespaces/kube-system/configmaps", map("a")).await.ok();
    let all = "/api/v1/configmaps";
    for (path, selector, want) in [
        (all, "metadata.name=a", 2),
        (MAPS, "metadata.name=a", 1),
        (all, "metadata.name!=a", 1),
        (all, "metadata.namespace=default", 2),
        (all, "metadata.namespace=default,metadata.name=a", 1),
        (all, "metadata.name==a,metadata.namespace!=default", 1),
        (MAPS, "metadata.namespace=kube-system", 0),
    ] {
        let path = format!("{path}?fieldSelector={}", escaped(selector));
        assert_eq!(names(&client.get(&path).await.ok()).len(), want, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_are_selected_by_fields_of_their_own() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let object = |kind: &str, version: &str, name: &str, rest: Value| {
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        object
    };
    let about = json!({"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Because"});
    for made in [
        object("Pod", "v1", "p1", json!({"spec": {"nodeName": "n1"}})),
        object("Pod", "v1", "p2", json!({"spec": {}})),
        object("Secret", "v1", "s1", json!({"type": "kubernetes.io/tls"})),
        object("Secret", "v1", "s2", json!({})),
        object("Node", "v1", "n1", json!({"spec": {"unschedulable": true}})),
        object("Node", "v1", "n2", json!({})),
        object("Job", "batch/v1", "j1", json!({"spec": {}})),
        object("Service", "v1", "c1", json!({"spec": {"type": "NodePort"}})),
        object("Event", "v1", "e1", about),
    ] {
        server.create(made).unwrap();
    }
    server
        .update_status(object("Pod", "v1", "p1", json!({"status": {"phase": "Running"}})))
        .unwrap();
    for (path, selector, want) in [
        ("/api/v1/pods", "spec.nodeName=n1", "p1"),
        ("/api/v1/pods", "spec.nodeName=", "p2"),
        ("/api/v1/pods", "status.phase=Running", "p1"),
        ("/api/v1/pods", "status.phase!=Running", "p2"),
        ("/api/v1/pods", "spec.hostNetwork=false,spec.nodeName!=n1", "p2"),
        ("/api/v1/secrets", "type=Opaque", "s2"),
        ("/api/v1/nodes", "spec.unschedulable=true", "n1"),
        ("/api/v1/nodes", "spec.unschedulable=false", "n2"),
        ("/apis/batch/v1/jobs", "status.successful=0", "j1"),
        ("/api/v1/services", "spec.type=NodePort", "c1"),
        ("/api/v1/namespaces", "status.phase=Active,metadata.name=default", "default"),
        ("/api/v1/events", "involvedObject.name=p,reason=Because", "e1"),
        ("/apis/events.k8s.io/v1/events", "regarding.kind=Pod", "e1"),
    ] {
        let list = client.get(&format!("{path}?fieldSelector={}", escaped(selector))).await.ok();
        assert_eq!(names(&list), [want], "{path} {selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_selected_by_the_fields_that_their_version_names() {
    let server = ApiServer::start();
    let mut widgets = definition("widgets", "Widget");
    widgets["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    server.create(widgets).unwrap();
    let client = Client::of(&server);
    for (name, color) in [("a", "red"), ("b", "blue")] {
        let widget = json!({
            "apiVersion": "tests.example.com/v1", "kind": "Widget",
            "metadata": {"name": name}, "spec": {"color": color},
        });
        server.create(widget).unwrap();
    }
    let path = "/apis/tests.example.com/v1/widgets?fieldSelector=";
    let list = client.get(&format!("{path}spec.color%3Dred")).await.ok();
    assert_eq!(names(&list), ["a"]);
    let refused = client.get(&format!("{path}spec.size%3D1")).await;
    assert_eq!(refused.message(), "field label not supported: spec.size");
    let mut watch = client.watch(&format!("{path}spec.color%3Dblue&watch=1")).await;
    assert_eq!(name(&watch.event().await.object), "b");
}
