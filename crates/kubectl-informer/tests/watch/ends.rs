//! The ways in which a watch ends.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use crate::errors::kubeconfig;
use crate::process::{Cluster, Running, tool};
use crate::support::directory;
use crate::terminal::Terminal;

#[test]
fn a_count_that_is_reached_is_success() {
    let cluster = Cluster::start("count");
    for name in ["a", "b", "c"] {
        cluster.pod(name, &json!({}));
    }
    let run = cluster.run(&["pods", "-o", "name", "--count", "2"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "pod/a\npod/b\n"));
}

#[test]
fn a_count_that_is_not_reached_in_time_is_one() {
    let cluster = Cluster::start("count-not");
    cluster.pod("a", &json!({}));
    let run = cluster.run_in_time(&["pods", "-o", "name", "--count", "2", "--timeout", "300ms"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("of 2 events, within 300 ms"), "{run:?}");
}

#[test]
fn a_condition_is_waited_for() {
    let cluster = Cluster::start("until");
    cluster.pod("a", &json!({}));
    let arguments = ["pods", "-o", "json", "--until", "metadata.labels.ready=yes"];
    let mut watch = cluster.watch(&arguments);
    assert_eq!(watch.json()["type"], "ADD");
    let change = json!({"metadata": {"labels": {"ready": "yes"}}});
    cluster.patch("/api/v1/namespaces/default/pods/a", &change);
    assert_eq!(watch.json()["type"], "UPDATE");
    assert_eq!(watch.wait().code(), Some(0));

    let run = cluster.run(&[&arguments[..], &["--until", "metadata.name=a"]].concat());
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 1), "{run:?}");

    let mut watch = cluster.watch(&["pods/a", "-o", "json", "--until", "deleted"]);
    assert_eq!(watch.json()["type"], "ADD");
    cluster.delete("/api/v1/namespaces/default/pods/a");
    watch.line_with("DELETE");
    assert_eq!(watch.wait().code(), Some(0));
}

/// As in `kubectl wait`. Objects that are added meanwhile count too.
#[test]
fn a_condition_is_met_by_all_objects() {
    let cluster = Cluster::start("until-all");
    let ready = json!({"metadata": {"labels": {"ready": "yes"}}});
    let path = |name: &str| format!("/api/v1/namespaces/default/pods/{name}");
    cluster.pod("a", &json!({"ready": "yes"}));
    cluster.pod("b", &json!({}));
    let until = ["pods", "-o", "name", "--until", "metadata.labels.ready=yes"];
    let mut watch = cluster.watch(&until);
    assert_eq!([watch.line(), watch.line()], ["pod/a", "pod/b"]);
    cluster.pod("c", &json!({}));
    assert_eq!(watch.line(), "pod/c");
    cluster.patch(&path("b"), &ready);
    assert_eq!(watch.line(), "pod/b");
    // A deleted object no longer counts.
    cluster.pod("d", &json!({}));
    assert_eq!(watch.line(), "pod/d");
    cluster.patch(&path("c"), &ready);
    assert_eq!(watch.line(), "pod/c");
    cluster.request("DELETE", &path("d"), "application/json", r#"{"gracePeriodSeconds": 0}"#);
    assert_eq!(watch.wait().code(), Some(0));

    cluster.pod("e", &json!({}));
    cluster.pod("f", &json!({}));
    // Ended by a signal, because a time limit may pass before all of the objects are known.
    let mut watch = cluster.watch(&until);
    let names: Vec<_> = std::iter::repeat_with(|| watch.line()).take(5).collect();
    assert_eq!(names, ["pod/a", "pod/b", "pod/c", "pod/e", "pod/f"]);
    watch.signal("INT");
    assert_eq!(watch.wait().code(), Some(1));
    let expected =
        "not met: metadata.labels.ready=yes by 2 of 5 objects (default/e, default/f), within";
    let (_, said) = watch.rest();
    assert!(said.iter().any(|line| line.contains(expected)), "{said:?}");
    let run = cluster.run(&[&until[..], &["--any"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "pod/a\n"), "{run:?}");
    let run = cluster.run(&["pods", "--any"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("--until"), "{run:?}");
}

#[test]
fn the_status_line_says_what_is_waited_for() {
    let cluster = Cluster::start("until-status");
    cluster.pod("a", &json!({"ready": "yes"}));
    cluster.pod("b", &json!({}));
    let arguments = ["watch", "pods", "--until", "metadata.labels.ready=yes"];
    let mut terminal = Terminal::start(cluster.tool(&arguments), 120);
    terminal.shows("waiting for metadata.labels.ready=yes by all, 1 of 2");
    let ready = json!({"metadata": {"labels": {"ready": "yes"}}});
    cluster.patch("/api/v1/namespaces/default/pods/b", &ready);
    assert_eq!(terminal.wait().code(), Some(0));
}

#[test]
fn a_condition_that_is_not_met_in_time_is_one() {
    let cluster = Cluster::start("until-not");
    cluster.pod("a", &json!({}));
    let until = ["--until", "metadata.name=b", "--until", "metadata.name=c"];
    let run = cluster.run_in_time(&[&["pods", "--timeout", "300ms"], &until[..]].concat());
    assert_eq!(run.code, Some(1), "{run:?}");
    let expected = "not met: metadata.name=b and metadata.name=c, within 300 ms";
    assert!(run.stderr.contains(expected), "{run:?}");
    let run = cluster.run(&["pods", "--until", "=x"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("--until"), "{run:?}");
}

#[test]
fn a_time_that_was_asked_for_is_success() {
    let cluster = Cluster::start("time");
    cluster.pod("a", &json!({}));
    let run = cluster.run_in_time(&["pods", "-o", "name", "--timeout", "300ms"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_signal_ends_it_with_a_summary() {
    let cluster = Cluster::start("signal");
    cluster.pod("a", &json!({}));
    for signal in ["INT", "TERM"] {
        let mut watch = cluster.watch(&["pods", "-o", "name"]);
        assert_eq!(watch.line(), "pod/a");
        watch.signal(signal);
        assert_eq!(watch.wait().code(), Some(0), "{signal}");
        let (rest, said) = watch.rest();
        assert_eq!(rest, Vec::<String>::new());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].ends_with("s: 1 added, 0 updated, 0 deleted"), "{said:?}");
    }
}

/// A server that accepts connections and never responds.
#[test]
fn a_signal_ends_it_also_before_it_has_begun() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = directory("watch-silent");
    let file = home.join("config");
    let address = silent.local_addr().unwrap();
    std::fs::write(&file, kubeconfig(&format!("http://{address}"))).unwrap();
    let mut watch = Running::start(tool(&home, &["watch", "pods"], Some(&file)));
    let _connection = silent.accept().unwrap();
    watch.signal("INT");
    assert_eq!(watch.wait().code(), Some(0));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let cluster = Cluster::start("pipe");
    for n in 0..50 {
        cluster.pod(&format!("pod-{n}"), &json!({}));
    }
    let mut child = cluster
        .tool(&["watch", "pods", "-o", "json", "--resync", "1s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    drop(out);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

/// `| head -1` returns to the prompt immediately, and not at the next event.
#[test]
fn a_closed_pipe_ends_it_also_where_nothing_happens() {
    let cluster = Cluster::start("pipe-quiet");
    cluster.pod("only", &json!({}));
    let mut child =
        cluster.tool(&["watch", "pods", "-o", "name"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert_eq!(first, "pod/only\n");
    drop(out);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn what_could_not_be_written_is_told() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
        println!("not run, because there is no /dev/full here");
        return;
    };
    let cluster = Cluster::start("full");
    cluster.pod("a", &json!({}));
    let mut child = cluster.tool(&["watch", "pods"]).stdout(full).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(said.starts_with("error: cannot write to standard output: "), "{said}");
}

#[test]
fn arguments_are_checked() {
    let cluster = Cluster::start("arguments");
    for (arguments, named) in [
        (&["pods", "-o", "xml"][..], "xml"),
        (&["pods", "--timeout", "5"], "500ms, 30s"),
        (&["pods", "--count", "0"], "--count"),
        (&["pods", "pods/b"], "no expression for names"),
        (&["pods", "-n", "Shop"], "no name of a namespace"),
        (&["pods", "-n", "a", "-A"], "--all-namespaces"),
        (&[","], "name a type"),
        (&["pods", "--resync", "0s"], "--resync"),
        (&[], "TYPE"),
    ] {
        let run = cluster.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.contains(named), "{arguments:?} {run:?}");
    }
}
