//! A whole controller, compared with a model that is too simple to be wrong.
//!
//! A run takes a seed, and from it makes a controller that keeps children (Secrets, under names that the
//! server chooses) in line with parents (`ConfigMaps`), and something outside of the cluster with the help
//! of a finalizer. While clients change parents and meddle with children, lists, watches and writes fail in
//! every way, reconciles fail, panic and take too long, leases cannot be renewed, and controllers and the
//! processes that they are part of are stopped, cancelled and restarted. At every step:
//!
//! - an instance never reconciles a key twice at once, and of several that elect a leader only one
//!   reconciles;
//! - nothing but the reconciler panics;
//! - in runs without lost answers, lagging servers, restores and second replicas (the strict ones), a child
//!   never exists twice, not even for a moment, because reconciles say what they
//!   [wrote](kube_informer::Request::wrote), and whatever is made outside belongs to an object that its
//!   finalizer holds.
//!
//! And at quiet points, when nothing goes wrong any more: in bounded time the children are exactly those that
//! the parents ask for, the world outside is what the finalizers promise, and the controller rests: its queue
//! is empty but for what was requeued, and it writes nothing more.
//!
//! `CONTROLLER_MODEL_SEED=7` runs one seed and prints what happened if it fails; a failure names its seed.
//! `CONTROLLER_MODEL_SEEDS=20000` runs that many.

mod checks;
#[allow(dead_code, reason = "only faults that do no lasting harm are chosen here")]
#[path = "../model/faults.rs"]
mod faults;
mod keeper;
#[path = "../model/network.rs"]
#[allow(dead_code, reason = "shared with the model of informers")]
mod network;
mod panics;
mod parents;
mod replica;
mod run;
mod settings;
mod trouble;
mod world;

use run::Run;
use settings::Settings;

const SEEDS: u64 = 200;
/// Number of tests that share the seeds, so that they run in parallel.
const PARTS: u64 = 2;

/// Reads a number from the environment.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// Runs one seed and returns its log.
fn trace(seed: u64, settings: Settings) -> Vec<String> {
    panics::watch();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let mut run = Run::new(seed, settings);
        run.go_on().await;
        run.finish().await
    })
}

fn run_part(part: u64) {
    let seeds: Vec<u64> = match setting("CONTROLLER_MODEL_SEED") {
        Some(seed) if part == 0 => vec![seed],
        Some(_) => return,
        None => {
            let first = setting("CONTROLLER_MODEL_FIRST").unwrap_or(0);
            let seeds = first..first + setting("CONTROLLER_MODEL_SEEDS").unwrap_or(SEEDS);
            seeds.filter(|seed| seed % PARTS == part).collect()
        }
    };
    let many = seeds.len() as u64 >= SEEDS / PARTS;
    let mut unseen = TO_BE_SEEN.to_vec();
    for seed in seeds {
        let trace = trace(seed, Settings::of(seed));
        unseen.retain(|what| !trace.iter().any(|line| line.contains(what)));
    }
    assert!(!many || unseen.is_empty(), "a test of nothing: {unseen:?} never happened");
}

/// Parts of lines that must occur in the runs of some seeds: otherwise nothing is tested.
const TO_BE_SEEN: [&str; 43] = [
    "refused struck",
    "down struck",
    "reset struck",
    "lost-answer struck",
    "half-open struck",
    "stalled-headers struck",
    "latency struck",
    "status struck",
    "gone struck",
    "compact struck",
    " drop watches",
    " restart",
    "duplicate-event struck",
    "truncated struck",
    "end-bookmark-missing struck",
    "create parent",
    "change parent",
    "delete parent",
    "meddle: delete",
    "meddle: change",
    "meddle: orphan",
    "idle watches are cut",
    "leases fail",
    "leadership was lost",
    "restore",
    "is cancelled",
    "is stopped",
    "whose informers stop",
    "on the same caches",
    "in a new process",
    "creates",
    "updates",
    "adopts",
    "deletes",
    "sees a second copy",
    "outside: made",
    "outside: removed",
    "fails on purpose",
    "panics on purpose",
    "takes its time",
    "waited for a cache",
    "went on with a cache that was behind",
    "a reconcile took too long",
];

#[test]
fn children_follow_their_parents_0() {
    run_part(0);
}

#[test]
fn children_follow_their_parents_1() {
    run_part(1);
}

/// A test of the model itself: it detects what `wrote` prevents.
#[test]
fn without_wrote_a_child_is_made_twice() {
    let is_found = (0..SEEDS).filter(|&seed| Settings::of(seed).strict).any(|seed| {
        let settings = Settings { careful: false, ..Settings::of(seed) };
        trace(seed, settings).iter().any(|line| line.contains("a second copy of"))
    });
    assert!(is_found, "no seed made a child twice");
}

#[test]
fn a_seed_repeats_to_the_byte() {
    for seed in [3, 1_000_004] {
        let [first, second] = [(); 2].map(|()| trace(seed, Settings::of(seed)));
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
