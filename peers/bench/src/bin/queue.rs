//! `bench-queue`: a work queue, for `cargo xtask bench`.
//!
//! It reads a line `WHAT WORKERS KEYS ROUNDS` and prints one line of JSON:
//!
//! | what | prints |
//! | --- | --- |
//! | `work` | the cost of adding all keys while WORKERS workers take and finish them, ROUNDS times |
//! | `delayed` | the same, with each key delayed by up to a second |
//! | `memory` | the growth of resident memory when all keys are queued |
//! | `delayed-memory` | the same when all keys are delayed |
//!
//! `peers/client-go/queue.go` reads the same lines and does the same.

use std::io::{BufRead as _, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kube_informer::{ObjectKey, WorkQueue};
use peers_bench::{talk, usage};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

#[tokio::main]
async fn main() -> Result<()> {
    for line in stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [told, workers, keys, rounds] = words[..] else {
            bail!("{line:?} is not WHAT WORKERS KEYS ROUNDS")
        };
        let (workers, rounds) = (workers.parse()?, rounds.parse()?);
        let keys = keys_of(keys.parse()?)?;
        let queue = WorkQueue::new();
        let answer = match told {
            "work" => work(&queue, keys, workers, rounds, |_| None).await?,
            "delayed" => work(&queue, keys, workers, rounds, |at| Some(delay(at))).await?,
            "memory" => memory(&keys, |key| queue.add(key)),
            "delayed-memory" => memory(&keys, |key| queue.add_after(key, HOUR)),
            other => bail!("{other:?} is nothing that a queue can be told"),
        };
        talk::say(&answer)?;
        queue.shut_down();
    }
    Ok(())
}

const HOUR: Duration = Duration::from_secs(3600);

fn keys_of(count: usize) -> Result<Vec<ObjectKey>> {
    let key = |at: usize| format!("namespace-{}/name-{at}", at % 100).parse();
    (0..count).map(key).collect::<Result<_, _>>().context("these are keys")
}

/// Returns a delay below one second; consecutive keys get unordered delays.
fn delay(at: usize) -> Duration {
    Duration::from_micros((at * 7919 % 1_000_000) as u64)
}

/// Adds all keys while workers take them, and repeats that once all are done.
async fn work(
    queue: &WorkQueue,
    keys: Vec<ObjectKey>,
    workers: usize,
    rounds: usize,
    after: fn(usize) -> Option<Duration>,
) -> Result<Value> {
    let (done, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let all = keys.len();
    for _ in 0..workers {
        let (queue, done, ended) = (queue.clone(), done.clone(), ended.clone());
        tokio::spawn(async move {
            while let Some(key) = queue.get().await {
                key.done();
                if (done.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(all) {
                    ended.notify_one();
                }
            }
        });
    }
    let queue = queue.clone();
    let producer = async move {
        let (used, began) = (usage::cpu(), Instant::now());
        for _ in 0..rounds {
            for (at, key) in keys.iter().enumerate() {
                match after(at) {
                    None => queue.add(key.clone()),
                    Some(delay) => queue.add_after(key.clone(), delay),
                }
                consume_budget().await;
            }
            ended.notified().await;
        }
        json!({"wall": began.elapsed().as_secs_f64(), "cpu": usage::cpu() - used})
    };
    tokio::spawn(producer).await.context("the producer does not panic")
}

fn memory(keys: &[ObjectKey], add: impl Fn(ObjectKey)) -> Value {
    let before = usage::memory().0;
    keys.iter().cloned().for_each(add);
    json!({"bytes": usage::memory().0.saturating_sub(before)})
}
