//! How much memory an informer takes, next to kube-runtime:
//! `cargo bench -p kube-informer --bench informer_memory`.
//!
//! Each case runs in a process of its own, on a list that is made while it is sent. So what is
//! allocated, and what the process has from the kernel, belongs to the side that is measured.
//! `-- --quick` has few pods; `-- relist` runs what has that in its name.

#[allow(dead_code, reason = "shared with the other benchmark")]
mod pods;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod script;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod sides;

use std::hash::Hash;
use std::process::Command;

use kube::Resource;
use peak_alloc::PeakAlloc;
use tokio::runtime::Builder;

use pods::Part;
use script::{How, List, Script};
use sides::{Kept, Ours, Peer};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const PODS: usize = 50_000;
const QUICK_PODS: usize = 2_000;

#[derive(Clone, Copy)]
enum Side {
    Ours(Kept),
    Peer,
    /// With managedFields left out, as its documentation advises.
    PeerUnmanaged,
    PeerMetadata,
}

struct Case {
    name: String,
    side: Side,
    how: How,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for how in How::ALL {
        let sides = [
            ("informer", Side::Ours(Kept::Packed)),
            ("informer, kept plain", Side::Ours(Kept::Plain)),
            ("informer, kept decoded", Side::Ours(Kept::Decoded)),
            ("kube-runtime", Side::Peer),
            ("kube-runtime, no managedFields", Side::PeerUnmanaged),
        ];
        let of_how = |(name, side)| Case { name: format!("{name}, {}", how.name()), side, how };
        cases.extend(sides.map(of_how));
    }
    let metadata = [
        ("informer, metadata", Side::Ours(Kept::Metadata)),
        ("kube-runtime, metadata", Side::PeerMetadata),
    ];
    let how = How::Paged;
    cases.extend(metadata.map(|(name, side)| Case { name: name.to_owned(), side, how }));
    cases
}

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if_eq("--case").is_some() {
        let number = |text: Option<String>| text.expect("a number").parse().expect("a number");
        let (case, pods) = (number(args.next()), number(args.next()));
        return measure(&cases()[case], pods);
    }
    let (flags, wanted): (Vec<_>, Vec<_>) = args.partition(|arg| arg.starts_with('-'));
    let pods = if flags.iter().any(|flag| flag == "--quick") { QUICK_PODS } else { PODS };
    println!("{pods} pods; bytes for each of them, and the greatest over the steady");
    println!(
        "{:<46}{:>10}{:>10}{:>8}{:>10}{:>8}{:>10}{:>8}",
        "what", "steady", "list", "times", "relist", "times", "resident", "times"
    );
    for (number, case) in cases().iter().enumerate() {
        if wanted.is_empty() || wanted.iter().any(|wanted| case.name.contains(wanted.as_str())) {
            let program = std::env::current_exe().expect("our own name");
            let args = ["--case".to_owned(), number.to_string(), pods.to_string()];
            let status = Command::new(program).args(args).status().expect("a process");
            assert!(status.success(), "{}: {status}", case.name);
        }
    }
}

/// Memory in use, and its peak.
#[derive(Clone, Copy)]
struct Memory {
    live: usize,
    peak: usize,
}

impl Memory {
    /// Since the last time.
    fn now() -> Self {
        let memory = Self { live: ALLOCATED.current_usage(), peak: ALLOCATED.peak_usage() };
        ALLOCATED.reset_peak_usage();
        memory
    }
}

/// After the first list, and after a list that shows that nothing has changed.
struct Measured {
    listed: Memory,
    relisted: Memory,
    resident: [usize; 2],
}

fn measure(case: &Case, pods: usize) {
    let part = match case.side {
        Side::Ours(Kept::Metadata) | Side::PeerMetadata => Part::Metadata,
        _ => Part::Whole,
    };
    let script = Script::new(pods, part, case.how, List::Made, script::expired());
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (before, before_resident) = (Memory::now(), resident());
    let measured = runtime.block_on(async {
        match case.side {
            Side::Ours(kept) => ours(&script, case.how, kept, pods).await,
            Side::Peer => peer(&script, Peer::new(&script, case.how)).await,
            Side::PeerUnmanaged => peer(&script, Peer::unmanaged(&script, case.how)).await,
            Side::PeerMetadata => peer(&script, Peer::metadata(&script, case.how)).await,
        }
    });
    let each = |bytes: usize| bytes as f64 / pods as f64;
    let over = |bytes: usize| bytes.saturating_sub(before.live);
    let steady = over(measured.listed.live);
    let times = |bytes: usize| bytes as f64 / steady as f64;
    let (list, relist) = (over(measured.listed.peak), over(measured.relisted.peak));
    let [resident, most] = measured.resident.map(|bytes| bytes.saturating_sub(before_resident[0]));
    println!(
        "{:<46}{:>10.0}{:>10.0}{:>8.2}{:>10.0}{:>8.2}{:>10.0}{:>8.2}",
        case.name,
        each(steady),
        each(list),
        times(list),
        each(relist),
        times(relist),
        each(resident),
        most as f64 / resident as f64,
    );
}

async fn ours(script: &Script, how: How, kept: Kept, pods: usize) -> Measured {
    let mut ours = Ours::new(script, how, kept, 1, "");
    ours.expect_calls(2 * pods as u64);
    ours.sync().await;
    settle().await;
    let (listed, resident) = (Memory::now(), resident());
    script.go();
    ours.ended().await;
    let relisted = Memory::now();
    assert_eq!(ours.pods.lister().len(), pods);
    Measured { listed, relisted, resident }
}

async fn peer<K>(script: &Script, mut peer: Peer<K>) -> Measured
where
    K: Resource + Clone + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    let pods = peer.sync().await;
    let (listed, resident) = (Memory::now(), resident());
    script.go();
    peer.sync().await;
    let relisted = Memory::now();
    assert_eq!(peer.store.len() as u64, pods);
    Measured { listed, relisted, resident }
}

/// Lets tasks end what they have begun.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Resident memory of the process, and its peak.
fn resident() -> [usize; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        kib.unwrap_or(0) * 1024
    })
}
