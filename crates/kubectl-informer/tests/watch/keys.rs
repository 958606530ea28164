//! Keys that are pressed while a watch runs on a terminal.

use serde_json::json;

use crate::process::Cluster;
use crate::terminal::Terminal;

/// Starts a watch of pods on a terminal, and waits until it has keys and is live.
fn start(cluster: &Cluster, arguments: &[&str]) -> Terminal {
    let all = [&["watch", "pods", "--color=never"], arguments].concat();
    let mut terminal = Terminal::start(cluster.tool(&all), 100);
    terminal.shows("? for keys");
    terminal.shows("● live");
    terminal
}

#[test]
fn q_ends_the_watch_and_restores_the_terminal() {
    let cluster = Cluster::start("keys-quit");
    cluster.pod("web", &json!({}));
    let mut terminal = start(&cluster, &[]);
    assert!(!terminal.echoes());
    terminal.shows("default/web");
    // An arrow key is not the letters that a terminal sends for it.
    terminal.types("\x1b[Aq");
    terminal.shows("1 added, 0 updated, 0 deleted\r\n");
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.echoes());
}

#[test]
fn the_terminal_is_restored_however_the_watch_ends() {
    let cluster = Cluster::start("keys-ends");
    for (signal, code) in [("INT", 0), ("TERM", 0), ("HUP", 129), ("QUIT", 131)] {
        let mut terminal = start(&cluster, &[]);
        assert!(!terminal.echoes(), "{signal}");
        terminal.signal(signal);
        assert_eq!(terminal.wait().code(), Some(code), "{signal}");
        assert!(terminal.echoes(), "{signal}");
    }
    // By itself.
    let mut terminal = start(&cluster, &["--count", "1"]);
    assert!(!terminal.echoes());
    cluster.pod("web", &json!({}));
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.echoes());
}

#[test]
fn a_stopped_watch_gives_the_terminal_back() {
    let cluster = Cluster::start("keys-stop");
    let mut terminal = start(&cluster, &[]);
    terminal.signal("TSTP");
    terminal.waits_for_stop();
    assert!(terminal.echoes());
    terminal.shows("\r\x1b[K");
    terminal.forget();
    terminal.signal("CONT");
    terminal.waits_for_echo(false);
    terminal.shows("● live");
    terminal.types("q");
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.echoes());
}

#[test]
fn a_pause_holds_events_and_resuming_shows_them() {
    let cluster = Cluster::start("keys-pause");
    let mut terminal = start(&cluster, &[]);
    // The end of the list is an event too, which a pause that comes first would hold.
    terminal.shows("no pods in namespace default yet: waiting\r\n");
    terminal.types(" ");
    terminal.shows("‖ paused  nothing has happened since · space resumes");
    cluster.pod("one", &json!({}));
    cluster.pod("two", &json!({}));
    terminal.shows("‖ paused  2 events held · space resumes");
    assert!(!terminal.seen.contains("ADD"), "{:?}", terminal.seen);
    terminal.types(" ");
    terminal.shows("default/one");
    terminal.shows("default/two");
    terminal.shows("● live  2 pods");
}

/// More events than the informer queues: those of the same object are merged, so that memory is
/// bounded, and the user is told.
#[test]
fn a_long_pause_merges_events_and_says_so() {
    const CHANGES: usize = 1100;
    let cluster = Cluster::start("keys-merge");
    cluster.pod("web", &json!({}));
    let mut terminal = start(&cluster, &[]);
    terminal.types(" ");
    terminal.shows("‖ paused");
    for n in 0..CHANGES {
        let change = json!({"metadata": {"labels": {"n": n.to_string()}}});
        cluster.patch("/api/v1/namespaces/default/pods/web", &change);
    }
    terminal.shows(" merged by object · space resumes");
    terminal.types(" ");
    terminal.shows(" during the pause are not shown: they were merged into later ones");
    terminal.types("q");
    assert_eq!(terminal.wait().code(), Some(0));
    let updates = terminal.seen.matches("UPDATE").count();
    assert!(updates < CHANGES, "{updates}");
}

#[test]
fn d_switches_diffs() {
    let cluster = Cluster::start("keys-diff");
    cluster.pod("web", &json!({}));
    let mut terminal = start(&cluster, &[]);
    let label = |value: &str| {
        let change = json!({"metadata": {"labels": {"tier": value}}});
        cluster.patch("/api/v1/namespaces/default/pods/web", &change);
    };
    terminal.types("d");
    terminal.shows("with diffs from here on\r\n");
    label("front");
    terminal.shows("    + .metadata.labels.tier  front\r\n");
    terminal.types("d");
    terminal.shows("without diffs from here on\r\n");
    terminal.forget();
    label("back");
    terminal.shows(".metadata.labels.tier\r\n");
    terminal.types("q");
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!terminal.seen.contains("front → back"), "{:?}", terminal.seen);
}

#[test]
fn a_slash_filters_by_name() {
    let cluster = Cluster::start("keys-filter");
    for name in ["web-1", "web-2", "db-1"] {
        cluster.pod(name, &json!({}));
    }
    let mut terminal = start(&cluster, &[]);
    terminal.types("/we");
    terminal.shows("filter names (Enter applies, Esc cancels): we");
    terminal.types("b[\r");
    terminal.shows("): web[");
    terminal.types("\x7f\r");
    terminal.shows("from here on only names that match web: 2 of 3\r\n");
    terminal.shows("● live  2 of 3 pods match");
    terminal.forget();
    cluster.pod("db-2", &json!({}));
    cluster.pod("web-3", &json!({}));
    terminal.shows("default/web-3");
    terminal.shows("● live  3 of 5 pods match");
    assert!(!terminal.seen.contains("db-2"), "{:?}", terminal.seen);
    terminal.types("/\x15\r");
    terminal.shows("from here on without a filter\r\n");
    terminal.shows("● live  5 pods");
    cluster.pod("db-3", &json!({}));
    terminal.shows("default/db-3");
}

#[test]
fn help_lists_the_keys_and_enter_leaves_nothing_behind() {
    let cluster = Cluster::start("keys-help");
    cluster.pod("web", &json!({}));
    let mut terminal = start(&cluster, &[]);
    terminal.types("?");
    terminal.shows("Keys:\r\n  q      ends                  space  pauses, and resumes\r\n");
    terminal.shows("? ");
    terminal.forget();
    terminal.types("\r");
    // The status line is erased before the line ends, and drawn again below.
    terminal.shows("\r\x1b[K\r\n\r\x1b[K● live");
}

/// With input from elsewhere the terminal belongs to another program.
#[test]
fn without_a_terminal_as_input_keys_are_off() {
    let cluster = Cluster::start("keys-input");
    cluster.pod("web", &json!({}));
    let tool = cluster.tool(&[]).get_program().to_owned();
    let mut command = std::process::Command::new("sh");
    let line = format!("'{}' watch pods --count 1 < /dev/null", tool.display());
    command.args(["-c", &line]).env("KUBECONFIG", cluster.0.kubeconfig());
    let mut terminal = Terminal::start(command, 100);
    terminal.shows("default/web");
    assert!(terminal.echoes());
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!terminal.seen.contains("? for keys"), "{:?}", terminal.seen);
}
