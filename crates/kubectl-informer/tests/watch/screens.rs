//! The tool on a terminal.

use std::time::Duration;

use serde_json::json;

use crate::process::{Cluster, tool};
use crate::support::{Reserved, directory};
use crate::terminal::Terminal;

#[test]
fn the_first_run_without_a_kubeconfig() {
    let home = directory("watch-screen-first");
    let mut terminal = Terminal::start(tool(&home, &["watch", "pods"], None), 120);
    terminal.shows("no kubeconfig");
    terminal.shows("TIME      EVENT");
    terminal.shows("\x1b[32mADD");
    terminal.shows("● live");
    terminal.shows("\x1b[33mUPDATE");
    terminal.signal("INT");
    terminal.shows(" deleted\r\n");
    assert_eq!(terminal.wait().code(), Some(0));
}

/// The limit is on CPU time, because a busy machine says nothing about the tool. That the tool
/// waits for nothing either is tested in paused time.
#[test]
fn the_first_event_is_on_the_screen_within_a_second() {
    let home = directory("watch-screen-soon");
    let mut terminal = Terminal::start(tool(&home, &["watch", "pods"], None), 80);
    terminal.shows("ADD");
    let Some(worked) = terminal.worked() else {
        println!("not run, because this system does not tell how long a process has worked");
        return;
    };
    assert!(worked < Duration::from_secs(1), "{worked:?}");
}

#[test]
fn the_status_line_says_what_is_wrong_and_goes_on() {
    let place = Reserved::new();
    let listen = ["--listen", &place.address];
    let mut cluster = Cluster::with("screen-away", &listen);
    cluster.pod("nginx", &json!({}));
    let mut terminal = Terminal::start(cluster.tool(&["watch", "pods"]), 200);
    terminal.shows("default/nginx");
    terminal.shows("● live");
    cluster.0.end("KILL");
    terminal.shows(&format!("nobody listens at http://{}", place.address));
    terminal.shows("1 object as of");
    terminal.forget();
    let _again = Cluster::with("screen-away-again", &listen);
    terminal.shows("DELETE");
    terminal.shows("last state missed");
    terminal.shows("● live");
    terminal.shows("reconnect");
}

#[test]
fn no_color_is_honoured() {
    let home = directory("watch-screen-plain");
    for (name, value, arguments) in [
        ("NO_COLOR", "1", &["watch", "pods", "--embedded", "--count", "3"][..]),
        ("X", "", &["watch", "pods", "--embedded", "--count", "3", "--color", "never"]),
    ] {
        let mut command = tool(&home, arguments, None);
        command.env(name, value);
        let mut terminal = Terminal::start(command, 120);
        terminal.shows("ADD");
        assert_eq!(terminal.wait().code(), Some(0));
        let coloured = terminal.seen.replace("\x1b[K", "");
        assert!(!coloured.contains('\x1b'), "{coloured:?}");
    }
}

#[test]
fn colours_go_into_a_pipe_on_request_only() {
    let cluster = Cluster::start("screen-colours");
    cluster.pod("nginx", &json!({}));
    let run = cluster.run(&["pods", "--count", "1"]);
    assert!(!run.stdout.contains('\x1b'), "{run:?}");
    let run = cluster.run(&["pods", "--count", "1", "--color", "always"]);
    assert!(run.stdout.contains("\x1b[32mADD"), "{run:?}");
}

/// The reader of the pipe writes to the same terminal, and knows nothing of a status line.
#[test]
fn there_is_no_status_line_beside_a_pipe() {
    let home = directory("watch-screen-pipe");
    let tool = tool(&home, &[], None).get_program().to_owned();
    let mut command = std::process::Command::new("sh");
    let line = format!("'{}' watch pods --embedded -o name --count 5 | cat", tool.display());
    command.args(["-c", &line]).env("HOME", &home).env_remove("KUBECONFIG");
    let mut terminal = Terminal::start(command, 120);
    terminal.shows("pod/");
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!terminal.seen.contains('\x1b'), "{:?}", terminal.seen);
}

/// `kubectl get -w` wraps lines. Here an event is one line on every terminal.
#[test]
fn lines_fit_the_terminal() {
    let cluster = Cluster::start("screen-narrow");
    let name = "a-deployment-with-a-rather-long-name-6db665f655-h6pzr";
    let made = cluster.pod(name, &json!({}));
    for columns in [60, 80, 100, 120, 160] {
        let command = cluster.tool(&["watch", "pods", "--color=never", "--count", "1"]);
        let mut terminal = Terminal::start(command, columns);
        terminal.shows("Pending");
        assert_eq!(terminal.wait().code(), Some(0));
        let lines: Vec<_> = terminal.seen.split("\r\n").collect();
        for line in &lines {
            let line = line.rsplit("\x1b[K").next().unwrap();
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line:?}");
        }
        assert!(lines.iter().any(|line| line.contains("STATUS")), "{columns}: {lines:?}");
        let whole = lines.iter().any(|line| line.contains(name));
        assert_eq!(whole, columns >= 120, "{columns}: {lines:?}");
    }
    // With `-o wide`, all columns are shown.
    let command = cluster.tool(&["watch", "pods", "-o", "wide", "--count", "1"]);
    let mut terminal = Terminal::start(command, 80);
    terminal.shows("READINESS GATES");
    terminal.shows(name);
    terminal.shows(made["metadata"]["resourceVersion"].as_str().unwrap());
}

#[test]
fn on_a_narrow_terminal_what_has_changed_comes_before_the_numbers() {
    let cluster = Cluster::start("screen-changed");
    cluster.pod("nginx", &json!({}));
    let mut terminal = Terminal::start(cluster.tool(&["watch", "pods", "--color=never"]), 80);
    terminal.shows("ADD     default/nginx");
    let change = json!({"metadata": {"labels": {"foo": "bar"}}});
    cluster.patch("/api/v1/namespaces/default/pods/nginx", &change);
    terminal.shows("  .metadata.labels.foo\r\n");
}

/// Later lines have the new width, below new titles.
#[test]
fn a_terminal_may_change_its_size() {
    let cluster = Cluster::start("screen-resized");
    cluster.pod("a", &json!({}));
    let mut terminal = Terminal::start(cluster.tool(&["watch", "pods", "--color=never"]), 160);
    terminal.shows("TIME      EVENT   KIND");
    // By then, the titles are on the screen completely.
    terminal.shows("default/a");
    terminal.forget();
    terminal.resize(60);
    cluster.pod("b", &json!({}));
    terminal.shows("TIME   EVENT   NAME  READY  STATUS             RESTARTS  AGE\r\n");
    terminal.shows("ADD     b     0/1    Pending            0         ");
}

/// Returns the rows on a terminal, with `#` for digits that change from run to run.
fn rows(seen: &str, digits: usize) -> Vec<String> {
    let lines = seen.split("\r\n").map(|line| line.rsplit("\x1b[K").next().unwrap_or_default());
    let lines = lines
        .filter(|line| line.contains("NAME") || line.contains("default") || line.contains("web"));
    lines
        .map(|line| match line.strip_prefix("TIME") {
            Some(_) => line.to_owned(),
            None => format!("{}{}", "##:##:##".get(..digits).unwrap_or_default(), &line[digits..]),
        })
        .collect()
}

/// The columns are kubectl's and aligned, and a row that would look like the previous one shows
/// what has changed.
#[test]
fn eighty_columns_have_all_that_kubectl_shows() {
    let cluster = Cluster::start("screen-eighty");
    let name = "web-5bd5764fb6-9b8mc";
    let path = format!("/api/v1/namespaces/default/pods/{name}");
    cluster.pod(name, &json!({}));
    let arguments = ["watch", "pods", "--color=never", "--count", "4"];
    let mut terminal = Terminal::start(cluster.tool(&arguments), 80);
    terminal.shows("ADD");
    for change in [
        json!({"metadata": {"labels": {"tier": "front"}}}),
        json!({"status": {"phase": "Running", "reason": "CrashLoopBackOff"}}),
        json!({"status": {"reason": "AReasonThatIsMuchLongerThanAnyOther"}}),
    ] {
        let path =
            if change["status"].is_object() { format!("{path}/status") } else { path.clone() };
        cluster.patch(&path, &change);
    }
    assert_eq!(terminal.wait().code(), Some(0));
    // The age at the end depends on the speed of the machine.
    let of_age = |c: char| c.is_ascii_digit() || "ms".contains(c);
    let rows = rows(&terminal.seen, 5);
    let rows: Vec<_> = rows.iter().map(|row| row.trim_end_matches(of_age)).collect();
    assert_eq!(
        rows,
        [
            "TIME   EVENT   NAME                  READY  STATUS             RESTARTS    AGE",
            "##:##  ADD     web-5bd5764fb6-9b8mc  0/1    Pending            0           ",
            "##:##  UPDATE  web-5bd5764fb6-9b8mc  0/1    Pending            …labels.tier",
            "##:##  UPDATE  web-5bd5764fb6-9b8mc  0/1    CrashLoopBackOff   0           ",
            "##:##  UPDATE  web-5bd5764fb6-9b8mc  0/1    AReasonThatIsMuc…  0           ",
        ]
    );
}

/// As in `kubectl get events -w`, and without their meaningless names.
#[test]
fn events_have_no_names_but_all_their_columns() {
    let cluster = Cluster::start("screen-events");
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web-1.18a4c0ffee"},
        "type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web-1"},
    });
    let path = "/api/v1/namespaces/default/events";
    cluster.request("POST", path, "application/json", &event.to_string());
    let arguments = ["watch", "ev", "--color=never", "--count", "1"];
    let mut terminal = Terminal::start(cluster.tool(&arguments), 80);
    assert_eq!(terminal.wait().code(), Some(0));
    terminal.shows("  LAST SEEN  TYPE     REASON   OBJECT     MESSAGE\r\n");
    terminal.shows("  Warning  BackOff  pod/web-1  Back-off resta");
    assert!(!terminal.seen.contains("18a4c0ffee"), "{:?}", terminal.seen);
}
