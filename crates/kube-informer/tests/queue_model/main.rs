//! The work queue, compared with a model that is too simple to be wrong.
//!
//! A run takes a seed and makes two things of it. `steps` does one thing after the other (adds of
//! every kind, gets that wait and gets that are given up, every way to end a task, the passing of time,
//! shutdowns and drains) and the model says after each of them which task is handed out, with
//! which priority, and every number of the status. `crowd` has many tasks of the runtime do so beside each
//! other, and checks what a reconcile loop relies on: every add is followed by a run that began after
//! it, no task is with two workers, none is handed out before its time, and a drain ends when nothing is
//! left.
//!
//! `QUEUE_MODEL_SEED=7` runs one seed; a failure names its seed and what led to it.
//! `QUEUE_MODEL_SEEDS=20000` runs that many.

mod crowd;
mod model;
mod steps;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use parking_lot::Mutex;

/// Number of different tasks.
const TASKS: u32 = 12;

const SEEDS: u64 = 300;

/// Reads a number from the environment.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// A log of a run.
#[derive(Default)]
struct Trace(Mutex<Vec<String>>);

impl Trace {
    fn note(&self, line: String) {
        self.0.lock().push(line);
    }
}

const ON_PURPOSE: &str = "on purpose";

/// Panics without printing a message, to end a worker.
fn panic_quietly() -> ! {
    resume_unwind(Box::new(ON_PURPOSE))
}

/// Runs seeds. All of `to_be_seen` must occur in them: otherwise nothing is tested.
fn run<F: Future<Output = ()>>(play: impl Fn(u64, &'static Trace) -> F, to_be_seen: &[&str]) {
    let seeds: Vec<u64> = match setting("QUEUE_MODEL_SEED") {
        Some(seed) => vec![seed],
        None => (0..setting("QUEUE_MODEL_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    let mut unseen = to_be_seen.to_vec();
    for &seed in &seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be built");
        // Tasks that outlive a failed run may still write to it.
        let trace: &'static Trace = Box::leak(Box::default());
        let played = catch_unwind(AssertUnwindSafe(|| {
            // The steps poll by hand, more often than tokio's budget allows.
            runtime.block_on(tokio::task::unconstrained(play(seed, trace)));
        }));
        let lines = std::mem::take(&mut *trace.0.lock());
        unseen.retain(|what| !lines.iter().any(|line| line.contains(what)));
        if let Err(panic) = played {
            let last = &lines[lines.len().saturating_sub(40)..];
            eprintln!("QUEUE_MODEL_SEED={seed} fails after:\n{}", last.join("\n"));
            resume_unwind(panic);
        }
    }
    let many = seeds.len() as u64 >= SEEDS;
    assert!(!many || unseen.is_empty(), "a test of nothing: {unseen:?} never happened");
}

#[test]
fn one_step_after_the_other_the_queue_does_what_the_model_does() {
    let to_be_seen = [
        "add ",
        "later",
        "limited",
        "waits",
        "is given up",
        "got",
        "done",
        "retry",
        "again",
        "drop",
        "panic",
        "pass",
        "shut down",
        "drained",
        "ended",
        "the oldest",
        "raised",
    ];
    run(steps::play, &to_be_seen);
}

#[test]
fn many_tasks_at_once_lose_no_add_and_share_no_task() {
    let to_be_seen = [
        "starts",
        "Done",
        "Retry",
        "Again",
        "Drop",
        "Panic",
        "is given up",
        "quiet",
        "drained",
        "shut down early",
    ];
    run(crowd::play, &to_be_seen);
}
