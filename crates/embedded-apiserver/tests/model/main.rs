//! Checks the server against a model that is too simple to be wrong.
//!
//! From a seed, a run generates clients that create, update, patch and delete; complete and paged
//! lists, current and historical; and watches of every kind. All are interleaved with compactions,
//! restarts, restores and the passing of time. The model keeps every change in a list, and predicts
//! each response and each event:
//!
//! - a write succeeds if and only if it was based on the latest state, returns the state that the
//!   model computes from the previous one, and takes the next version;
//! - a list is the model's state at its version, page by page;
//! - a watch is the model's history after its version: types, order, no gaps, no duplicates;
//! - a bookmark follows all changes up to its version, and is sent when it is due;
//! - a 410 is sent if and only if a required event or state was compacted.
//!
//! `MODEL_SEED=7` runs one seed, and prints the requests and responses if it fails. A failure names
//! its seed. `MODEL_SEEDS=2000` runs that many seeds, with `MODEL_STEPS=5000` steps each. `threads`
//! does the same with real concurrency, where a watcher from the start defines the order for others.

mod history;
mod objects;
mod reads;
mod run;
mod threads;
mod watches;
#[path = "../shared/wire.rs"]
mod wire;
mod writes;

use run::Run;

/// Returns a number from the environment.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// Returns the complete run of a seed as text.
fn trace(seed: u64, steps: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let mut run = Run::new(seed);
        for _ in 0..steps {
            run.step().await;
        }
        run.finish().await
    })
}

#[test]
fn the_server_does_what_the_model_says() {
    let seeds = match setting("MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..setting("MODEL_SEEDS").unwrap_or(40),
    };
    let mut unseen = TO_BE_SEEN.to_vec();
    let many = seeds.end - seeds.start >= 40;
    for seed in seeds {
        let trace = trace(seed, setting("MODEL_STEPS").unwrap_or(600));
        unseen.retain(|(first, second)| {
            !trace.iter().any(|line| line.contains(first) && line.contains(second))
        });
    }
    assert!(!many || unseen.is_empty(), "a test of nothing: {unseen:?} never happened");
}

/// Events that a run of some seeds must include, as two parts of a line. Otherwise nothing is
/// checked.
const TO_BE_SEEN: [(&str, &str); 17] = [
    (" -> 409 ", "AlreadyExists"),
    (" -> 409 ", "the object has been modified"),
    (" -> 409 ", "precondition"),
    (" -> 422 ", "no new finalizers can be added"),
    (" -> 410 ", "The resourceVersion for the provided list is too old"),
    (" -> 410 ", "The provided continue parameter is too old"),
    (" -> 504 ", "Too large resource version"),
    (" -> 200 ", "remainingItemCount"),
    (" -> 200 ", "x/one"),
    ("gives", "too old resource version"),
    ("gives", "initial-events-end"),
    ("gives", "BOOKMARK"),
    ("labelSelector", "DELETED"),
    ("gives", "Broken"),
    ("gives", "End"),
    ("gives", "Nothing"),
    ("restore", ""),
];

#[test]
fn a_seed_repeats_to_the_byte() {
    for seed in [3, 1_000_003] {
        let (first, second) = (trace(seed, 400), trace(seed, 400));
        let differs = first.iter().zip(&second).position(|(a, b)| a != b);
        assert_eq!(differs.map(|at| (&first[at], &second[at])), None);
        assert_eq!(first.len(), second.len());
        assert!(first.len() > 400, "a step leaves at least one line");
    }
}
