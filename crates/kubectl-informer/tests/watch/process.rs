//! The tool, and a server to run it against.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Serving};

/// The token that fault injection requires.
pub(crate) const TOKEN: &str = "of-the-tests";

/// A server over plain HTTP, and its objects.
pub(crate) struct Cluster(pub(crate) Serving);

impl Cluster {
    pub(crate) fn start(name: &str) -> Self {
        Self::with(name, &[])
    }

    pub(crate) fn with(name: &str, arguments: &[&str]) -> Self {
        let mut all = vec!["--plain", "--token", TOKEN];
        all.extend(arguments);
        Self(Serving::start(&format!("watch-{name}"), &all))
    }

    /// Returns `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        let (_, rest) = self.0.line.split_once("http://").unwrap();
        rest.split_once(',').unwrap().0.to_owned()
    }

    pub(crate) fn request(&self, method: &str, path: &str, kind: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: {kind}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 20"), "{response}");
        // Whether chunked or not, the object extends from the first brace to the last.
        let (begin, end) = (body.find('{').unwrap(), body.rfind('}').unwrap());
        serde_json::from_str(&body[begin..=end]).unwrap()
    }

    /// Injects a fault.
    pub(crate) fn fault(&self, rule: &str) {
        self.request("POST", "/embedded/faults", "text/plain", rule);
    }

    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        self.request("POST", path, "application/json", &object.to_string())
    }

    pub(crate) fn patch(&self, path: &str, change: &Value) -> Value {
        self.request("PATCH", path, "application/merge-patch+json", &change.to_string())
    }

    pub(crate) fn delete(&self, path: &str) -> Value {
        self.request("DELETE", path, "application/json", "")
    }

    pub(crate) fn pod(&self, name: &str, labels: &Value) -> Value {
        self.create("/api/v1/namespaces/default/pods", &pod(name, labels))
    }

    /// Returns the command for the tool, with this server's kubeconfig.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Command {
        tool(&self.0.directory, arguments, Some(&self.0.kubeconfig()))
    }

    /// Starts a watch that keeps running.
    pub(crate) fn watch(&self, arguments: &[&str]) -> Running {
        let mut all = vec!["watch"];
        all.extend(arguments);
        Running::start(self.tool(&all))
    }

    /// Runs a watch that ends by itself.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let mut all = vec!["watch"];
        all.extend(arguments);
        ended(self.tool(&all))
    }

    /// Like `run`, for a watch with a time limit of the tool that a busy machine may exceed. Then it
    /// is run again.
    pub(crate) fn run_in_time(&self, arguments: &[&str]) -> Ended {
        /// The messages for the limits: of the first response if there is a `--timeout`, and of a
        /// command of `--exec` after the end.
        const LATE: [&str; 2] = ["no answer from ", " had not ended and were killed"];
        let end = Instant::now() + PATIENCE;
        loop {
            let run = self.run(arguments);
            let late = LATE.iter().any(|late| run.stderr.contains(late));
            if !late || Instant::now() > end {
                return run;
            }
        }
    }
}

pub(crate) fn pod(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    })
}

/// Returns the command for the tool, without any environment variable that could lead it to a
/// cluster.
pub(crate) fn tool(home: &Path, arguments: &[&str], kubeconfig: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
    command.args(arguments).current_dir(home).env("HOME", home).env("TZ", "UTC");
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "NO_COLOR", "HTTPS_PROXY", "https_proxy"]
    {
        command.env_remove(name);
    }
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn ended(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Ended { code: output.status.code(), stdout, stderr }
}

/// A running tool. Dropping this kills it.
pub(crate) struct Running {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// Waits for the next line of output.
    pub(crate) fn line(&self) -> String {
        self.out.recv_timeout(PATIENCE).expect("a line")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Waits for the next line of output that contains this text.
    pub(crate) fn line_with(&self, text: &str) -> String {
        std::iter::repeat_with(|| self.line()).find(|line| line.contains(text)).unwrap()
    }

    /// Waits for the next line on standard error that contains this text.
    pub(crate) fn says(&self, text: &str) -> String {
        let next = || self.err.recv_timeout(PATIENCE).expect(text);
        std::iter::repeat_with(next).find(|line| line.contains(text)).unwrap()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill -s {signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Returns the remaining output of a run that has ended.
    pub(crate) fn rest(&self) -> (Vec<String>, Vec<String>) {
        (self.out.iter().collect(), self.err.iter().collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}
