//! Real kubectl against `serve`: an independent client, with all its habits.
#![cfg(unix)]

mod apply;
mod faults;
mod plugin;
mod process;
mod restarts;
#[path = "../shared/support.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use process::{Kubectl, first_words, line_with, single_spaced};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]}
";

const MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
";

const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: small}
spec: {size: 3}
";

#[test]
fn every_output_of_get() {
    let Some(kubectl) = Kubectl::new("outputs") else { return };
    assert_eq!(kubectl.run(&["run", "nginx", "--image=nginx"]), "pod/nginx created\n");
    assert_eq!(kubectl.create(POD), "pod/web created\n");

    let table = kubectl.run(&["get", "pods"]);
    assert_eq!(first_words(&table), ["NAME", "nginx", "web"]);
    let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..4], ["nginx", "0/1", "Pending", "0"]);
    let wide = kubectl.run(&["get", "pods", "-o", "wide"]);
    assert!(wide.lines().next().unwrap().contains("NOMINATED NODE"), "{wide}");
    let labelled = kubectl.run(&["get", "pods", "-l", "app=web", "--show-labels"]);
    assert_eq!(first_words(&labelled), ["NAME", "web"]);
    assert!(labelled.contains("app=web"));

    assert_eq!(kubectl.run(&["get", "pods", "-o", "name"]), "pod/nginx\npod/web\n");
    let names = "jsonpath={.items[*].metadata.name}";
    assert_eq!(kubectl.run(&["get", "pods", "-o", names]), "nginx web");
    let columns = "custom-columns=WHO:.metadata.name,WHAT:.spec.containers[0].image";
    let columns = kubectl.run(&["get", "pods", "-o", columns]);
    assert_eq!(
        columns.split_whitespace().collect::<Vec<_>>(),
        ["WHO", "WHAT", "nginx", "nginx", "web", "nginx"]
    );
    let yaml = kubectl.run(&["get", "pod", "web", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: v1\nkind: Pod\nmetadata:\n"), "{yaml}");
    let json = kubectl.run(&["get", "pod", "web", "-o", "json"]);
    assert!(json.contains(r#""containerPort": 80"#), "{json}");
    let sorted = kubectl.run(&["get", "pods", "--sort-by={.metadata.uid}", "-o", "name"]);
    assert_eq!(sorted.lines().count(), 2);

    assert!(kubectl.fail(&["get", "pod", "nope"]).contains(r#"pods "nope" not found"#));
    assert!(kubectl.fail(&["get", "nonsense"]).contains("doesn't have a resource type"));
    assert_eq!(first_words(&kubectl.run(&["get", "all"])), ["NAME", "pod/nginx", "pod/web"]);
}

#[test]
fn what_the_server_says_of_itself() {
    let Some(kubectl) = Kubectl::new("discovery") else { return };
    assert!(kubectl.run(&["version"]).contains("Server Version: v1."));
    assert_eq!(kubectl.run(&["get", "--raw", "/healthz"]), "ok");
    let versions = kubectl.run(&["api-versions"]);
    let versions: Vec<_> = versions.lines().collect();
    assert!(["v1", "apps/v1", "batch/v1"].iter().all(|v| versions.contains(v)), "{versions:?}");
    let resources = kubectl.run(&["api-resources"]);
    assert!(first_words(&resources).contains(&"deployments"), "{resources}");
    let of_cluster = kubectl.run(&["api-resources", "--namespaced=false", "-o", "name"]);
    assert!(of_cluster.lines().any(|line| line == "nodes"), "{of_cluster}");
    let namespaces = kubectl.run(&["get", "namespaces", "-o", "name"]);
    assert!(namespaces.contains("namespace/kube-system\n"), "{namespaces}");
    let (_, address) = kubectl.0.line.split_once("https://").unwrap();
    let (address, _) = address.split_once(',').unwrap();
    assert!(kubectl.run(&["cluster-info"]).contains(address));
}

#[test]
fn changes_to_an_object() {
    let Some(kubectl) = Kubectl::new("changes") else { return };
    kubectl.create(MAP);
    let map = "configmap/settings";
    assert_eq!(kubectl.run(&["label", map, "a=1"]), format!("{map} labeled\n"));
    assert_eq!(kubectl.run(&["annotate", map, "b=2"]), format!("{map} annotated\n"));
    let operations = r#"[{"op": "replace", "path": "/data/colour", "value": "red"}]"#;
    assert_eq!(
        kubectl.run(&["patch", map, "--type=json", "-p", operations]),
        format!("{map} patched\n")
    );
    let merge = r#"{"data": {"size": "3"}, "metadata": {"labels": {"a": null, "c": "4"}}}"#;
    kubectl.run(&["patch", map, "--type=merge", "-p", merge]);
    let shown = "jsonpath={.metadata.labels} {.metadata.annotations} {.data}";
    assert_eq!(
        kubectl.run(&["get", map, "-o", shown]),
        r#"{"c":"4"} {"b":"2"} {"colour":"red","size":"3"}"#
    );
    // A stale version does not overwrite later changes.
    let stale = kubectl.fail(&["label", map, "d=5", "--resource-version=1"]);
    assert!(stale.contains("the object has been modified"), "{stale}");
    assert_eq!(kubectl.run(&["label", map, "c-"]), format!("{map} unlabeled\n"));

    kubectl.create(POD);
    let phase = r#"{"status": {"phase": "Failed", "reason": "Evicted"}}"#;
    kubectl.run(&["patch", "pod/web", "--subresource=status", "--type=merge", "-p", phase]);
    assert!(kubectl.run(&["get", "pod", "web"]).contains("Evicted"));
}

#[test]
fn custom_resources() {
    let Some(kubectl) = Kubectl::new("custom") else { return };
    assert_eq!(
        kubectl.create(&format!("{MAP}---{DEFINITION}")),
        "configmap/settings created\n\
         customresourcedefinition.apiextensions.k8s.io/widgets.example.com created\n"
    );
    assert_eq!(kubectl.create(WIDGET), "widget.example.com/small created\n");
    let definition = "crd/widgets.example.com";
    let met = kubectl.run(&["wait", "--for=condition=Established", definition, "--timeout=60s"]);
    assert!(met.ends_with("condition met\n"), "{met}");
    let table = kubectl.run(&["get", "wd"]);
    assert_eq!(table.split_whitespace().collect::<Vec<_>>(), ["NAME", "SIZE", "small", "3"]);
    assert!(kubectl.run(&["get", "all"]).contains("widget.example.com/small"));
    assert!(kubectl.run(&["describe", "widget", "small"]).contains("Size:  3"));
    let size = kubectl.run(&["get", "widgets.v1.example.com", "-o", "jsonpath={..size}"]);
    assert_eq!(size, "3");

    kubectl.run(&["delete", definition]);
    assert!(kubectl.fail(&["get", "--raw", "/apis/example.com/v1/widgets"]).contains("NotFound"));
}

#[test]
fn watches() {
    let Some(kubectl) = Kubectl::new("watches") else { return };
    kubectl.create(MAP);
    let mut watching = kubectl.start(&["get", "configmaps", "-w", "--output-watch-events"]);
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    line_with(&mut lines, "settings");
    kubectl.create(&MAP.replace("settings", "more"));
    assert!(line_with(&mut lines, "more").starts_with("ADDED"));
    kubectl.run(&["label", "configmap", "settings", "a=b"]);
    assert!(line_with(&mut lines, "settings").starts_with("MODIFIED"));
    kubectl.run(&["delete", "configmap", "more"]);
    assert!(line_with(&mut lines, "more").starts_with("DELETED"));
}

#[test]
fn a_watch_ends_with_the_server() {
    let Some(mut kubectl) = Kubectl::new("end") else { return };
    kubectl.create(MAP);
    let mut watching = kubectl.start(&["get", "configmaps", "-w"]);
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    line_with(&mut lines, "settings");
    // It prints the listed objects before it watches. Only a new one shows that the watch has
    // started.
    kubectl.create(&MAP.replace("settings", "more"));
    line_with(&mut lines, "more");
    assert!(kubectl.0.end("TERM").1.success());
    // The server ends the watch gracefully, which is not an error.
    assert!(watching.0.wait().unwrap().success());
}

#[test]
fn waits() {
    let Some(kubectl) = Kubectl::new("waits") else { return };
    kubectl.create(POD);
    // At this verbosity, it logs when it starts to watch.
    let arguments = ["wait", "--for=condition=Ready", "pod/web", "--timeout=60s", "-v=7"];
    let mut waiting = kubectl.start(&arguments);
    let mut lines = BufReader::new(waiting.0.stderr.take().unwrap()).lines();
    line_with(&mut lines, "watch=true");
    let ready = r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#;
    kubectl.run(&["patch", "pod/web", "--subresource=status", "--type=merge", "-p", ready]);
    lines.for_each(drop);
    assert!(waiting.0.wait().unwrap().success());
    let pending = "--for=jsonpath={.status.phase}=Pending";
    assert_eq!(kubectl.run(&["wait", pending, "pod/web"]), "pod/web condition met\n");
    let late = kubectl.fail(&["wait", "--for=condition=Nonsense", "pod/web", "--timeout=1s"]);
    assert!(late.contains("timed out"), "{late}");
}

#[test]
fn deletions() {
    let Some(kubectl) = Kubectl::new("deletions") else { return };
    kubectl.create(POD);
    assert!(kubectl.run(&["delete", "pod", "web"]).starts_with("pod \"web\" deleted"));
    assert!(kubectl.fail(&["get", "pod", "web"]).contains("NotFound"));

    kubectl.create(MAP);
    let finalizers = r#"{"metadata": {"finalizers": ["example.com/held"]}}"#;
    kubectl.run(&["patch", "cm/settings", "--type=merge", "-p", finalizers]);
    kubectl.run(&["delete", "cm", "settings", "--wait=false"]);
    let going = ["get", "cm", "settings", "-o", "jsonpath={.metadata.deletionTimestamp}"];
    assert_ne!(kubectl.run(&going), "");

    let arguments = ["wait", "--for=delete", "cm/settings", "--timeout=60s", "-v=7"];
    let mut waiting = kubectl.start(&arguments);
    let mut lines = BufReader::new(waiting.0.stderr.take().unwrap()).lines();
    line_with(&mut lines, "watch=true");
    let none = r#"{"metadata": {"finalizers": null}}"#;
    kubectl.run(&["patch", "cm/settings", "--type=merge", "-p", none]);
    lines.for_each(drop);
    assert!(waiting.0.wait().unwrap().success());
    assert!(kubectl.fail(&["get", "cm", "settings"]).contains("NotFound"));

    kubectl.create(&format!("{MAP}---{}", MAP.replace("settings", "more")));
    kubectl.run(&["delete", "cm", "--all"]);
    assert_eq!(kubectl.run(&["get", "cm", "-o", "name"]), "");
}

#[test]
fn pods_that_run() {
    let Some(kubectl) = Kubectl::with("pods", &["--pods-run"]) else { return };
    kubectl.run(&["run", "nginx", "--image=nginx"]);
    kubectl.run(&["wait", "--for=condition=Ready", "pod/nginx", "--timeout=60s"]);
    let table = kubectl.run(&["get", "pods", "-o", "wide"]);
    let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..4], ["nginx", "1/1", "Running", "0"]);
    assert_eq!(words[6], "embedded-node");
    let described = single_spaced(&kubectl.run(&["describe", "pod", "nginx"]));
    for part in ["Node: embedded-node/", "Ready: True", "Scheduled"] {
        assert!(described.contains(part), "{part} in {described}");
    }
    let node = single_spaced(&kubectl.run(&["get", "nodes"]));
    assert!(node.contains("embedded-node Ready"), "{node}");
    assert!(kubectl.run(&["describe", "node", "embedded-node"]).contains("nginx"));
    assert!(kubectl.run(&["get", "events"]).contains("pod/nginx"));

    // It waits until the pod is gone.
    kubectl.run(&["delete", "pod", "nginx"]);
    assert_eq!(kubectl.run(&["get", "pods", "-o", "name"]), "");
    kubectl.run(&["run", "nginx", "--image=nginx"]);
    kubectl.run(&["delete", "pod", "nginx", "--now", "--wait=false"]);
    kubectl.run(&["delete", "pod", "nginx", "--force", "--ignore-not-found"]);
    assert_eq!(kubectl.run(&["get", "pods", "-o", "name"]), "");
}

#[test]
fn descriptions_and_events() {
    let Some(kubectl) = Kubectl::new("descriptions") else { return };
    kubectl.create(POD);
    let uid = kubectl.run(&["get", "pod", "web", "-o", "jsonpath={.metadata.uid}"]);
    kubectl.create(&format!(
        "
apiVersion: v1
kind: Event
metadata: {{name: web.1}}
involvedObject: {{apiVersion: v1, kind: Pod, name: web, namespace: default, uid: {uid}}}
type: Warning
reason: Tired
message: It wants to rest.
"
    ));
    let described = single_spaced(&kubectl.run(&["describe", "pod", "web"]));
    for part in ["Name: web", "Image: nginx", "Port: 80/TCP", "Status: Pending", "Tired"] {
        assert!(described.contains(part), "{part} in {described}");
    }
    let events = kubectl.run(&["get", "events"]);
    assert!(events.contains("Tired") && events.contains("pod/web"), "{events}");
    let typed = kubectl.run(&["events", "--for", "pod/web"]);
    assert!(typed.contains("It wants to rest."), "{typed}");
}

#[test]
fn without_tls() {
    let Some(kubectl) = Kubectl::with("plain", &["--plain"]) else { return };
    assert!(kubectl.run(&["get", "namespaces"]).contains("kube-system"));
}

#[test]
fn a_wrong_token() {
    let Some(kubectl) = Kubectl::new("token") else { return };
    let refused = kubectl.fail(&["get", "pods", "--token=wrong"]);
    assert!(refused.contains("Unauthorized") || refused.contains("logged in"), "{refused}");
}

#[test]
fn from_standard_input() {
    let Some(kubectl) = Kubectl::new("input") else { return };
    let mut creating =
        kubectl.command(&["create", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = creating.stdin.take().unwrap();
    input.write_all(MAP.as_bytes()).unwrap();
    drop(input);
    assert!(creating.wait_with_output().unwrap().status.success());
    assert!(kubectl.run(&["get", "cm", "-o", "name"]).contains("settings"));
}
