//! The choice of types and objects.

use serde_json::{Value, json};

use crate::process::{Cluster, pod};
use crate::terminal::Terminal;

fn keys(stdout: &str) -> Vec<&str> {
    stdout.lines().collect()
}

#[test]
fn several_types_at_once() {
    let cluster = Cluster::start("types");
    cluster.pod("nginx", &json!({}));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    cluster.create("/api/v1/namespaces/default/configmaps", &map);
    let run = cluster.run(&["po,cm,po", "-o", "name", "--count", "2"]);
    let mut names = keys(&run.stdout);
    names.sort_unstable();
    assert_eq!((run.code, names), (Some(0), vec!["configmap/settings", "pod/nginx"]));
}

#[test]
fn custom_resources_have_the_columns_of_their_definition() {
    let cluster = Cluster::start("custom");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [{"name": "Colour", "type": "string", "jsonPath": ".spec.colour"}],
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.create(definitions, &definition);
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"},
        "spec": {"colour": "blue"},
    });
    cluster.create("/apis/example.com/v1/namespaces/default/widgets", &widget);
    let run = cluster.run(&["wd", "--count", "1"]);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert!(lines[0].contains("COLOUR"), "{run:?}");
    assert!(lines[1].contains("Widget") && lines[1].contains("blue"), "{run:?}");
    let run = cluster.run(&["widgets.example.com", "-o", "name", "--count", "1"]);
    assert_eq!(run.stdout, "widget.example.com/one\n");
}

/// Cluster-scoped, without columns of their own, and with characters of all kinds.
#[test]
fn custom_resources_without_columns_show_their_age() {
    let cluster = Cluster::start("custom-bare");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"},
        "spec": {"größe": "日本語 😀"},
    });
    cluster.create("/apis/example.com/v1/things", &thing);
    let run = cluster.run(&["things", "--count", "1"]);
    let rows: Vec<Vec<_>> =
        run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["TIME", "EVENT", "KIND", "NAME", "AGE", "RV"], "{run:?}");
    assert_eq!(rows[1][1..4], ["ADD", "Thing", "one"], "{run:?}");
    let run = cluster.run(&["things", "-o", "json", "--count", "1"]);
    let event: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&event["key"], &event["object"]["spec"]), (&json!("one"), &thing["spec"]));
    let run = cluster.run(&["things", "-o", "jsonpath={.spec.größe}", "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "日本語 😀\n"), "{run:?}");
}

/// An object that is larger than a pipe's buffer.
#[test]
fn an_object_may_be_large() {
    let cluster = Cluster::start("large");
    let large = "x".repeat(900_000);
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"a": large},
    });
    cluster.create("/api/v1/namespaces/default/configmaps", &map);
    let watch = cluster.watch(&["cm", "--diff", "-o", "json"]);
    assert_eq!(watch.json()["object"]["data"]["a"].as_str().unwrap().len(), 900_000);
    let change = json!({"data": {"b": "c"}});
    cluster.patch("/api/v1/namespaces/default/configmaps/large", &change);
    let update = watch.json();
    assert_eq!(update["diff"], json!([{"op": "add", "path": ".data.b", "new": "c"}]));
}

#[test]
fn names_are_matched() {
    let cluster = Cluster::start("regex");
    for name in ["web-1", "web-2", "db-1"] {
        cluster.pod(name, &json!({}));
    }
    let run = cluster.run(&["pods", "^web-", "-o", "name", "--count", "2"]);
    assert_eq!(keys(&run.stdout), ["pod/web-1", "pod/web-2"]);
    let run = cluster.run(&["pods", "1$", "--exclude", "^db", "-o", "name", "--count", "1"]);
    assert_eq!(keys(&run.stdout), ["pod/web-1"]);
    let run = cluster.run(&["pods/db-1", "-o", "name", "--count", "1"]);
    assert_eq!(keys(&run.stdout), ["pod/db-1"]);
    let run = cluster.run(&["pods", "(", "-o", "name"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("NAME-REGEX"), "{run:?}");
}

/// As in `get`.
#[test]
fn several_objects_are_named_with_their_types() {
    let cluster = Cluster::start("objects");
    for name in ["web", "db"] {
        cluster.pod(name, &json!({}));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        cluster.create("/api/v1/namespaces/default/configmaps", &map);
    }
    let run = cluster.run(&["po/web", "cm/web", "-o", "name", "--count", "2"]);
    let mut names = keys(&run.stdout);
    names.sort_unstable();
    assert_eq!((run.code, names), (Some(0), vec!["configmap/web", "pod/web"]), "{run:?}");
    // Two of one type need no column for their kind.
    let mut terminal =
        Terminal::start(cluster.tool(&["watch", "po/web", "po/db", "--color=never"]), 60);
    terminal.shows("TIME   EVENT   NAME  READY");
    terminal.shows("● live  pod/web, pod/db");
    for (arguments, message) in [
        (&["po/web", "db"][..], r#""db" is no TYPE/NAME, as "po/web" before it"#),
        (&["po", "cm/web"], r#""cm/web" is no expression for names"#),
        (&["po", "web", "db"], "one expression is expected: 'web|db' matches either"),
    ] {
        let run = cluster.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains(message), "{run:?}");
    }
}

#[test]
fn an_object_that_is_awaited_is_named() {
    let cluster = Cluster::start("awaited");
    cluster
        .watch(&["deploy/nope"])
        .says("there is no deployment.apps/nope in namespace default yet: waiting for it");
    cluster.pod("web", &json!({}));
    let mut terminal = Terminal::start(cluster.tool(&["watch", "po/web", "po/nope"]), 100);
    terminal.shows("there is no pod/nope in namespace default yet: waiting for it\r\n");
    terminal.shows("pod/web, waiting for pod/nope");
    cluster.pod("nope", &json!({}));
    terminal.shows("pod/web, pod/nope");
}

#[test]
fn the_status_line_counts_what_matches() {
    let cluster = Cluster::start("matching");
    for name in ["web-1", "web-2", "db-1"] {
        cluster.pod(name, &json!({}));
    }
    let mut terminal =
        Terminal::start(cluster.tool(&["watch", "pods", "web", "--color=never"]), 100);
    terminal.shows("● live  2 of 3 pods match");
    cluster.pod("web-3", &json!({}));
    terminal.shows("● live  3 of 4 pods match");
    cluster.delete("/api/v1/namespaces/default/pods/db-1");
    terminal.shows("● live  3 of 3 pods match");
    cluster.delete("/api/v1/namespaces/default/pods/web-1");
    terminal.shows("● live  2 of 2 pods match");
    let none = ["watch", "pods", "--exclude", "-", "--color=never"];
    Terminal::start(cluster.tool(&none), 100).shows("● live  0 of 2 pods match");
}

#[test]
fn namespaces_and_selectors() {
    let cluster = Cluster::start("selectors");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    cluster.create("/api/v1/namespaces", &namespace);
    cluster.pod("here", &json!({"app": "web"}));
    cluster.pod("other", &json!({"app": "db"}));
    cluster.create("/api/v1/namespaces/shop/pods", &pod("there", &json!({"app": "web"})));
    for (arguments, names) in [
        (&["-n", "shop"][..], &["pod/there"][..]),
        (&["-A", "-l", "app=web"], &["pod/here", "pod/there"]),
        (&["-n", "default,shop", "-l", "app=web"], &["pod/here", "pod/there"]),
        (&["-l", "app!=web"], &["pod/other"]),
        (&["--field-selector", "metadata.name=here"], &["pod/here"]),
        (&["--selector=app in (db)"], &["pod/other"]),
    ] {
        let count = names.len().to_string();
        let all = [&["pods", "-o", "name", "--count", &count], arguments].concat();
        let run = cluster.run(&all);
        assert_eq!(
            (run.code, keys(&run.stdout)),
            (Some(0), names.to_vec()),
            "{arguments:?} {run:?}"
        );
    }
}

#[test]
fn who_sees_nothing_is_told_why() {
    let cluster = Cluster::start("nothing");
    cluster.watch(&["pods"]).says("no pods in namespace default yet: waiting");
    cluster.watch(&["pods", "-n", "nowhere"]).says("there is no namespace nowhere, so far");
    cluster.pod("web", &json!({}));
    let watch = cluster.watch(&["pods", "^db"]);
    watch.says("none of the 1 pods in namespace default has such a name yet: waiting");
}

#[test]
fn only_what_is_new_on_request() {
    let cluster = Cluster::start("new");
    cluster.pod("before", &json!({}));
    let watch = cluster.watch(&["pods", "--watch-only", "-o", "json", "--resync", "1s"]);
    // The resync shows that the initial object has been delivered.
    assert_eq!(watch.json()["type"], "RESYNC");
    cluster.pod("after", &json!({}));
    let added = std::iter::repeat_with(|| watch.json()).find(|event| event["type"] == "ADD");
    assert_eq!(added.unwrap()["key"], "default/after");
}

#[test]
fn twenty_thousand_objects() {
    let directory = crate::support::directory("watch-many-data");
    let file = directory.join("data.json");
    let items = (0..20_000).map(|n| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{n:05}")}})
    });
    let items: Vec<_> = items.collect();
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": items});
    std::fs::write(&file, list.to_string()).unwrap();
    let cluster = Cluster::with("many", &["--data", file.to_str().unwrap()]);
    let run = cluster.run(&["cm", "-o", "name", "--count", "20000"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let names = keys(&run.stdout);
    assert_eq!(names.len(), 20_000);
    assert_eq!((names[0], names[19_999]), ("configmap/map-00000", "configmap/map-19999"));
    let run = cluster.run(&["cm", "--count", "20000"]);
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 20_001));
}
