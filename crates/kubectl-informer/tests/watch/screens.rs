//! In a terminal.

use serde_json::json;

use crate::process::{Cluster, tool};
use crate::support::directory;
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

#[test]
fn the_status_line_says_what_is_wrong_and_goes_on() {
    let mut cluster = Cluster::start("screen-away");
    let address = cluster.address();
    cluster.pod("nginx", &json!({}));
    let mut terminal = Terminal::start(cluster.tool(&["watch", "pods"]), 200);
    terminal.shows("default/nginx");
    terminal.shows("● live");
    cluster.0.end("KILL");
    terminal.shows(&format!("nobody listens at http://{address}"));
    terminal.shows("1 object as of");
    terminal.forget();
    let _again = Cluster::with("screen-away-again", &["--listen", &address]);
    terminal.shows("DELETE");
    terminal.shows("its last state was missed");
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
