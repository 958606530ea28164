//! The tool with its page, and writes to its server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/kubectl-informer");
const TOKEN: &str = "page-test";

pub(crate) struct Server {
    process: Child,
    /// The address of the API server, without a scheme.
    api: String,
    /// The URL of the page.
    pub(crate) page: String,
}

impl Server {
    /// Builds the tool and starts its demo cluster, with a page.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let arguments = ["build", "--package", "kubectl-informer"];
        let built = Command::new("cargo").args(arguments).status();
        if !built.is_ok_and(|status| status.success()) {
            return Err(format!("cargo {} failed", arguments.join(" ")));
        }
        let mut process = Command::new(TOOL)
            .args(["serve", "--demo", "--ui", "--plain", "--token", TOKEN])
            .args(["--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(directory.join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run {TOOL}: {error}"))?;
        let out = process.stdout.take().ok_or("the tool has no output")?;
        let mut server = Self { process, api: String::new(), page: String::new() };
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Some((_, url)) = line.split_once("server on http://") {
                url.split([',', ' ']).next().unwrap_or_default().clone_into(&mut server.api);
            }
            if let Some((_, url)) = line.split_once("debug page on ") {
                url.clone_into(&mut server.page);
                return Ok(server);
            }
        }
        Err("kubectl-informer serve has ended instead of naming its page".to_owned())
    }

    /// Sends a request to the API server.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Result<(), String> {
        self.send_text(method, path, &body.to_string())
    }

    /// Injects faults into the API server, or removes them all.
    pub(crate) fn faults(&self, rules: Option<&str>) -> Result<(), String> {
        let method = if rules.is_some() { "POST" } else { "DELETE" };
        self.send_text(method, "/embedded/faults", rules.unwrap_or_default())
    }

    fn send_text(&self, method: &str, path: &str, body: &str) -> Result<(), String> {
        let problem = |error: std::io::Error| format!("{method} {path}: {error}");
        let mut socket = TcpStream::connect(&self.api).map_err(problem)?;
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.api,
            body.len()
        )
        .map_err(problem)?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).map_err(problem)?;
        let answer = String::from_utf8_lossy(&answer);
        if answer.starts_with("HTTP/1.1 20") {
            return Ok(());
        }
        Err(format!("{method} {path}: {}", answer.chars().take(500).collect::<String>()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
