//! The tool as kubectl's plugin: `kubectl informer`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::process::{Kubectl, Running, line_with, single_spaced};
use crate::support::PATIENCE;

/// Returns the command `kubectl informer …`, with the tool on the PATH.
fn plugin(kubectl: &Kubectl, arguments: &[&str]) -> Command {
    let bin = kubectl.0.directory.join("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_kubectl-informer"), bin.join("kubectl-informer")).unwrap();
    }
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("kubectl");
    command.arg("informer").args(arguments).env("PATH", path);
    command.env("KUBECONFIG", kubectl.0.kubeconfig()).env("HOME", &kubectl.0.directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The commands that articles on informers run while they watch pods.
#[test]
fn the_session_of_the_articles() {
    let Some(kubectl) = Kubectl::with("plugin", &["--pods-run"]) else { return };
    let mut watching = Running(plugin(&kubectl, &["watch", "pods"]).spawn().unwrap());
    let mut said = BufReader::new(watching.0.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert_eq!(first, "no pods in namespace default yet: waiting\n");
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();

    kubectl.run(&["run", "nginx", "--image=nginx"]);
    let add = single_spaced(&line_with(&mut lines, "ADD"));
    assert!(add.contains(" ADD Pod default/nginx 0/1 Pending 0 "), "{add}");
    let running = single_spaced(&line_with(&mut lines, "Running"));
    assert!(running.contains(" UPDATE Pod default/nginx 1/1 Running 0 "), "{running}");
    kubectl.run(&["label", "pods", "nginx", "foo=bar"]);
    let labelled = line_with(&mut lines, "UPDATE");
    assert!(labelled.ends_with(" .metadata.labels.foo"), "{labelled}");
    kubectl.run(&["delete", "pod", "nginx"]);
    let told = line_with(&mut lines, "UPDATE");
    assert!(told.contains("Terminating"), "{told}");
    let delete = single_spaced(&line_with(&mut lines, "DELETE"));
    assert!(delete.contains(" DELETE Pod default/nginx "), "{delete}");

    let interrupt = format!("kill -s INT {}", watching.0.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    assert_eq!(watching.0.wait().unwrap().code(), Some(0));
    let mut summary = String::new();
    said.read_to_string(&mut summary).unwrap();
    assert!(summary.contains(" 1 added, ") && summary.contains(", 1 deleted"), "{summary}");
}

#[test]
fn exit_codes_are_those_of_the_tool() {
    let Some(kubectl) = Kubectl::new("plugin-codes") else { return };
    kubectl.run(&["run", "nginx", "--image=nginx"]);
    for (arguments, code) in [
        (&["get", "pods"][..], 0),
        (&["get", "pods", "nope"], 1),
        (&["watch", "pods", "--until", "status.phase=Running", "--timeout", "10ms"], 1),
        (&["get", "nope"], 2),
        (&["nope"], 2),
    ] {
        let end = Instant::now() + PATIENCE;
        let mut output = plugin(&kubectl, arguments).output().unwrap();
        // With a short timeout, the time for the server's first response is limited too.
        while String::from_utf8_lossy(&output.stderr).contains("no answer from ") {
            assert!(Instant::now() < end, "{arguments:?}: {output:?}");
            output = plugin(&kubectl, arguments).output().unwrap();
        }
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    }
}
