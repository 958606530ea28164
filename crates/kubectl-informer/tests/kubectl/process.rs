//! kubectl as a process, with a server to talk to.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};

use crate::support::Serving;

/// kubectl with its own server.
pub(crate) struct Kubectl(pub(crate) Serving);

impl Kubectl {
    /// Starts a server. Without kubectl, prints a note and returns `None`.
    pub(crate) fn new(test: &str) -> Option<Self> {
        Self::with(test, &[])
    }

    pub(crate) fn with(test: &str, arguments: &[&str]) -> Option<Self> {
        let found = Command::new("kubectl").arg("help").output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("{test}: not run, because there is no kubectl on the PATH");
            return None;
        }
        Some(Self(Serving::start(&format!("kubectl-{test}"), arguments)))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        // A request that fails does so within a minute.
        command.args(arguments).arg("--request-timeout=60s");
        command.env("KUBECONFIG", self.0.kubeconfig());
        // kubectl's discovery cache is in the home directory.
        command.env("HOME", &self.0.directory).env_remove("KUBECACHEDIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> (bool, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (status.success(), stdout, stderr)
    }

    /// Runs a command that succeeds. Returns its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let (success, stdout, stderr) = self.output(arguments);
        assert!(success, "kubectl {arguments:?}: {stdout}{stderr}");
        stdout
    }

    /// Runs a command that fails. Returns its standard error.
    pub(crate) fn fail(&self, arguments: &[&str]) -> String {
        let (success, stdout, stderr) = self.output(arguments);
        assert!(!success, "kubectl {arguments:?}: {stdout}{stderr}");
        stderr
    }

    /// Runs `kubectl create -f` with a file of this content.
    pub(crate) fn create(&self, yaml: &str) -> String {
        let file = self.0.directory.join("create.yaml");
        fs::write(&file, yaml).unwrap();
        self.run(&["create", "-f", file.to_str().unwrap()])
    }

    /// Runs a command that reads standard input, as in `docs/faults.md`.
    pub(crate) fn pipe(&self, input: &str, arguments: &[&str]) -> (bool, String, String) {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (status.success(), stdout, stderr)
    }

    /// Starts a command whose output is read while it runs.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running(self.command(arguments).spawn().unwrap())
    }
}

/// A running kubectl. Dropping this kills it.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads lines until one contains `text`, and returns it.
pub(crate) fn line_with(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    text: &str,
) -> String {
    let mut seen = Vec::new();
    for line in lines {
        let line = line.unwrap();
        if line.contains(text) {
            return line;
        }
        seen.push(line);
    }
    panic!("no {text:?} in {seen:#?}");
}

/// Collapses the spaces that align columns.
pub(crate) fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first word of each line.
pub(crate) fn first_words(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_whitespace().next()).collect()
}
