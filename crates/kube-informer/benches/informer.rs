//! How fast an informer is, next to kube-runtime: `cargo bench -p kube-informer --bench informer`.
//!
//! Both get the same bytes from the same service, in turns. Every number is the median of several
//! runs, with the least and the greatest behind it. What runs on one core is measured by the time
//! that its thread was on it. `-- --quick` takes under a minute, with a
//! tenth of the pods and one run; `-- latency` runs what has that in its name; with `-- --alone` there
//! is nothing else in a profile. How much memory it
//! takes is measured by `--bench informer_memory`: counting would slow this down.

#[allow(dead_code, reason = "shared with the other benchmark")]
mod pods;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod script;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod sides;

use std::hint::black_box;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::ObjectRef;
use kube_informer::{FieldPath, Object};
use tokio::runtime::{Builder, Runtime, RuntimeFlavor};

use pods::Part;
use script::{How, List, Script};
use sides::{Kept, Ours, Peer};

#[derive(Clone, Copy)]
struct Size {
    /// In lists.
    pods: usize,
    /// In caches that are written and read.
    cached: usize,
    events: usize,
    runs: usize,
    /// Without it only the informer runs, for a profile of it.
    peer: bool,
}

const FULL: Size = Size { pods: 50_000, cached: 10_000, events: 30_000, runs: 5, peer: true };
const QUICK: Size = Size { pods: 5_000, cached: 1_000, events: 5_000, runs: 1, peer: true };

fn main() {
    let (flags, wanted): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let said = |wanted: &str| flags.iter().any(|flag| flag == wanted);
    let size = Size { peer: !said("--alone"), ..if said("--quick") { QUICK } else { FULL } };
    let run = |name: &str, bench: fn(Size)| {
        if wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            bench(size);
        }
    };
    let mut pod = String::new();
    pods::item(&mut pod, 0, 1, Part::Whole);
    println!("a pod is {} bytes of JSON, {} runs", pod.len(), size.runs);
    row("what", "informer", "kube-runtime", "times");
    run("object", object);
    run("events", events);
    run("handlers", handlers);
    run("list", list);
    run("relist", relist);
    run("latency", latency);
}

fn row(what: &str, ours: &str, theirs: &str, ratio: &str) {
    println!("{what:<52}{ours:>28}{theirs:>28}{ratio:>8}");
}

/// A measured thing of both, in a unit of which more is better or (times) less.
fn compare(what: &str, unit: &str, ours: &[f64], theirs: &[f64]) {
    if ours.is_empty() {
        return;
    }
    if theirs.is_empty() {
        return row(what, &spread(ours, unit), "", "");
    }
    let (ours_mid, theirs_mid) = (median(ours), median(theirs));
    let ratio = (ours_mid / theirs_mid).max(theirs_mid / ours_mid);
    let wins = (ours_mid > theirs_mid) == unit.ends_with("/s");
    let ratio = if wins { format!("{ratio:.1}") } else { format!("1/{ratio:.1}") };
    row(what, &spread(ours, unit), &spread(theirs, unit), &ratio);
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn spread(values: &[f64], unit: &str) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let show = |value: f64| match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    let mid = show(median(values));
    if values.len() == 1 {
        return format!("{mid} {unit}");
    }
    format!("{mid} {unit} ({}..{})", show(least), show(greatest))
}

/// One core for everything: what is compared is work, not threads.
fn one_core() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn two_cores() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// How long this thread has been on a core. On an idle machine that is the time, without waits; on
/// one that others use too it is still the work.
fn worked() -> Duration {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).expect("Linux, with schedstat");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// Begun now: of the thread's work if that is all there is, of time where there are more threads.
enum Clock {
    Work(Duration),
    Time(Instant),
}

impl Clock {
    fn work() -> Self {
        Self::Work(worked())
    }

    fn of(runtime: &Runtime) -> Self {
        match runtime.handle().runtime_flavor() {
            RuntimeFlavor::CurrentThread => Self::work(),
            _ => Self::Time(Instant::now()),
        }
    }

    fn seconds(&self) -> f64 {
        match self {
            Self::Work(began) => worked().saturating_sub(*began).as_secs_f64(),
            Self::Time(began) => began.elapsed().as_secs_f64(),
        }
    }
}

fn live(size: Size, count: usize) -> (Script, String) {
    let list = script::ready_list(size.cached, Part::Whole, How::Paged);
    let events = script::events(size.cached, count);
    let script = Script::new(size.cached, Part::Whole, How::Paged, list, events);
    (script, script::last_version(size.cached, count))
}

/// From the bytes of a watch to one handler.
fn events(size: Size) {
    let (script, last) = live(size, size.events);
    let kinds =
        [("", Kept::Packed), (", kept plain", Kept::Plain), (", kept decoded", Kept::Decoded)];
    let kinds = if size.peer { &kinds[..] } else { &kinds[..1] };
    for (cores, runtime) in [("one core", one_core as fn() -> Runtime), ("two cores", two_cores)] {
        let (mut ours, mut theirs) = (vec![Vec::new(); kinds.len()], Vec::new());
        for _ in 0..size.runs {
            for (rates, (_, kept)) in ours.iter_mut().zip(kinds) {
                rates.push(our_events(&script, &runtime(), *kept, 1, &last, size));
            }
            theirs.extend(size.peer.then(|| their_events(&script, &runtime(), &last)));
        }
        for (rates, (kept, _)) in ours.iter().zip(kinds) {
            compare(&format!("events, {cores}{kept}"), "/s", rates, &theirs);
        }
    }
}

fn our_events(
    script: &Script,
    runtime: &Runtime,
    kept: Kept,
    handlers: usize,
    last: &str,
    size: Size,
) -> f64 {
    script.rewind();
    let (seconds, merged) = runtime.block_on(async {
        let mut ours = Ours::new(script, How::Paged, kept, handlers, last);
        ours.sync().await;
        let clock = Clock::of(runtime);
        script.go();
        ours.ended().await;
        let seconds = clock.seconds();
        let merged = ours.merged();
        assert_eq!(ours.calls() + merged, (handlers * (size.cached + size.events)) as u64);
        ours.factory.shutdown().await;
        (seconds, merged)
    });
    if merged > 0 {
        let part = 100.0 * merged as f64 / (handlers * size.events) as f64;
        eprintln!("({handlers} handlers: {part:.1} % of the events were merged)");
    }
    size.events as f64 / seconds
}

fn their_events(script: &Script, runtime: &Runtime, last: &str) -> f64 {
    script.rewind();
    runtime.block_on(async {
        let mut peer = Peer::new(script, How::Paged);
        peer.sync().await;
        let clock = Clock::of(runtime);
        script.go();
        let events = peer.until(last).await;
        events as f64 / clock.seconds()
    })
}

/// The cost of each additional handler.
fn handlers(size: Size) {
    let (script, last) = live(size, size.events);
    let mut times = Vec::new();
    for handlers in [1, 10, 100] {
        let runs = (0..size.runs)
            .map(|_| our_events(&script, &one_core(), Kept::Packed, handlers, &last, size));
        let rates: Vec<f64> = runs.collect();
        row(&format!("events, one core, {handlers} handlers"), &spread(&rates, "/s"), "", "");
        times.push(1e9 / median(&rates));
    }
    let further = format!("{:.0} ns", (times[2] - times[0]) / 99.0);
    row("each further handler, for each event", &further, "", "");
}

/// The first list, from its bytes until the handler has seen everything.
fn list(size: Size) {
    for how in How::ALL {
        let ready = script::ready_list(size.pods, Part::Whole, how);
        let script = Script::new(size.pods, Part::Whole, how, ready, Vec::new());
        let (mut ours, mut decoded, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..size.runs {
            ours.push(our_list(&script, how, Kept::Packed));
            decoded.extend(size.peer.then(|| our_list(&script, how, Kept::Decoded)));
            theirs.extend(size.peer.then(|| their_list(|| Peer::new(&script, how))));
        }
        let what = format!("list {} pods, {}", size.pods, how.name());
        compare(&what, "s", &ours, &theirs);
        compare(&format!("{what}, kept decoded"), "s", &decoded, &theirs);
    }
    let ready = script::ready_list(size.pods, Part::Metadata, How::Paged);
    let script = Script::new(size.pods, Part::Metadata, How::Paged, ready, Vec::new());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..size.runs {
        ours.push(our_list(&script, How::Paged, Kept::Metadata));
        theirs.extend(size.peer.then(|| their_list(|| Peer::metadata(&script, How::Paged))));
    }
    compare(&format!("list {} pods, metadata alone", size.pods), "s", &ours, &theirs);
}

fn our_list(script: &Script, how: How, kept: Kept) -> f64 {
    script.rewind();
    one_core().block_on(async {
        let clock = Clock::work();
        let ours = Ours::new(script, how, kept, 1, "");
        ours.sync().await;
        let seconds = clock.seconds();
        ours.factory.shutdown().await;
        seconds
    })
}

fn their_list<K>(peer: impl FnOnce() -> Peer<K>) -> f64
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    one_core().block_on(async {
        let clock = Clock::work();
        let mut peer = peer();
        peer.sync().await;
        clock.seconds()
    })
}

/// The watch says that its history is gone, and the list shows that nothing has changed.
fn relist(size: Size) {
    for how in [How::Streamed, How::Paged] {
        let ready = script::ready_list(size.pods, Part::Whole, how);
        let script = Script::new(size.pods, Part::Whole, how, ready, script::expired());
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..size.runs {
            ours.push(our_relist(&script, how, size));
            theirs.extend(size.peer.then(|| their_relist(&script, how)));
        }
        compare(
            &format!("relist {} unchanged pods, {}", size.pods, how.name()),
            "s",
            &ours,
            &theirs,
        );
    }
}

fn our_relist(script: &Script, how: How, size: Size) -> f64 {
    script.rewind();
    one_core().block_on(async {
        let mut ours = Ours::new(script, how, Kept::Packed, 1, "");
        ours.expect_calls(2 * size.pods as u64);
        ours.sync().await;
        let clock = Clock::work();
        script.go();
        ours.ended().await;
        let seconds = clock.seconds();
        ours.factory.shutdown().await;
        seconds
    })
}

fn their_relist(script: &Script, how: How) -> f64 {
    script.rewind();
    one_core().block_on(async {
        let mut peer = Peer::new(script, how);
        peer.sync().await;
        let clock = Clock::work();
        script.go();
        peer.sync().await;
        clock.seconds()
    })
}

/// How long a reader waits while another thread writes as fast as it can.
fn latency(size: Size) {
    let (script, last) = live(size, size.events);
    let mut found = [const { Vec::new() }; 2];
    for _ in 0..size.runs {
        found[0].push(our_latency(&script, &last, size));
        found[1].extend(size.peer.then(|| their_latency(&script, &last, size)));
    }
    let whats = ["get", "list all", "those of a node"];
    for (n, what) in whats.into_iter().enumerate() {
        for (name, of) in [("p50", 0.5), ("p99", 0.99)] {
            let pick = |side: &[Latencies]| -> Vec<f64> {
                side.iter().map(|latencies| quantile(&latencies.reads[n], of)).collect()
            };
            let what = format!("{what} of {} while written, {name}", size.cached);
            compare(&what, "µs", &pick(&found[0]), &pick(&found[1]));
        }
    }
    let rates =
        |side: &[Latencies]| side.iter().map(|latencies| latencies.rate).collect::<Vec<_>>();
    compare("events meanwhile", "/s", &rates(&found[0]), &rates(&found[1]));
}

struct Latencies {
    reads: [Vec<Duration>; 3],
    rate: f64,
}

fn quantile(times: &[Duration], of: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[((times.len() - 1) as f64 * of) as usize].as_secs_f64() * 1e6
}

fn writer() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn our_latency(script: &Script, last: &str, size: Size) -> Latencies {
    script.rewind();
    let runtime = writer();
    let _inside = runtime.enter();
    let mut ours = Ours::new(script, How::Paged, Kept::Packed, 1, last);
    let by_node = ours.pods.index_by_field("spec.nodeName").unwrap();
    runtime.block_on(ours.sync());
    let (go, lister) = (script.clone(), ours.pods.lister());
    let writing = runtime.spawn(async move {
        let began = Instant::now();
        go.go();
        ours.ended().await;
        began.elapsed().as_secs_f64()
    });
    let mut random = fastrand::Rng::with_seed(1);
    let mut reads = [const { Vec::new() }; 3];
    while !writing.is_finished() {
        let pod = random.usize(..size.cached);
        let key = format!("{}/{}", pods::namespace(pod), pods::name(pod));
        let node = pods::node(pod);
        reads[0].push(timed(|| lister.get(&*key)));
        reads[1].push(timed(|| lister.list()));
        reads[2].push(timed(|| by_node.get(&node)));
    }
    let seconds = runtime.block_on(writing).expect("the writer ends");
    Latencies { reads, rate: size.events as f64 / seconds }
}

fn their_latency(script: &Script, last: &str, size: Size) -> Latencies {
    script.rewind();
    let runtime = writer();
    let _inside = runtime.enter();
    let mut peer = Peer::new(script, How::Paged);
    let store = peer.store.clone();
    runtime.block_on(peer.sync());
    let (go, last) = (script.clone(), last.to_owned());
    let writing = runtime.spawn(async move {
        let began = Instant::now();
        go.go();
        peer.until(&last).await;
        began.elapsed().as_secs_f64()
    });
    let mut random = fastrand::Rng::with_seed(1);
    let mut reads = [const { Vec::new() }; 3];
    while !writing.is_finished() {
        let pod = random.usize(..size.cached);
        let key = ObjectRef::<Pod>::new(&pods::name(pod)).within(&pods::namespace(pod));
        let node = pods::node(pod);
        let on_node = |pod: &Pod| {
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(&*node))
        };
        reads[0].push(timed(|| store.get(&key)));
        reads[1].push(timed(|| store.state()));
        reads[2].push(timed(|| store.state_filter(on_node)));
    }
    let seconds = runtime.block_on(writing).expect("the writer ends");
    Latencies { reads, rate: size.events as f64 / seconds }
}

fn timed<T>(read: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    drop(black_box(read()));
    began.elapsed()
}

/// One object at a time.
fn object(size: Size) {
    let texts: Vec<String> = (0..1_000)
        .map(|pod| {
            let mut text = String::new();
            pods::item(&mut text, pod, 1, Part::Whole);
            text
        })
        .collect();
    let script = Script::new(1_000, Part::Whole, How::Paged, List::Made, Vec::new());
    let objects = one_core().block_on(async {
        let ours = Ours::new(&script, How::Paged, Kept::Packed, 1, "");
        ours.sync().await;
        ours.pods.lister().list().into_vec()
    });
    // The kernel counts in ticks of some milliseconds.
    let each = |work: &dyn Fn(usize)| -> Vec<f64> {
        let sample = |_| {
            let (clock, mut passes) = (Clock::work(), 0.0);
            while clock.seconds() < 0.1 {
                (0..objects.len()).for_each(work);
                passes += 1.0;
            }
            clock.seconds() * 1e6 / (passes * objects.len() as f64)
        };
        (0..size.runs).map(sample).collect()
    };
    let typed = each(&|at| drop(black_box(serde_json::from_str::<Pod>(&texts[at]))));
    let packed = each(&|at| drop(black_box(Object::<Pod>::from_json(&texts[at]))));
    compare("pack a pod / decode it with managedFields", "µs", &packed, &typed);
    let decoded = each(&|at| drop(black_box(objects[at].decode_as::<Pod>())));
    row("decode a packed pod", &spread(&decoded, "µs"), "", "");
    for path in ["metadata.name", "spec.nodeName", "status.phase", "spec.containers[*].image"] {
        let path = FieldPath::parse(path).expect("a path");
        let found = each(&|at| {
            drop(black_box(objects[at].field::<serde_json::Value>(&path).expect("a field")));
        });
        row(&format!("field {path}"), &spread(&found, "µs"), "", "");
    }
}
