//! `--exec`: a command for each event.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::process::Cluster;
use crate::support::PATIENCE;

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
    let run = cluster.run_in_time(&["pods", "-o", "name", "--count", "1", "--exec", command]);
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
    assert_eq!(cluster.run_in_time(&arguments).code, Some(0));
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
                   grep -o '\"step\":\"[0-9]*\"' | tail -1); echo \"$n $jq_free\" >>seen; \
                   echo number $n has run";
    let mut watch = cluster.watch(&["pods", "--exec", command]);
    watch.line_with("default/web");
    for step in 0..11 {
        cluster.patch(&path("web"), &json!({"metadata": {"labels": {"step": step.to_string()}}}));
        // Each state is its own event.
        watch.line_with("UPDATE");
    }
    watch.line_with("number 11 has run");
    watch.signal("INT");
    assert_eq!(watch.wait().code(), Some(0));
    let seen = fs::read_to_string(cluster.0.directory.join("seen")).unwrap();
    let expected: Vec<_> = std::iter::once("0 ".to_owned())
        .chain((0..11).map(|step| format!("{} \"step\":\"{step}\"", step + 1)))
        .collect();
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
}

/// Eight run at the same time. The others wait for their turn, and the watch waits for all.
#[test]
fn a_watch_that_ends_by_itself_waits_for_its_commands() {
    let cluster = Cluster::start("exec-all");
    let names: Vec<_> = (10..22).map(|n| format!("web-{n}")).collect();
    for name in &names {
        cluster.pod(name, &json!({}));
    }
    let command = "echo $INFORMER_NAME has run";
    let run = cluster.run_in_time(&["pods", "-o", "name", "--count", "12", "--exec", command]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines = run.stdout.lines();
    let mut ran: Vec<_> = lines.filter_map(|line| line.strip_suffix(" has run")).collect();
    ran.sort_unstable();
    assert_eq!(ran, names, "{run:?}");
}

#[test]
fn a_command_that_fails_is_reported() {
    let cluster = Cluster::start("exec-fails");
    cluster.pod("web", &json!({}));
    let run = cluster.run_in_time(&["pods", "--count", "1", "--exec", "echo oh no >&2; exit 3"]);
    assert_eq!(run.code, Some(0));
    let expected = "--exec failed for ADD default/web: exit status: 3: oh no\n\
                    --exec: 1 command failed\n";
    assert_eq!(run.stderr, expected);
    // More output than a pipe holds, and input that is not read.
    let command = "head -c 200000 /dev/zero | tr '\\0' x";
    let run = cluster.run_in_time(&["pods", "--count", "1", "--exec", command]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.contains("xxxx") && run.stdout.len() < 100_000, "{}", run.stdout.len());
    assert!(run.stderr.contains("only 64 KiB are shown"), "{}", run.stderr);
}

#[test]
fn an_interrupted_watch_waits_for_its_commands() {
    let cluster = Cluster::start("exec-stop");
    cluster.pod("web", &json!({}));
    let directory = &cluster.0.directory;
    let end = Instant::now() + PATIENCE;
    for n in 0.. {
        let gate = directory.join(format!("gate-{n}"));
        assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
        let command = format!("cat gate-{n}; echo >ended");
        let mut watch = cluster.watch(&["pods", "--exec", &command]);
        // Opens as soon as the command reads from it.
        let gate = fs::OpenOptions::new().write(true).open(gate).unwrap();
        watch.signal("INT");
        watch.says("--exec: waiting for 1 command");
        drop(gate);
        assert_eq!(watch.wait().code(), Some(0));
        if directory.join("ended").exists() {
            break;
        }
        // A busy machine may take longer than the command has to end. Then it is killed.
        let (_, said) = watch.rest();
        assert!(said.iter().any(|line| line.contains(" were killed, ")), "{said:?}");
        assert!(Instant::now() < end, "{said:?}");
    }
}
