//! The commands that a client handles once it has all pods, and its answers.
//!
//! Its first line reports the cost of the sync. Then, for each command:
//!
//! | command | answer |
//! | --- | --- |
//! | `usage` | resources used so far |
//! | `events` | `{"ready":true}`; once every handler has seen the sentinel, the cost |
//! | `latency` | the same, with the time at which each version was seen |
//! | `reads` | the same, with the latencies of a thread that reads continuously |
//! | `relist` | `{"ready":true}`; once everything has been received again, the cost |
//!
//! It exits at the end of its input.

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::seen::Seen;
use crate::{data, usage};

/// A program that caches pods.
pub trait Client: Sync {
    /// Returns the counters of its handlers.
    fn seen(&self) -> &Seen;
    /// Returns the number of handlers.
    fn handlers(&self) -> usize;
    /// Returns the number of cached objects.
    fn objects(&self) -> usize;
    /// Prepares for a relist. Each handler calls [`Seen::end`] when it has received everything.
    fn expect_relist(&self);
    /// Returns the number of events that were merged instead of delivered one by one.
    fn merged(&self) -> u64;
    /// Reads one pod, and returns whether it exists.
    fn get(&self, namespace: &str, name: &str) -> bool;
    /// Reads all pods, and returns their number.
    fn list(&self) -> usize;
    /// Reads the pods of a node, and returns their number.
    fn on_node(&self, node: &str) -> usize;
}

/// Answers commands until the end of the input.
pub fn serve(client: &impl Client, began: Instant) -> Result<()> {
    let mut synced = usage::all();
    synced["wall"] = began.elapsed().as_secs_f64().into();
    synced["objects"] = client.objects().into();
    say(&synced)?;
    for line in stdin().lock().lines() {
        match line?.trim() {
            "usage" => say(&usage::all())?,
            "events" => say(&phase(client, Phase::Events)?)?,
            "latency" => say(&phase(client, Phase::Latency)?)?,
            "reads" => say(&phase(client, Phase::Reads)?)?,
            "relist" => say(&phase(client, Phase::Relist)?)?,
            other => bail!("{other:?} is nothing that a client can be told"),
        }
    }
    Ok(())
}

/// Prints one line of JSON.
pub fn say(answer: &Value) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush().context("nobody reads the answers")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Events,
    Latency,
    Reads,
    Relist,
}

fn phase(client: &impl Client, phase: Phase) -> Result<Value> {
    let ended = client.seen().begin(phase == Phase::Latency, phase != Phase::Relist);
    if phase == Phase::Relist {
        client.expect_relist();
    }
    usage::forget_peak();
    let (merged, cpu, began) = (client.merged(), usage::cpu(), Instant::now());
    say(&json!({"ready": true}))?;
    let mut answer = json!({});
    if phase == Phase::Reads {
        answer["reads"] = reads(client, &ended)?;
    } else {
        wait(client, &ended)?;
    }
    let used = usage::cpu() - cpu;
    answer["wall"] = began.elapsed().as_secs_f64().into();
    answer["cpu"] = used.into();
    answer["peak"] = usage::memory().1.into();
    answer["calls"] = client.seen().calls().into();
    answer["merged"] = (client.merged() - merged).into();
    if phase == Phase::Latency {
        answer["seen"] = json!(client.seen().notes());
    }
    Ok(answer)
}

fn wait(client: &impl Client, ended: &Receiver<()>) -> Result<()> {
    for _ in 0..client.handlers() {
        ended.recv().context("the handlers are gone")?;
    }
    Ok(())
}

/// Reads continuously until the phase ends, and returns the sorted nanoseconds of each kind of read.
fn reads(client: &impl Client, ended: &Receiver<()>) -> Result<Value> {
    let over = AtomicBool::new(false);
    let times = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(1);
            let objects = client.objects().saturating_sub(1).max(1);
            let mut times: [Vec<u64>; 3] = Default::default();
            while !over.load(Ordering::Relaxed) {
                let pod = random.usize(..objects);
                let ((namespace, name), node) = (data::place(pod), data::node(pod));
                times[0].push(timed(|| client.get(&namespace, &name)));
                times[1].push(timed(|| client.list()));
                times[2].push(timed(|| client.on_node(&node)));
            }
            times
        });
        let waited = wait(client, ended);
        over.store(true, Ordering::Relaxed);
        waited.and_then(|()| reader.join().map_err(|_| anyhow::anyhow!("the reader panicked")))
    })?;
    let shown = |times: &Vec<u64>| {
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let at = |of: f64| sorted.get((sorted.len() as f64 * of) as usize).copied().unwrap_or(0);
        json!({"count": sorted.len(), "p50": at(0.5), "p99": at(0.99)})
    };
    Ok(json!({"get": shown(&times[0]), "list": shown(&times[1]), "node": shown(&times[2])}))
}

fn timed<T>(read: impl FnOnce() -> T) -> u64 {
    let began = Instant::now();
    std::hint::black_box(read());
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
