//! The output formats.

use serde_json::{Value, json};

use crate::process::Cluster;

const NGINX: &str = "/api/v1/namespaces/default/pods/nginx";

/// Returns a line without its time, with one space between words.
fn words(line: &str) -> String {
    let (time, rest) = line.split_at(8);
    assert_eq!(time.matches(':').count(), 2, "{line}");
    rest.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `kubectl run nginx --image=nginx`, `kubectl label pods nginx foo=bar`,
/// `kubectl delete pod nginx`.
#[test]
fn text_tells_the_story_of_the_articles() {
    let cluster = Cluster::start("text");
    let watch = cluster.watch(&["pods"]);
    watch.says("no pods in namespace default yet");

    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let made = version(&cluster.pod("nginx", &json!({"run": "nginx"})));
    let labelled = version(&cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}})));
    cluster.delete(NGINX);

    let title = watch.line();
    let titles: Vec<_> = title.split_whitespace().collect();
    assert_eq!(
        titles,
        ["TIME", "EVENT", "KIND", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "RV"]
    );
    let add = words(&watch.line());
    assert!(add.starts_with("ADD Pod default/nginx 0/1 Pending 0 "), "{add}");
    assert!(add.ends_with(&format!("s {made}")), "{add}");
    let update = words(&watch.line());
    assert!(update.starts_with("UPDATE Pod default/nginx 0/1 Pending 0 "), "{update}");
    assert!(update.contains(&format!("{made} → {labelled}")), "{update}");
    // As on a real server, a pod is marked for deletion before it is gone.
    let told = words(&watch.line());
    assert!(told.starts_with("UPDATE Pod default/nginx 0/1 Terminating 0 "), "{told}");
    let delete = words(&watch.line());
    assert!(delete.starts_with("DELETE Pod default/nginx 0/1 Terminating 0 "), "{delete}");
}

#[test]
fn wide_has_the_columns_of_kubectl_get_wide() {
    let cluster = Cluster::start("wide");
    cluster.pod("nginx", &json!({}));
    let run = cluster.run(&["pods", "-o", "wide", "--count", "1"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("NOMINATED NODE"), "{run:?}");
    let run = cluster.run(&["pods", "-o", "wide", "--count", "1", "--no-headers"]);
    assert!(!run.stdout.contains("NOMINATED NODE"), "{run:?}");
}

#[test]
fn json_is_one_event_a_line() {
    let cluster = Cluster::start("json");
    let made = cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "-o", "json", "--old"]);
    let first = watch.json();
    assert_eq!(first["type"], "ADD");
    assert_eq!(first["key"], "default/nginx");
    assert_eq!(first["kind"], "Pod");
    assert_eq!(first["initial"], true);
    assert_eq!(first["finalStateUnknown"], false);
    assert_eq!(first["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(first.get("oldResourceVersion"), None);
    assert_eq!(first["object"]["apiVersion"], "v1");
    assert_eq!(first["object"]["kind"], "Pod");
    assert_eq!(first["object"]["spec"]["containers"][0]["image"], "nginx");

    let changed = cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}}));
    let second = watch.json();
    assert_eq!(second["type"], "UPDATE");
    assert_eq!(second["initial"], false);
    assert_eq!(second["resourceVersion"], changed["metadata"]["resourceVersion"]);
    assert_eq!(second["oldResourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(second["object"]["metadata"]["labels"]["foo"], "bar");
    assert_eq!(second["old"]["metadata"].get("labels"), None);
    assert_eq!(second["old"]["kind"], "Pod");

    cluster.delete(NGINX);
    assert_eq!(watch.json()["type"], "UPDATE");
    let third = watch.json();
    assert_eq!((&third["type"], &third["finalStateUnknown"]), (&json!("DELETE"), &json!(false)));
}

#[test]
fn json_has_the_state_before_only_on_request() {
    let cluster = Cluster::start("json-old");
    cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "-o", "json"]);
    assert_eq!(watch.json()["type"], "ADD");
    cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}}));
    let update = watch.json();
    assert_eq!((&update["type"], update.get("old")), (&json!("UPDATE"), None));
}

/// Scripts for `kubectl get -w --output-watch-events -o json` work with this, too.
#[test]
fn watch_events_have_the_form_of_kubectl() {
    let cluster = Cluster::start("watch-events");
    let made = cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "--watch-events"]);
    let first = watch.json();
    assert_eq!((&first["type"], first.as_object().unwrap().len()), (&json!("ADDED"), 2));
    assert_eq!(first["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(first["object"]["kind"], "Pod");
    let bookmark = watch.json();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let metadata = &bookmark["object"]["metadata"];
    assert_eq!(metadata["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(metadata["resourceVersion"], made["metadata"]["resourceVersion"]);
    // On a slow machine there may be another bookmark, a minute later.
    let next = || {
        let mut events = std::iter::repeat_with(|| watch.json());
        events.find(|event| event["type"] != "BOOKMARK").unwrap()
    };
    let changed = cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}}));
    let second = next();
    assert_eq!(second, json!({"type": "MODIFIED", "object": second["object"]}));
    assert_eq!(
        second["object"]["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"]
    );
    cluster.delete(NGINX);
    assert_eq!(next()["type"], "MODIFIED");
    assert_eq!(next()["type"], "DELETED");

    cluster.pod("web", &json!({}));
    let run = cluster.run(&["pods", "--output-watch-events", "-o", "yaml", "--count", "1"]);
    assert!(run.stdout.starts_with("---\ntype: ADDED\nobject:\n"), "{run:?}");
    let run = cluster.run(&["pods", "--watch-events", "-o", "name"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains("--watch-events prints JSON or YAML"), "{run:?}");
}

#[test]
fn json_fields_are_listed_in_the_help() {
    let cluster = Cluster::start("json-fields");
    let help = cluster.run(&["--help"]).stdout;
    let (_, listed) = help.split_once("JSON events:\n").unwrap();
    let listed = listed.lines().filter(|line| !line.starts_with("   "));
    let mut listed: Vec<_> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "-o", "json", "--old", "--diff"]);
    assert_eq!(watch.json()["type"], "ADD");
    cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}}));
    let update = watch.json();
    let mut fields: Vec<_> = update.as_object().unwrap().keys().map(String::as_str).collect();
    listed.sort_unstable();
    fields.sort_unstable();
    assert_eq!(listed, fields);
}

#[test]
fn yaml_is_one_document_an_event() {
    let cluster = Cluster::start("yaml");
    cluster.pod("nginx", &json!({"app": "web"}));
    let run = cluster.run(&["pods", "-o", "yaml", "--count", "1"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for line in ["---", "type: ADD", "key: default/nginx", "initial: true", "  kind: Pod"] {
        assert!(run.stdout.lines().any(|each| each == line), "{line}: {}", run.stdout);
    }
    assert!(run.stdout.contains("app: web"), "{}", run.stdout);
}

#[test]
fn names_are_those_of_kubectl() {
    let cluster = Cluster::start("names");
    cluster.pod("nginx", &json!({}));
    let run = cluster.run(&["pods", "-o", "name", "--count", "1"]);
    assert_eq!(run.stdout, "pod/nginx\n");
    let run = cluster.run(&["namespaces/default", "-o", "name", "--count", "1"]);
    assert_eq!(run.stdout, "namespace/default\n");
}

#[test]
fn a_template_has_the_object_and_the_event() {
    let cluster = Cluster::start("template");
    cluster.pod("nginx", &json!({"app": "web"}));
    let template =
        "template={{$event.type}} {{$event.key}} {{.metadata.labels.app}} {{.status.phase}}";
    let run = cluster.run(&["pods", "-o", template, "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "ADD default/nginx web Pending\n"));
    let lines = r#"go-template={{range .spec.containers}}{{.image}}{{"\n"}}{{end}}"#;
    let run = cluster.run(&["pods", "-o", lines, "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "nginx\n"));
    let run = cluster.run(&["pods", "-o", "template={{.metadata"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("{{.metadata"), "{run:?}");
}

#[test]
fn paths_and_columns_are_those_of_kubectl() {
    let cluster = Cluster::start("jsonpath");
    cluster.pod("nginx", &json!({"app": "web"}));
    let run = cluster.run(&["pods", "-o", "jsonpath={.spec.containers[*].image}", "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "nginx\n"));
    let columns = "custom-columns=APP:.metadata.labels.app,NODE:.spec.nodeName";
    let run = cluster.run(&["pods", "-o", columns, "--count", "1"]);
    let lines: Vec<_> = run.stdout.lines().collect();
    let title = lines[0].split_whitespace().collect::<Vec<_>>();
    assert_eq!(title, ["TIME", "EVENT", "KIND", "NAME", "APP", "NODE", "RV"]);
    let words = words(lines[1]);
    assert!(words.starts_with("ADD Pod default/nginx web <none> "), "{words}");
}

#[test]
fn an_object_that_a_template_does_not_fit_is_named_and_the_next_is_shown() {
    let cluster = Cluster::start("template-unfit");
    cluster.pod("a", &json!({}));
    cluster.pod("b", &json!({"app": "web"}));
    let template = "template={{if .metadata.labels}}{{.metadata.name}}{{else}}{{index .spec.containers 9}}{{end}}";
    let run = cluster.run(&["pods", "-o", template, "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "b\n"));
    assert!(run.stderr.starts_with("default/a: "), "{run:?}");
}

#[test]
fn a_diff_shows_what_an_update_has_changed() {
    let cluster = Cluster::start("diff");
    cluster.pod("nginx", &json!({"app": "web"}));
    let watch = cluster.watch(&["pods", "--diff", "--no-headers"]);
    watch.line_with("ADD");
    let labels = json!({"app": null, "foo": "bar"});
    cluster.patch(NGINX, &json!({"metadata": {"labels": labels}}));
    assert!(watch.line().contains("UPDATE"));
    let lines = [watch.line(), watch.line()];
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(lines, ["- .metadata.labels.app web", "+ .metadata.labels.foo bar"]);
}

#[test]
fn a_diff_of_one_part_leaves_out_the_rest() {
    let cluster = Cluster::start("diff-path");
    cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "--path", ".metadata.annotations", "-o", "json"]);
    assert_eq!(watch.json()["type"], "ADD");
    cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}}));
    cluster.patch(NGINX, &json!({"metadata": {"annotations": {"a": "b"}}}));
    let change = json!({"op": "add", "path": ".metadata.annotations.a", "new": "b"});
    let update = watch.json();
    assert_eq!(update["object"]["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(update["diff"], json!([change]));
}

/// If no column differs from the previous line, the reader should still see why the line is there.
#[test]
fn a_line_says_what_no_column_shows() {
    let cluster = Cluster::start("unseen");
    cluster.pod("nginx", &json!({"app": "web"}));
    let watch = cluster.watch(&["pods", "--no-headers"]);
    watch.line_with("ADD");
    cluster.patch(NGINX, &json!({"metadata": {"labels": {"foo": "bar"}}}));
    let update = watch.line();
    assert!(update.ends_with(".metadata.labels.foo"), "{update}");
}

#[test]
fn a_resync_shows_everything_again() {
    let cluster = Cluster::start("resync");
    let made = cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "--resync", "1s", "-o", "json"]);
    assert_eq!(watch.json()["type"], "ADD");
    let again = watch.json();
    assert_eq!((&again["type"], &again["key"]), (&json!("RESYNC"), &json!("default/nginx")));
    assert_eq!(again["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(again["oldResourceVersion"], made["metadata"]["resourceVersion"]);
}

/// Control sequences in objects must not reach the terminal.
#[test]
fn escape_sequences_are_not_printed_as_such() {
    let cluster = Cluster::start("escapes");
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"},
        "reason": "Bad", "message": "a\u{1b}[2Jb", "type": "Normal",
    });
    cluster.create("/api/v1/namespaces/default/events", &event);
    let run = cluster.run(&["events", "--count", "1"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("a^[[2Jb"), "{}", run.stdout);
}
