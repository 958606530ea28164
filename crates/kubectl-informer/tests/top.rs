//! `top` as a process: what it counts, on a terminal and without one.
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

use std::process::Stdio;

use embedded_apiserver::{Denial, Verb};
use serde_json::{Value, json};

use terminal::Terminal;
use tool::{Cluster, Ran, ran, tells_of_a_full_disk};

const MAPS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: busy}
data: {colour: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: idle}
";

/// The number of seconds for which the rate of the last minute is that since the start.
const MINUTE: f64 = 60.0;

fn change(cluster: &Cluster, n: u64) {
    let mut map = cluster.server.get("configmaps", "default", "busy").unwrap();
    map["data"]["colour"] = json!(format!("colour {n}"));
    cluster.server.update(map).unwrap();
}

/// Runs `top` for ever longer times while an object keeps changing, until it has seen a change on
/// this machine.
fn while_busy(cluster: &Cluster, arguments: &[&str]) -> (f64, Ran) {
    for (length, seconds) in [("300ms", 0.3), ("3s", 3.0), ("30s", 30.0), ("300s", 300.0)] {
        let mut command = cluster.command(&[&["top", "--for", length][..], arguments].concat());
        let mut child = command.spawn().unwrap();
        for n in 0.. {
            change(cluster, n);
            if child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::yield_now();
        }
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        if ran.out.contains("default/busy") {
            return (seconds, ran);
        }
    }
    panic!("it has seen no change in five minutes");
}

#[test]
fn it_names_what_changes_and_in_which_fields() {
    let cluster = Cluster::new("top-busy", MAPS);
    let (least, ran) = while_busy(&cluster, &["cm,nodes"]);
    let (_, time) = ran.out.split_once(" in ").unwrap();
    let seconds: f64 = time.split_once(" s, ").unwrap().0.parse().unwrap();
    assert!(seconds >= least, "{}", ran.out);
    let rows: Vec<Vec<_>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |first: &str| rows.iter().find(|row| row.first() == Some(&first)).unwrap();
    assert_eq!(row("configmaps")[1], "2");
    // The rates since the start and in the last minute, and the numbers of additions and updates.
    assert_ne!(row("configmaps")[3], "0");
    if seconds < MINUTE {
        assert_eq!(row("configmaps")[2], row("configmaps")[3]);
    }
    assert_eq!(row("configmaps")[4], "0");
    assert_ne!(row("configmaps")[5], "0");
    assert_eq!(row("nodes")[2], "0");
    let busiest: Vec<_> = rows.iter().skip_while(|row| row.first() != Some(&"CHANGES")).collect();
    assert_eq!(busiest.len(), 2, "{}", ran.out);
    assert_eq!(busiest[1][3..6], ["ConfigMap", "default/busy", ".data.colour"]);
}

#[test]
fn programs_get_json() {
    let cluster = Cluster::new("top-json", MAPS);
    let (least, ran) = while_busy(&cluster, &["cm", "-o", "json"]);
    let top: Value = serde_json::from_str(&ran.out).unwrap();
    let updated = top["types"][0]["updated"].as_u64().unwrap();
    assert!(updated > 0);
    assert_eq!(top["changes"], updated);
    assert_eq!(top["types"][0]["objects"], 2);
    let seconds = top["seconds"].as_f64().unwrap();
    assert!(seconds >= least, "{top}");
    let rates = &top["types"][0];
    if seconds < MINUTE {
        assert_eq!(rates["changesPerSecond"], rates["changesPerSecondInLastMinute"]);
    }
    let bytes = top["types"][0]["bytesPerSecond"].as_f64().unwrap() * seconds;
    assert!(bytes / updated as f64 > 100.0, "{top}");
    assert_eq!(top["objects"].as_array().unwrap().len(), 1);
    assert_eq!(top["objects"][0]["key"], "default/busy");
    assert_eq!(top["objects"][0]["updated"], updated);
    assert_eq!(top["objects"][0]["fields"], json!([{"path": ".data.colour", "changes": updated}]));
}

#[test]
fn nothing_is_something_to_say() {
    let cluster = Cluster::new("top-quiet", MAPS);
    let out = cluster.prints(&["top", "--for", "10ms"]);
    let (first, _) = out.split_once('\n').unwrap();
    let time = first.strip_prefix("nothing changed in ").and_then(|time| time.strip_suffix(" s"));
    assert!(time.is_some_and(|time| time.parse::<f64>().is_ok()), "{out}");
    for name in ["pods", "deployments.apps", "nodes", "leases.coordination.k8s.io", "events"] {
        assert!(out.lines().any(|line| line.starts_with(name)), "{name}: {out}");
    }
    assert!(!out.contains("WHAT CHANGES"), "{out}");
}

#[test]
fn on_a_terminal_it_goes_on_until_it_is_told_to_stop() {
    let cluster = Cluster::new("top-live", MAPS);
    let mut command = cluster.command(&["top", "cm"]);
    command.stdin(Stdio::null());
    let mut terminal = Terminal::start(command, 60);
    terminal.shows("nothing changed in ");
    for n in 0..20 {
        change(&cluster, n);
    }
    // The new text replaces the old one, and fits the terminal.
    terminal.shows("\x1b[4A\r\x1b[J");
    terminal.shows("20 changes in ");
    terminal.shows("default/busy");
    // On a slow machine, the progress of the list is drawn several times on one line.
    let drawn = terminal.seen.split(['\r', '\n']);
    let widest = drawn.map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 60 + "\x1b[4A\r\x1b[J".len(), "{}", terminal.seen);
    terminal.forget();
    terminal.signal("INT");
    assert_eq!(terminal.wait().code(), Some(0));
    terminal.shows("20 changes in ");
}

#[test]
fn on_a_narrow_terminal_the_numbers_that_matter_are_whole() {
    let cluster = Cluster::new("top-narrow", MAPS);
    let command = cluster.command(&["top", "cm,endpointslices", "--for", "10ms"]);
    let mut terminal = Terminal::start(command, 80);
    terminal.shows("endpointslices.discovery.k8s.io");
    assert_eq!(terminal.wait().code(), Some(0));
    let title = terminal.seen.lines().find(|line| line.contains("TYPE")).unwrap();
    let title: Vec<_> = title.split_whitespace().collect();
    assert_eq!(title, ["TYPE", "LAST", "MIN/S", "ADDED", "UPDATED", "DELETED"]);
}

#[test]
fn keys_pause_filter_help_and_end() {
    let cluster = Cluster::new("top-keys", MAPS);
    let mut terminal = Terminal::start(cluster.command(&["top", "cm"]), 100);
    terminal.shows("nothing changed in ");
    assert!(!terminal.echoes());
    terminal.types("?");
    terminal.shows("  q  ends              space  pauses the display, and resumes\r\n");
    terminal.types("? ");
    terminal.shows("‖ paused: counting goes on · space resumes\r\nnothing changed in ");
    change(&cluster, 1);
    terminal.types(" ");
    terminal.shows("1 change in ");
    terminal.shows("default/busy");
    terminal.types("/idle");
    terminal.shows("filter names (Enter applies, Esc cancels): idle\r\n");
    terminal.types("\r");
    terminal.shows("no object that has changed matches idle\r\n");
    terminal.signal("TSTP");
    terminal.waits_for_stop();
    assert!(terminal.echoes());
    terminal.forget();
    terminal.signal("CONT");
    terminal.shows("1 change in ");
    // That may still be the output from before the stop.
    terminal.waits_for_echo(false);
    terminal.types("q");
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.echoes());
}

#[test]
fn what_may_not_be_seen_is_left_out_unless_it_was_named() {
    let cluster = Cluster::new("top-forbidden", MAPS);
    cluster.server.access().deny(Denial::verbs([Verb::List, Verb::Watch]).resource("leases"));
    let ran = cluster.run(&["top", "--for", "10ms"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.err, "without leases.coordination.k8s.io, which you may not list\n");
    assert!(!ran.out.contains("leases"), "{}", ran.out);

    let problem = cluster.fails(&["top", "leases"]);
    assert!(problem.contains("kubectl create role "), "{problem}");
    cluster.server.access().deny(Denial::all());
    let ran = cluster.run(&["top"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(cluster.fails(&["top", "cm", "--for", "soon"]).contains("--for"));
}

#[test]
fn nobody_to_read_it_is_no_error() {
    let cluster = Cluster::new("top-pipe", MAPS);
    let ran = tool::with_nobody_to_read(&mut cluster.command(&["top", "cm", "--for", "10ms"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn what_could_not_be_written_is_told() {
    let cluster = Cluster::new("top-full", MAPS);
    tells_of_a_full_disk(&mut cluster.command(&["top", "cm", "--for", "10ms"]));
}
