//! Tables, as kubectl prints them.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, definition, map};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Returns the columns that kubectl shows without `-o wide`, with their cells.
fn shown(table: &Value, row: usize) -> Vec<(String, Value)> {
    let columns = table["columnDefinitions"].as_array().expect("columns").iter();
    let cells = table["rows"][row]["cells"].as_array().expect("cells").iter();
    columns
        .zip(cells)
        .filter(|(column, _)| column["priority"] == 0)
        .map(|(column, cell)| (column["name"].as_str().unwrap().to_owned(), cell.clone()))
        .collect()
}

fn scene() -> Vec<Value> {
    let labels = json!({"app": "x"});
    let selector = json!({"matchLabels": labels});
    vec![
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 3, "selector": selector, "template": {}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "protocol": "TCP"}]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"a": "", "b": ""}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
            "data": {"a": ""}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n",
            "labels": {"node-role.kubernetes.io/worker": ""}}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "spec": {"completions": 2}}),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_main_kinds_have_the_columns_that_kubectl_shows() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for object in scene() {
        server.create(object).unwrap();
    }
    tokio::time::advance(std::time::Duration::from_secs(90)).await;
    let node_status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    }});
    client.merge("/api/v1/nodes/n/status", node_status).await.ok();
    let pod_status = json!({"status": {"phase": "Running", "containerStatuses": [
        {"name": "c", "ready": true, "restartCount": 2, "state": {"running": {}}},
    ]}});
    client.merge("/api/v1/namespaces/default/pods/p/status", pod_status).await.ok();
    for (path, want) in [
        (
            "/api/v1/pods",
            json!([
                ["Name", "p"],
                ["Ready", "1/1"],
                ["Status", "Running"],
                ["Restarts", "2"],
                ["Age", "90s"]
            ]),
        ),
        (
            "/apis/apps/v1/deployments",
            json!([
                ["Name", "d"],
                ["Ready", "0/3"],
                ["Up-to-date", 0],
                ["Available", 0],
                ["Age", "90s"]
            ]),
        ),
        (
            "/api/v1/services",
            json!([
                ["Name", "s"],
                ["Type", "ClusterIP"],
                ["Cluster-IP", "10.0.0.1"],
                ["External-IP", "<none>"],
                ["Port(s)", "80/TCP"],
                ["Age", "90s"]
            ]),
        ),
        (
            "/api/v1/secrets",
            json!([["Name", "s"], ["Type", "Opaque"], ["Data", 2], ["Age", "90s"]]),
        ),
        ("/api/v1/configmaps", json!([["Name", "m"], ["Data", 1], ["Age", "90s"]])),
        (
            "/api/v1/nodes",
            json!([
                ["Name", "n"],
                ["Status", "Ready"],
                ["Roles", "worker"],
                ["Age", "90s"],
                ["Version", "v1.36.3"]
            ]),
        ),
        (
            "/apis/batch/v1/jobs",
            json!([
                ["Name", "j"],
                ["Status", "Running"],
                ["Completions", "0/2"],
                ["Duration", ""],
                ["Age", "90s"]
            ]),
        ),
        (
            "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault",
            json!([["Name", "default"], ["Status", "Active"], ["Age", "90s"]]),
        ),
    ] {
        let table = client.get_as(path, TABLE).await.ok();
        assert_eq!(table["kind"], "Table");
        assert_eq!(json!(shown(&table, 0)), want, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_carry_what_was_asked_for() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, map("a")).await.ok();
    let partial = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    });
    for (include, want) in [
        ("", &partial),
        ("?includeObject=", &partial),
        ("?includeObject=Metadata", &partial),
        ("?includeObject=Object", &made),
        ("?includeObject=None", &Value::Null),
    ] {
        for path in [MAPS, &format!("{MAPS}/a")] {
            let table = client.get_as(&format!("{path}{include}"), TABLE).await.ok();
            let row = json!({"cells": ["a", 0, "0s"], "object": want});
            assert_eq!(table["rows"], json!([row]), "{path}{include}");
        }
    }
    let refused = client.get_as(&format!("{MAPS}?includeObject=Foo"), TABLE).await;
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.message(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be \
         'Metadata', 'Object', 'None', or empty"
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_table_leads_on_as_any_page() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for name in ["a", "b", "c"] {
        server.create(map(name)).unwrap();
    }
    let first = client.get_as(&format!("{MAPS}?limit=2"), TABLE).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = client.get_as(&format!("{MAPS}?limit=2&continue={token}"), TABLE).await.ok();
    assert_eq!(second["rows"][0]["cells"][0], "c");
}

/// A watch sends the columns once, and a bookmark's row exists only for its object.
#[tokio::test(start_paused = true)]
async fn a_watch_of_tables_is_one_row_an_event() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&includeObject=Object");
    let mut watch = client.watch_as(&path, TABLE).await;
    server.create(map("b")).unwrap();
    server.delete("configmaps", "default", "a").unwrap();
    let events = watch.events(4).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "BOOKMARK", "ADDED", "DELETED"]);
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event.object["kind"], "Table");
        assert_eq!(event.object["columnDefinitions"].is_null(), at > 0);
        assert_eq!(event.object["rows"].as_array().unwrap().len(), 1);
    }
    let bookmark = &events[1].object["rows"][0]["object"];
    assert_eq!(bookmark["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(bookmark["kind"], "ConfigMap");
    assert_eq!(events[3].object["rows"][0]["cells"][0], "a");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_the_columns_of_their_definition() {
    let server = ApiServer::start();
    let mut widgets = definition("widgets", "Widget");
    widgets["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "In mm"},
        {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Wide", "type": "string", "jsonPath": ".spec.wide", "priority": 1},
    ]);
    server.create(widgets).unwrap();
    server.create(definition("plains", "Plain")).unwrap();
    let client = Client::of(&server);
    for (kind, spec) in [("Widget", json!({"color": "red", "size": 3})), ("Plain", json!({}))] {
        let object = json!({"apiVersion": "tests.example.com/v1", "kind": kind,
            "metadata": {"name": "a"}, "spec": spec});
        server.create(object).unwrap();
    }
    let table = client.get_as("/apis/tests.example.com/v1/widgets", TABLE).await.ok();
    assert_eq!(
        json!(shown(&table, 0)),
        json!([["Name", "a"], ["Color", "red"], ["Size", 3], ["Made", "0s"]])
    );
    assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), 5);
    let table = client.get_as("/apis/tests.example.com/v1/plains", TABLE).await.ok();
    assert_eq!(json!(shown(&table, 0)), json!([["Name", "a"], ["Age", "0s"]]));
}
