//! kubectl's flags: columns of labels, the order of objects, and the server without a kubeconfig.
#![cfg(unix)]

#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "shared/support.rs"]
mod support;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "watch/terminal.rs"]
mod terminal;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "shared/tool.rs"]
mod tool;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Command;

use embedded_apiserver::{Denial, Verb};
use serde_json::Value;

use terminal::Terminal;
use tool::{Cluster, Ran, ran};

const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web-10, labels: {app: web, example.com/tier: front}, annotations: {n: "3"}}
spec: {priority: 5, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, labels: {app: web}, annotations: {n: "20"}}
spec: {priority: 20, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, annotations: {n: "100"}}
spec: {containers: [{name: c, image: postgres}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: alpha, annotations: {n: "10"}}
"#;

/// Returns the lines with one space between words.
fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn label_columns_follow_those_of_the_type() {
    let cluster = Cluster::new("flags-labels", PODS);
    let text = cluster.prints(&["get", "pods", "-L", "app,example.com/tier", "--show-labels"]);
    let lines = words(&text);
    assert_eq!(lines[0], "NAME READY STATUS RESTARTS AGE APP TIER LABELS");
    assert!(lines[1].ends_with("s <none>"), "{text}");
    assert!(lines[2].ends_with("s web front app=web,example.com/tier=front"), "{text}");
    assert!(lines[3].ends_with("s web app=web"), "{text}");
    // Columns are aligned even if cells are empty.
    let title = text.lines().next().unwrap();
    let at = title.find("LABELS").unwrap();
    assert!(text.lines().skip(1).all(|line| line.as_bytes()[at - 1] == b' '), "{text}");

    let text = cluster.prints(&["watch", "pods", "--show-labels", "-L", "app", "--count", "3"]);
    let lines = words(&text);
    assert_eq!(lines[0], "TIME EVENT KIND NAME READY STATUS RESTARTS AGE APP LABELS RV");
    assert!(lines[2].contains("s web app=web,example.com/tier=front "), "{text}");

    for command in [&["get", "pods"][..], &["watch", "pods"]] {
        let problem = cluster.fails(&[command, &["--show-labels", "-o", "json"]].concat());
        let expected = "error: --show-labels option cannot be used with json printer\n";
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn label_columns_are_kept_on_a_narrow_terminal() {
    let cluster = Cluster::new("flags-narrow", PODS);
    let watch = ["watch", "pods", "-L", "app,example.com/tier", "--no-headers"];
    for columns in [80, 60] {
        let mut terminal = Terminal::start(cluster.command(&watch), columns);
        terminal.shows("web  ");
        terminal.shows("front");
        terminal.signal("INT");
        assert_eq!(terminal.wait().code(), Some(0));
    }
}

#[test]
fn objects_are_sorted_by_a_field() {
    let cluster = Cluster::new("flags-sort", PODS);
    let sorted = |types: &str, by: &str| {
        cluster.prints(&["get", types, "-o", "name", "--sort-by", by]).replace('\n', " ")
    };
    assert_eq!(sorted("pods", ".metadata.name"), "pod/db pod/web-2 pod/web-10 ");
    assert_eq!(sorted("pods", "{.spec.priority}"), "pod/db pod/web-10 pod/web-2 ");
    assert_eq!(sorted("pods", "metadata.annotations.n"), "pod/web-10 pod/web-2 pod/db ");
    // A list is sorted across its types, tables each by itself.
    let all = "configmap/alpha pod/db pod/web-2 pod/web-10 ";
    assert_eq!(sorted("pods,configmaps", ".metadata.name"), all);
    let text = cluster.prints(&["get", "pods,cm", "--sort-by", ".metadata.name", "--no-headers"]);
    let names: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["pod/db", "pod/web-2", "pod/web-10", "", "configmap/alpha"]);

    for output in ["text", "json"] {
        let problem = cluster.fails(&["get", "pods", "--sort-by", ".nope", "-o", output]);
        let expected = "couldn't find any field with path \"{.nope}\" in the list of objects";
        assert!(problem.contains(expected), "{problem}");
    }
    let problem = cluster.fails(&["get", "pods", "--sort-by", ".spec"]);
    assert!(problem.contains("an object cannot be sorted"), "{problem}");
    let problem = cluster.fails(&["get", "pods", "--sort-by", ".spec["]);
    assert!(problem.contains("bracket is not closed"), "{problem}");
}

/// Runs the tool without a kubeconfig.
fn bare(cluster: &Cluster, arguments: &[&str]) -> Ran {
    let home = cluster.directory.join("empty");
    let _ = fs::create_dir(&home);
    let mut command: Command = cluster.command(arguments);
    ran(command.env_remove("KUBECONFIG").env("HOME", home).output().unwrap())
}

#[test]
fn a_server_and_a_token_need_no_kubeconfig() {
    let cluster = Cluster::new("flags-server", PODS);
    let (url, token) = (cluster.listening.url(), cluster.server.token().to_owned());
    let ca = cluster.directory.join("ca.pem");
    fs::write(&ca, cluster.listening.ca_pem().unwrap()).unwrap();
    let (get, ca) = (["get", "pods", "-o", "name", "-s", &url], ca.to_str().unwrap());
    let names = "pod/db\npod/web-10\npod/web-2\n";
    for trust in [&["--certificate-authority", ca][..], &["--insecure-skip-tls-verify"]] {
        let got = bare(&cluster, &[&get[..], trust, &["--token", &token]].concat());
        assert_eq!((got.code, got.out.as_str(), got.err.as_str()), (Some(0), names, ""));
    }
    // No authority has signed the server's certificate.
    let got = bare(&cluster, &[&get[..], &["--token", &token]].concat());
    assert_eq!((got.code, got.out.as_str()), (Some(2), ""), "{}", got.err);
    assert!(got.err.contains("certificate") && !got.err.contains(&token), "{}", got.err);

    let wrong = ["--insecure-skip-tls-verify", "--token", "not-this-one"];
    let got = bare(&cluster, &[&get[..], &wrong].concat());
    assert_eq!((got.code, got.out.as_str()), (Some(2), ""));
    assert!(got.err.contains("401") && !got.err.contains("not-this-one"), "{}", got.err);

    let got = bare(&cluster, &["get", "pods", "--token", "not-this-one"]);
    assert!(got.err.contains("--server URL") && !got.err.contains("not-this-one"), "{}", got.err);
    let got = bare(&cluster, &["get", "pods", "--embedded", "--token", "not-this-one"]);
    assert!(got.err.contains("cannot be used with"), "{}", got.err);
    assert!(!got.err.contains("not-this-one"), "{}", got.err);
}

#[test]
fn flags_take_the_place_of_parts_of_the_kubeconfig() {
    let cluster = Cluster::new("flags-override", PODS);
    let token = cluster.server.token().to_owned();
    cluster.prints(&["get", "pods", "--token", &token]);
    let problem = cluster.fails(&["get", "pods", "--token", "not-this-one"]);
    assert!(problem.contains("401") && !problem.contains("not-this-one"), "{problem}");
    let problem = cluster.fails(&["get", "pods", "--tls-server-name", "elsewhere.example.com"]);
    assert!(problem.contains("certificate"), "{problem}");

    // The other server is reached with the credentials and the authority of the kubeconfig.
    let (url, file) = (cluster.listening.url(), cluster.directory.join("kubeconfig"));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&url, "https://127.0.0.1:1")).unwrap();
    assert!(cluster.fails(&["get", "pods"]).contains("https://127.0.0.1:1"));
    let list = cluster.prints(&["get", "pods", "-o", "json", "--server", &url]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
}

/// Returns the YAML of an object that another one owns.
fn owned(kind: &str, name: &str, owner: &Value) -> String {
    let (kind_of, name_of) = (&owner["kind"], &owner["metadata"]["name"]);
    let (version, uid) = (&owner["apiVersion"], &owner["metadata"]["uid"]);
    let (version_of, spec) = match kind {
        "ReplicaSet" => (
            "apps/v1",
            "{replicas: 1, selector: {matchLabels: {app: web}}, \
            template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}",
        ),
        _ => ("v1", "{containers: [{name: c, image: i}]}"),
    };
    format!(
        "apiVersion: {version_of}\nkind: {kind}\nmetadata:\n  name: {name}\n  labels: {{app: web}}\n  \
         ownerReferences: [{{apiVersion: {version}, kind: {kind_of}, name: {name_of}, uid: {uid}}}]\n\
         spec: {spec}\n"
    )
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
";

/// Creates a deployment with a replica set and a pod.
fn with_deployment(name: &str) -> Cluster {
    let cluster = Cluster::new(name, &format!("{PODS}---{DEPLOYMENT}"));
    let get = |what: &str| -> Value {
        serde_json::from_str(&cluster.prints(&["get", what, "-o", "json"])).unwrap()
    };
    cluster.server.load_yaml(&owned("ReplicaSet", "web-1", &get("deploy/web"))).unwrap();
    cluster.server.load_yaml(&owned("Pod", "web-1-a", &get("rs/web-1"))).unwrap();
    cluster
}

#[test]
fn a_tree_has_everything_that_an_object_owns() {
    let cluster = with_deployment("flags-tree");
    let tree = cluster.prints(&["get", "--tree", "deploy/web"]);
    let lines = words(&tree);
    assert_eq!(lines[0], "NAME READY STATUS AGE");
    assert!(lines[1].starts_with("Deployment/web 0/1 "), "{tree}");
    assert!(lines[2].starts_with("└─ReplicaSet/web-1 "), "{tree}");
    assert!(lines[3].starts_with("└─Pod/web-1-a 0/1 Pending "), "{tree}");
    assert_eq!(lines.len(), 4, "{tree}");

    let missing = cluster.run(&["get", "--tree", "deploy/nope"]);
    let expected = "Error from server (NotFound): deployments.apps \"nope\" not found\n";
    assert_eq!((missing.code, missing.err.as_str()), (Some(1), expected));
    for wrong in ["deploy", "deploy/", "deploy/web,deploy/db"] {
        assert!(cluster.fails(&["get", "--tree", wrong]).contains("needs one object"), "{wrong}");
    }
    assert!(cluster.fails(&["get", "--tree", "deploy/web", "-A"]).contains("-n NAMESPACE"));
    let together = cluster.fails(&["watch", "--tree", "deploy/web", "--diff"]);
    assert!(together.contains("cannot be used with"), "{together}");

    // A type that may not be listed is left out, unless it is that of the root.
    let access = cluster.server.access();
    access.deny(Denial::verbs([Verb::List, Verb::Watch]).resource("pods"));
    let ran = cluster.run(&["get", "--tree", "deploy/web", "--no-headers"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 2), "{ran:?}");
    assert_eq!(ran.err, "without pods, which cannot be listed and watched\n");
    assert!(cluster.fails(&["get", "--tree", "pods/db"]).contains("kubectl create role "));
}

#[test]
fn a_tree_is_printed_again_when_it_changes() {
    let cluster = with_deployment("flags-tree-changes");
    let watch = ["watch", "--tree", "deploy/web", "--no-headers"];
    let mut watching = cluster.command(&watch).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut tree = |count: usize| -> String {
        let names = lines.by_ref().take(count);
        names.map(|line| line.split("  ").next().unwrap().to_owned() + "\n").collect()
    };
    assert_eq!(tree(3), "Deployment/web\n└─ReplicaSet/web-1\n\n", "and an indented pod");
    let set = cluster.prints(&["get", "rs/web-1", "-o", "json"]);
    let set = serde_json::from_str(&set).unwrap();
    cluster.server.load_yaml(&owned("Pod", "web-1-b", &set)).unwrap();
    assert_eq!(tree(3), "\nDeployment/web\n└─ReplicaSet/web-1\n");
    let pods: Vec<_> = lines.by_ref().take(2).collect();
    assert!(pods[0].starts_with("  ├─Pod/web-1-a ") && pods[1].starts_with("  └─Pod/web-1-b "));
    let kill = format!("kill -s INT {}", watching.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn a_tree_on_a_terminal_is_drawn_in_its_place() {
    let cluster = with_deployment("flags-tree-screen");
    let mut terminal = Terminal::start(cluster.command(&["watch", "--tree", "deploy/web"]), 60);
    terminal.shows("└─Pod/web-1-a");
    // The first line of the next tree comes after the erasure of four lines.
    terminal.forget();
    terminal.shows("\x1b[4A\r\x1b[JNAME");
    terminal.signal("INT");
    assert_eq!(terminal.wait().code(), Some(0));
}
