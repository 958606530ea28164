//! The complete stack, compared with a model that is too simple to be wrong.
//!
//! A run derives everything from a seed: clients that write to the embedded server, informers of every kind, handlers
//! of every kind that join and leave, indexes that are added and dropped, faults from the whole catalogue, restored
//! backups, and the passage of time. Beside the informers, a reflector writes to a store that refuses lists and
//! events. In some runs idle connections are cut for a while, or watches fail while lists work. The model keeps every
//! change of the server in a list, and checks at every step:
//!
//! - a cache is the server's state at exactly the version that it reports, and that version never goes back within a
//!   history of the server (I1 to I8, I21);
//! - an event is consistent with the handler's earlier events; its state existed, and is neither older than the last
//!   one nor ahead of the cache (I9 to I13, I16, I17);
//! - every index has exactly the keys that it should, and exists as long as a handle to it (I15);
//! - labels, selectors and decoded objects agree, whatever a transform did to them (T-4).
//!
//! At quiet points, after faults have stopped, it checks that within a bounded time every cache equals the server's
//! content, bodies included, every handler's view equals the cache, and every informer is live (L1, L2); and that
//! nothing is left running after the end (L5). If only idle connections are cut, informers stay live and do not list
//! (L3). If only watches fail, informers follow by polling, in bounded time, and watch again afterwards.
//!
//! The seed also chooses the combination of encoding (JSON or protobuf) and storage (packed, plain or decoded) that
//! all informers of the run use; in some runs each informer has its own. A failure names the combination.
//!
//! `INFORMER_MODEL_SEED=7` runs one seed, and prints its trace if it fails; a failure names its seed.
//! `INFORMER_MODEL_SEEDS=20000` runs that many.

mod checks;
mod combination;
mod episodes;
mod faults;
mod fold;
mod handlers;
mod history;
mod indexes;
mod informers;
mod mirror;
mod network;
mod relabel;
mod run;
mod trouble;
mod writes;

use embedded_apiserver::Fault;

use combination::Combination;
use run::Run;

const SEEDS: u64 = 240;
/// The number of tests that share the seeds, so that they run in parallel.
const PARTS: u64 = 2;

/// Reads a number from the environment.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// Runs one seed, and returns its trace.
fn trace(seed: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let mut run = Run::new(seed);
        run.start().await;
        run.go_on().await;
        run.finish().await
    })
}

fn run_part(part: u64) {
    let seeds: Vec<u64> = match setting("INFORMER_MODEL_SEED") {
        Some(seed) if part == 0 => vec![seed],
        Some(_) => return,
        None => {
            let first = setting("INFORMER_MODEL_FIRST").unwrap_or(0);
            let seeds = first..first + setting("INFORMER_MODEL_SEEDS").unwrap_or(SEEDS);
            seeds.filter(|seed| seed % PARTS == part).collect()
        }
    };
    let many = seeds.len() as u64 >= SEEDS / PARTS;
    let mut unseen = to_be_seen();
    for seed in seeds {
        let trace = trace(seed);
        unseen.retain(|what| !trace.iter().any(|line| line.contains(what)));
    }
    assert!(!many || unseen.is_empty(), "a test of nothing: {unseen:?} never happened");
}

/// Returns parts of lines that some run must produce: without them, nothing is checked.
fn to_be_seen() -> Vec<String> {
    // The run restores snapshots itself, because the model has to know.
    let faults = Fault::all_names().iter().filter(|name| **name != "rollback");
    let struck = faults.map(|name| format!("{name} struck"));
    let others = [
        "initial=true",
        "known=true",
        "known=false",
        "resynced",
        "silent=true",
        "silent=false",
        "force lists",
        "resuming the watch",
        "polling with lists",
        "listing again",
        "listing without streaming from now on",
        "skipping this object",
        "refuse",
        "deny",
        "a restore is noticed",
        "events were merged",
        "the name of an index is taken",
        "the last=true",
        "the last=false",
        "the store did not take the list",
        "the model's store refuses an event",
        "idle watches were cut",
        "watches fail: Forbidden",
        "watches fail: Broken",
        "watches fail: Failing",
        "watches fail: Unanswered",
        "watches fail: Swallowed",
        "the caches follow by polling",
        "watches work again",
    ];
    let combinations = Combination::all().map(|combination| format!("start with {combination}"));
    struck.chain(combinations).chain(others.map(str::to_owned)).collect()
}

#[test]
fn caches_and_handlers_follow_the_server_0() {
    run_part(0);
}

#[test]
fn caches_and_handlers_follow_the_server_1() {
    run_part(1);
}

#[test]
fn a_seed_repeats_to_the_byte() {
    for seed in [3, 1_000_003] {
        let (first, second) = (trace(seed), trace(seed));
        let differs = first.iter().zip(&second).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let from = at.saturating_sub(10);
            let (one, other) = (first[from..].iter().take(20), second[from..].iter().take(20));
            let (one, other) = (one.collect::<Vec<_>>(), other.collect::<Vec<_>>());
            panic!("seed {seed} does not repeat at line {at}: {one:#?}, {other:#?}");
        }
        assert_eq!(first.len(), second.len());
    }
}
