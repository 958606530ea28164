//! `get` as a process: its output is kubectl's.
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
use std::net::TcpListener;
use std::process::Command;

use embedded_apiserver::{Denial, Fault, Verb};
use serde_json::Value;

use support::Serving;
use terminal::Terminal;
use tool::{Cluster, ran, tells_of_a_full_disk, with_nobody_to_read};

const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}, annotations: {text: "one\ntwo\n"}}
spec: {nodeName: worker-1, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop, labels: {app: db}}
spec: {nodeName: worker-2, containers: [{name: c, image: postgres}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1}
spec: {nodeName: worker-1, containers: [{name: c, image: nginx}, {name: d, image: proxy}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cups.example.com}
spec:
  group: example.com
  names: {kind: Cup, plural: cups, singular: cup, shortNames: [cu]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
---
apiVersion: example.com/v1
kind: Cup
metadata: {name: blue}
spec: {size: large}
"#;

/// Replaces ages, which differ between two runs: `9s` may be `10s` in the second, in a column of
/// the same width.
fn without_ages(text: &str) -> String {
    let cut = |line: &str| {
        let cut = line.split_inclusive(' ').collect::<Vec<_>>();
        // A word with the spaces that pad it to its column.
        let cells = cut.chunk_by(|_, next| *next == " ").map(<[_]>::concat);
        let cells = cells.map(|cell| {
            let width = cell.len();
            if is_age(cell.trim_end()) { format!("{:width$}", "AGO") } else { cell }
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// Returns whether a word is an age: `45s`, `3m`, `2m5s`.
fn is_age(word: &str) -> bool {
    let unit = |letter: char| "smh".contains(letter);
    word.starts_with(|letter: char| letter.is_ascii_digit())
        && word.ends_with(unit)
        && word.chars().all(|letter| letter.is_ascii_digit() || unit(letter))
}

#[test]
fn ages_are_cut_and_columns_are_not() {
    assert_eq!(
        without_ages("a   9s    <none>\nb   2m5s"),
        without_ages("a   10s   <none>\nb   2m6s")
    );
    assert_ne!(without_ages("a   9s    <none>"), without_ages("a   9s     <none>"));
    assert_eq!(without_ages("m s 12 web-1s"), "m s 12 web-1s");
}

#[test]
fn it_prints_what_kubectl_prints() {
    if Command::new("kubectl").arg("help").output().is_err() {
        println!("not run, because there is no kubectl on the PATH");
        return;
    }
    let cluster = Cluster::new("get-kubectl", SHOP);
    for arguments in [
        "pods -n shop -o wide",
        "pods -n shop -o wide --show-labels -L app,none",
        "pods",
        "po -n shop",
        "pods -A",
        "pods -A --no-headers",
        "pods,deploy -A",
        "deploy,pods",
        "pods -n shop web-1",
        "pods -n shop web-1 db",
        "pods -n shop web-1 nope other",
        "pod/web-1 deploy/web",
        "pods -n shop -l app=web",
        "pods -A --field-selector spec.nodeName=worker-1",
        "cups",
        "cu blue -o yaml",
        "cups.v1.example.com -o json",
        "secrets",
        "secrets -A",
        "secrets,configmaps",
        "secrets -o json",
        "secrets -o yaml",
        "secrets -o name",
        "namespaces",
        "ns nope",
        "pods -A -o name",
        "pods,deploy -o name",
        "pods -n shop web-1 -o json",
        "pods -n shop web-1 -o yaml",
        "pods -n shop web-1 -o go-template={{.metadata.name}}",
        "pods -n shop web-1 -o jsonpath={.metadata.name}",
        "pods -A -o jsonpath={.items[*].metadata.name}",
        "pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName",
        "pods -n shop nope -o json",
        "pods -n shop nope other -o json",
        "pods -A -o json",
        "pods,deploy -A -o yaml",
        "pods -A --show-labels",
        "pods,deploy -A -L app -L example.com/tier --show-labels",
        "pods -n shop --no-headers -L app,,app",
        "pods -A --sort-by .metadata.labels.app",
        "pods -n shop --sort-by {.spec.nodeName}",
        "pods -n shop --sort-by spec.containers[0].image -o name",
        "pods,deploy -n shop --sort-by {.metadata.name} -o jsonpath={.items[*].metadata.name}",
        "cups blue --sort-by .nope -o json",
        "pods -n nowhere",
        // A tilde stands for a space within a word.
        "pods -A -o jsonpath={.items[*].metadata.name}",
        "pods -n shop web-1 -o jsonpath={.spec.nodeName}",
        "pods -A -o jsonpath={range~.items[*]}{.metadata.name}:{.spec.nodeName}{'\\n'}{end}",
        "pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,X:.spec.x",
        "pods -A --no-headers -o custom-columns=NAME:.metadata.name",
        "pods -A -o go-template={{range~.items}}{{.metadata.name}}~{{end}}",
        "pods -n shop db -o go-template={{.metadata.labels.app}}",
    ] {
        let words = ["get"].into_iter().chain(arguments.split(' '));
        let words: Vec<_> = words.map(|word| word.replace('~', " ")).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let mut ours = cluster.run(&words);
        let mut kubectl = Command::new("kubectl");
        kubectl.args(&words).env("KUBECONFIG", cluster.directory.join("kubeconfig"));
        let theirs = ran(kubectl.env("HOME", &cluster.directory).output().unwrap());
        // An age in a middle column may have got another digit meanwhile.
        if without_ages(&ours.out) != without_ages(&theirs.out) {
            ours = cluster.run(&words);
        }
        assert_eq!(without_ages(&ours.out), without_ages(&theirs.out), "{arguments}");
        assert_eq!(ours.err, theirs.err, "{arguments}");
        assert_eq!(ours.code, theirs.code, "{arguments}");
    }
}

#[test]
fn a_name_may_be_in_several_namespaces() {
    let cluster = Cluster::new("get-names", SHOP);
    let names = |arguments: &[&str]| {
        let text = cluster.prints(arguments);
        let words = text.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
        words.map(|words| words.join("/")).collect::<Vec<_>>()
    };
    let found = names(&["get", "pods", "web-1", "-A", "--no-headers"]);
    assert_eq!(found, ["default/web-1", "shop/web-1"]);
    let found = names(&["get", "pods", "db", "web-1", "-n", "shop,default", "--no-headers"]);
    assert_eq!(found, ["shop/db", "default/web-1", "shop/web-1"]);
}

#[test]
fn an_index_is_asked_by_field() {
    let cluster = Cluster::new("get-by", SHOP);
    let by = |what: &str, output: &str| {
        cluster.prints(&["get", "pods", "-A", "--by", what, "-o", output])
    };
    assert_eq!(by("spec.nodeName=worker-2", "name"), "pod/db\n");
    assert_eq!(by("spec.containers[*].image=nginx", "name"), "pod/web-1\npod/web-1\n");
    assert_eq!(by("metadata.labels.app=db", "name"), "pod/db\n");
    assert_eq!(by("spec.nodeName=worker-9", "name"), "");
    assert_eq!(
        by(".spec.nodeName", "text"),
        "SPEC.NODENAME   PODS\nworker-1        2\nworker-2        1\n"
    );
    let counts: Value = serde_json::from_str(&by("spec.nodeName", "json")).unwrap();
    assert_eq!(counts["pods"]["worker-1"], 2);

    let typo = cluster.run(&["get", "pods", "-A", "--by", "spec.nodename=worker-2"]);
    let hint = "no object has the field spec.nodename; did you mean spec.nodeName?";
    assert_eq!((typo.code, typo.err.trim_end()), (Some(0), hint));
    let problem = cluster.fails(&["get", "pods", "--by", "spec["]);
    assert!(problem.contains("--by") && problem.contains("bracket"), "{problem}");
    let problem = cluster.fails(&["get", "pods", "--by", "spec.nodeName", "-o", "yaml"]);
    assert!(problem.contains("--by FIELD=VALUE"), "{problem}");
    let problem = cluster.fails(&["get", "pods", "web-1", "--by", "spec.nodeName=a"]);
    assert!(problem.contains("names and selectors"), "{problem}");
}

#[test]
fn what_the_cache_took_is_told_if_asked() {
    let cluster = Cluster::new("get-stats", SHOP);
    let ran = cluster.run(&["get", "pods", "-A", "--stats", "-o", "name"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 3));
    assert!(ran.err.starts_with("pods: 3 objects, "), "{}", ran.err);
    assert!(ran.err.contains(" in the cache, version ") && ran.err.contains("synced in "));
    assert_eq!(ran.err.lines().count(), 1);
}

#[test]
fn what_is_refused_is_an_error_at_once() {
    let cluster = Cluster::new("get-refused", SHOP);
    cluster.server.access().deny(Denial::verbs([Verb::List, Verb::Watch]).resource("pods"));
    let problem = cluster.fails(&["get", "pods", "-n", "shop"]);
    assert!(problem.contains("pods in namespace shop"), "{problem}");
    assert!(problem.contains("kubectl create role "), "{problem}");

    let problem = cluster.fails(&["get", "deploy", "-l", "=="]);
    assert!(problem.contains("400"), "{problem}");
    let problem = cluster.fails(&["get", "deploy", "--field-selector", "spec.nonsense=1"]);
    assert!(problem.contains("spec.nonsense"), "{problem}");

    let problem = cluster.fails(&["get", "depoyment"]);
    assert!(problem.contains("did you mean \"deployment\"?"), "{problem}");
    for words in [&["get", "pods/web-1", "other"][..], &["get", "pods", "pods/web-1"]] {
        assert!(cluster.fails(words).contains("TYPE/NAME for each"));
    }
    let problem = cluster.fails(&["get", "pods", "web-1", "-l", "app=web"]);
    assert!(problem.contains("names and selectors"), "{problem}");
    assert!(cluster.fails(&["get"]).contains("TYPE"));
    assert!(cluster.fails(&["get", "pods", "-w"]).contains("`kubectl informer watch pods`"));
    assert!(cluster.fails(&["get", "pods", "-o", "nonsense"]).contains("yaml"));
}

#[test]
fn who_is_not_let_in_is_told_so() {
    let cluster = Cluster::new("get-unknown", SHOP);
    let token = cluster.server.token().to_owned();
    cluster.server.access().revoke_token(&token);
    let problem = cluster.fails(&["get", "pods"]);
    assert!(problem.contains("401") && !problem.contains(&token), "{problem}");
}

#[test]
fn it_gives_up_in_time() {
    let cluster = Cluster::new("get-timeout", SHOP);
    let faults = cluster.server.faults();
    for verb in [Verb::List, Verb::Watch] {
        faults.on(verb).resource("pods").always().inject(Fault::status(500));
    }
    // How far it gets in this time depends on the machine. The final message is tested in paused
    // time.
    let problem = cluster.fails(&["get", "pods", "--timeout", "50ms"]);
    let late = ["pods are not complete after 50ms", "within 50ms"];
    assert!(late.iter().any(|late| problem.contains(late)), "{problem}");
}

/// A server that accepts connections and never responds. The time limit and signals still apply.
#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    let cluster = Cluster::new("get-silent", SHOP);
    let file = cluster.directory.join("kubeconfig");
    let text = fs::read_to_string(&file).unwrap();
    let begin = text.find("https://127.0.0.1:").unwrap();
    let end = begin + text[begin..].find('"').unwrap();
    let silence = || {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", silent.local_addr().unwrap());
        fs::write(&file, text.replace(&text[begin..end], &address)).unwrap();
        (silent, address)
    };
    let (_silent, address) = silence();
    let problem = cluster.fails(&["get", "pods", "--timeout", "50ms"]);
    assert!(problem.contains(&format!("no answer from {address} within 50ms")), "{problem}");

    for arguments in [&["get", "pods"][..], &["doctor"], &["top"]] {
        let (silent, _) = silence();
        let mut child = cluster.command(arguments).spawn().unwrap();
        let _connection = silent.accept().unwrap();
        let kill = format!("kill -s TERM {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert!(child.wait().unwrap().code().is_some(), "{arguments:?}");
    }
}

#[test]
fn an_error_that_goes_away_is_waited_for() {
    let cluster = Cluster::new("get-again", SHOP);
    cluster.server.faults().on(Verb::Watch).resource("pods").nth(1).inject(Fault::status(500));
    assert_eq!(cluster.prints(&["get", "pods", "-o", "name"]), "pod/web-1\n");
}

#[test]
fn what_takes_longer_shows_how_far_it_is() {
    let cluster = Cluster::new("get-progress", SHOP);
    for verb in [Verb::List, Verb::Watch] {
        cluster.server.faults().on(verb).resource("pods").always().inject(Fault::StalledBody);
    }
    let command = cluster.command(&["get", "pods", "--timeout", "10m"]);
    let mut terminal = Terminal::start(command, 80);
    terminal.shows("◌ syncing");
    terminal.shows("pods");
    terminal.forget();
    terminal.signal("INT");
    assert_eq!(terminal.wait().code(), Some(1));
    // It erases the status line.
    terminal.shows("\r\x1b[K");
}

#[test]
fn nobody_to_read_it_is_no_error() {
    let cluster = Cluster::new("get-pipe", SHOP);
    for output in ["text", "json", "yaml", "name"] {
        let ran = with_nobody_to_read(&mut cluster.command(&["get", "pods", "-A", "-o", output]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{output}");
    }
}

#[test]
fn what_could_not_be_written_is_told() {
    let cluster = Cluster::new("get-full", SHOP);
    for output in ["text", "json", "yaml", "name"] {
        tells_of_a_full_disk(&mut cluster.command(&["get", "pods", "-A", "-o", output]));
    }
}

#[test]
fn without_a_kubeconfig_nothing_is_made_up_unless_asked_for() {
    let directory = support::directory("get-embedded");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
    command.args(["get", "pods", "-o", "json"]).env("HOME", &directory);
    command.env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
    let implied = ran(command.output().unwrap());
    assert_eq!((implied.code, implied.out.as_str()), (Some(2), ""));
    assert!(implied.err.contains("there is no kubeconfig"), "{}", implied.err);

    let asked = ran(command.arg("--embedded").output().unwrap());
    assert_eq!((asked.code, asked.err.as_str()), (Some(0), ""));
    let list: Value = serde_json::from_str(&asked.out).unwrap();
    assert!(!list["items"].as_array().unwrap().is_empty());
}

#[test]
fn twenty_thousand_objects_are_all_there() {
    let directory = support::directory("get-many-data");
    let item = |n: u32| {
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"map-{n:05}"}}}}"#)
    };
    let items: Vec<_> = (0..20_000).map(item).collect();
    let list =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMapList","items":[{}]}}"#, items.join(","));
    let file = directory.join("data.json");
    fs::write(&file, list).unwrap();
    let serving = Serving::start("get-many", &["--data", file.to_str().unwrap()]);
    let get = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
        command.args(["get", "configmaps", "--timeout", "10m"]).args(arguments);
        command.arg("--kubeconfig").arg(serving.kubeconfig());
        command
    };
    let all = ran(get(&["-o", "name"]).output().unwrap());
    assert_eq!((all.code, all.err.as_str()), (Some(0), ""));
    assert_eq!(all.out.lines().count(), 20_000);
    assert!(all.out.starts_with("configmap/map-00000\n"));
    assert!(all.out.ends_with("configmap/map-19999\n"));

    // The first line can be read without the rest.
    let mut child = get(&[]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "NAME        DATA   AGE\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
