//! `--exec`: a command for each event.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::Cluster;

/// Returns the path of a pod.
fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

#[test]
fn a_command_gets_the_event_as_json_and_its_key() {
    let cluster = Cluster::start("exec-json");
    cluster.pod("web", &json!({"app": "web"}));
    let command = "printf '%s %s %s %s %s ' $INFORMER_EVENT $INFORMER_TYPE $INFORMER_KIND \
                   $INFORMER_NAMESPACE $INFORMER_NAME; echo $INFORMER_KEY; cat";
    let run = cluster.run(&["pods", "-o", "name", "--count", "1", "--exec", command]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines[..2], ["pod/web", "ADD pods Pod default web default/web"]);
    let event: Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!((&event["type"], &event["key"]), (&json!("ADD"), &json!("default/web")));
    assert_eq!(event["object"]["metadata"]["labels"]["app"], "web");
}

/// Neither standard input nor the environment is part of the command that the shell reads.
#[test]
fn data_of_objects_is_never_part_of_the_command() {
    let cluster = Cluster::start("exec-injection");
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
        "data": {"k": "$(touch injected) `touch injected`; touch injected"},
    });
    cluster.create("/api/v1/namespaces/default/configmaps", &object);
    let arguments = ["cm", "--count", "1", "--exec", "cat >out; echo $INFORMER_KEY >>out"];
    assert_eq!(cluster.run(&arguments).code, Some(0));
    let directory = &cluster.0.directory;
    let written = fs::read_to_string(directory.join("out")).unwrap();
    assert!(written.contains("$(touch injected)") && written.ends_with("default/a\n"), "{written}");
    assert!(!directory.join("injected").exists());
}

#[test]
fn commands_for_one_object_run_in_order() {
    let cluster = Cluster::start("exec-order");
    cluster.pod("web", &json!({}));
    // Without waiting for each other, all would find the file missing or incomplete.
    let command = "n=$(cat seen 2>/dev/null | wc -l); jq_free=$(cat | tr ',' '\\n' | \
                   grep -o '\"step\":\"[0-9]*\"' | tail -1); echo \"$n $jq_free\" >>seen";
    let watch = cluster.watch(&["pods", "--count", "12", "--exec", command]);
    watch.line_with("default/web");
    for step in 0..11 {
        cluster.patch(&path("web"), &json!({"metadata": {"labels": {"step": step.to_string()}}}));
        // Each state is its own event.
        watch.line_with("UPDATE");
    }
    let mut watch = watch;
    assert_eq!(watch.wait().code(), Some(0));
    let seen = fs::read_to_string(cluster.0.directory.join("seen")).unwrap();
    let expected: Vec<_> = std::iter::once("0 ".to_owned())
        .chain((0..11).map(|step| format!("{} \"step\":\"{step}\"", step + 1)))
        .collect();
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_command_that_fails_is_reported() {
    let cluster = Cluster::start("exec-fails");
    cluster.pod("web", &json!({}));
    let run = cluster.run(&["pods", "--count", "1", "--exec", "echo oh no >&2; exit 3"]);
    assert_eq!(run.code, Some(0));
    let expected = "--exec failed for ADD default/web: exit status: 3: oh no\n\
                    --exec: 1 command failed\n";
    assert_eq!(run.stderr, expected);
    // More output than a pipe holds, and input that is not read.
    let run =
        cluster.run(&["pods", "--count", "1", "--exec", "head -c 200000 /dev/zero | tr '\\0' x"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.contains("xxxx") && run.stdout.len() < 100_000, "{}", run.stdout.len());
    assert!(run.stderr.contains("only 64 KiB are shown"), "{}", run.stderr);
}

#[test]
fn an_interrupted_watch_waits_for_its_commands() {
    let cluster = Cluster::start("exec-stop");
    cluster.pod("web", &json!({}));
    let directory = cluster.0.directory.clone();
    let gate = directory.join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut watch = cluster.watch(&["pods", "--exec", "cat gate; echo >ended"]);
    // Opens as soon as the command reads from it.
    let gate = fs::OpenOptions::new().write(true).open(gate).unwrap();
    watch.signal("INT");
    watch.says("--exec: waiting for 1 command");
    drop(gate);
    assert_eq!(watch.wait().code(), Some(0));
    assert!(directory.join("ended").exists());
}
