//! `bench-server`: creates the pods that the programs of `cargo xtask bench` cache, on an embedded API server, or
//! with `--kubeconfig FILE` on an existing server.
//!
//! It reads commands, one per line, and answers each with one line of JSON:
//!
//! | command | effect |
//! | --- | --- |
//! | `fill N` | creates pods until there are N |
//! | `push N` | changes N pods as fast as possible, then the sentinel |
//! | `pace N RATE` | changes N pods at RATE per second, then the sentinel; answers with the time of each write |
//! | `expire` | ends every watch with an expired version |

#[path = "server/embedded.rs"]
mod embedded;
#[path = "server/remote.rs"]
mod remote;

use std::io::{BufRead as _, stdin};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use peers_bench::talk::say;
use peers_bench::{data, usage};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use embedded::Embedded;
use remote::Remote;

/// A server that stores pods.
trait Server {
    /// Creates the namespaces.
    fn prepare(&self) -> Result<()>;
    /// Creates the pods with these numbers, and returns the size of one of them in bytes.
    fn create(&self, numbers: std::ops::Range<usize>) -> Result<usize>;
    /// Creates the sentinel.
    fn create_sentinel(&self) -> Result<()>;
    /// Writes the status of these pods in any order, but the last one last.
    fn change_all(&self, pods: &[Value]) -> Result<()>;
    /// Writes the status of a pod, and returns its new version.
    fn change(&self, pod: &Value) -> Result<u64>;
    /// Ends all watches with an expired version.
    fn expire(&self) -> Result<()>;
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Runtime::new()?;
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["--write-kubeconfig", file] => {
            let server = Embedded::start(&runtime, &PathBuf::from(file))?;
            serve(&server)
        }
        ["--kubeconfig", file] => serve(&Remote::at(runtime, &PathBuf::from(file))?),
        _ => bail!("usage: bench-server --write-kubeconfig FILE | --kubeconfig FILE"),
    }
}

/// The pods written so far.
struct Written {
    pods: usize,
    /// The number of changes so far, which makes every change different.
    changes: usize,
}

fn serve(server: &impl Server) -> Result<()> {
    server.prepare()?;
    server.create_sentinel()?;
    say(&json!({"ready": true}))?;
    let mut written = Written { pods: 0, changes: 1 };
    for line in stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match &*words {
            ["fill", pods] => fill(server, &mut written, pods.parse()?)?,
            ["push", count] => push(server, &mut written, count.parse()?)?,
            ["pace", count, rate] => pace(server, &mut written, count.parse()?, rate.parse()?)?,
            ["expire"] => {
                server.expire()?;
                json!({})
            }
            _ => bail!("{line:?} is nothing that the server can be told"),
        };
        say(&answer)?;
    }
    Ok(())
}

fn fill(server: &impl Server, written: &mut Written, pods: usize) -> Result<Value> {
    let (began, before) = (Instant::now(), written.pods);
    let bytes = server.create(before..pods.max(before))?;
    written.pods = pods.max(before);
    let made = written.pods - before;
    Ok(json!({"made": made, "bytes": bytes, "seconds": began.elapsed().as_secs_f64()}))
}

/// Returns the next pods to change, each with its new status.
fn changes(written: &mut Written, count: usize) -> Vec<Value> {
    let pods = written.pods.max(1);
    let change = |_| {
        written.changes += 1;
        // Consecutive changes are spread over namespaces and deployments.
        data::pod(written.changes * 7919 % pods, written.changes)
    };
    (0..count).map(change).collect()
}

fn push(server: &impl Server, written: &mut Written, count: usize) -> Result<Value> {
    let pods = changes(written, count);
    let began = Instant::now();
    server.change_all(&pods)?;
    server.change(&data::sentinel(written.changes))?;
    Ok(json!({"events": count + 1, "seconds": began.elapsed().as_secs_f64()}))
}

fn pace(server: &impl Server, written: &mut Written, count: usize, rate: f64) -> Result<Value> {
    let mut pods = changes(written, count);
    pods.push(data::sentinel(written.changes));
    let (began, mut wrote) = (Instant::now(), Vec::with_capacity(pods.len()));
    for (number, pod) in pods.iter().enumerate() {
        let due = Duration::from_secs_f64(number as f64 / rate);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let at = usage::now();
        wrote.push((server.change(pod)?, at));
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(json!({"events": pods.len(), "seconds": seconds, "wrote": wrote}))
}

/// Returns the version of an object in a server's response.
fn version(object: &Value) -> Result<u64> {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    version.parse().with_context(|| format!("{version:?} is no version"))
}
