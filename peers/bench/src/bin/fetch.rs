//! `bench-fetch`: downloads the list of pods as protobuf and discards it, for `cargo xtask bench`. This is the lower
//! bound that server and network set for programs that keep the list.
//!
//! It prints one line: the resources used, and the number of bytes received.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::Kubeconfig;
use peers_bench::arguments::Arguments;
use peers_bench::talk::say;
use peers_bench::usage;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The list as caches request it: from the server's watch cache.
const PATH: &str = "/api/v1/pods?resourceVersion=0";
const ACCEPT: &str = "application/vnd.kubernetes.protobuf";

fn main() -> Result<()> {
    let began = Instant::now();
    let arguments = Arguments::of_process()?;
    let (bytes, cpu) = match &*arguments.form {
        "http" => (Runtime::new()?.block_on(fetch(&arguments))?, usage::cpu()),
        "curl" => (curl(&arguments)?, usage::cpu_of_children()),
        other => bail!("there is no form {other:?}: http, curl"),
    };
    say(&json!({"wall": began.elapsed().as_secs_f64(), "cpu": cpu, "bytes": bytes}))
}

/// Downloads with the HTTP client that our program and kube-rs's use.
async fn fetch(arguments: &Arguments) -> Result<usize> {
    let request = Request::get(PATH).header("accept", ACCEPT).body(Body::empty())?;
    let answer = arguments.client().await?.send(request).await?;
    ensure!(answer.status().is_success(), "the server answers {}", answer.status());
    let (mut body, mut bytes) = (answer.into_body(), 0);
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            bytes += data.len();
        }
    }
    Ok(bytes)
}

/// Downloads with `curl`. The settings include the token, so they are passed on standard input.
fn curl(arguments: &Arguments) -> Result<usize> {
    let kubeconfig = serde_json::to_value(Kubeconfig::read_from(&arguments.kubeconfig)?)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let server = text(&kubeconfig["clusters"][0]["cluster"]["server"]);
    let token = text(&kubeconfig["users"][0]["user"]["token"]);
    let (server, token) = server.zip(token).context("the kubeconfig has no server or no token")?;
    let mut curl = Command::new("curl");
    curl.args(["--config", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut curl = curl.spawn().context("curl cannot be started")?;
    // The server is on loopback, with a self-signed certificate.
    let settings = format!(
        "url = \"{server}{PATH}\"\nheader = \"Accept: {ACCEPT}\"\nheader = \"Authorization: Bearer {token}\"\n\
         output = \"/dev/null\"\nwrite-out = \"%{{size_download}}\"\ninsecure\nsilent\nfail\n"
    );
    curl.stdin.take().context("curl has an input")?.write_all(settings.as_bytes())?;
    let output = curl.wait_with_output()?;
    ensure!(output.status.success(), "curl ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}
