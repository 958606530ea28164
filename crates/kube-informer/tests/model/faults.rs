//! Faults from the whole catalogue, chosen at random.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, FaultRule, Verb};

/// The longest time that the server is down.
pub(crate) const DOWN_MAX: Duration = Duration::from_secs(100);

/// The kinds of fault that a run may inject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mood {
    /// Responses arrive late, or in small pieces.
    pub(crate) slow: bool,
    /// Events are silently lost.
    pub(crate) lossy: bool,
    /// Objects are corrupted in transit.
    pub(crate) damaged: bool,
}

/// The requests that faults apply to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pub(crate) resources: [&'static str; 3],
    /// Also writes, not only lists and watches.
    pub(crate) any_verb: bool,
    /// Lists may be answered by a server that lags.
    pub(crate) stale_lists: bool,
}

/// Adds a rule for lists and watches, and describes it.
pub(crate) fn inject(rng: &mut fastrand::Rng, server: &ApiServer, mood: Mood, aim: Aim) -> String {
    let verb = [Verb::List, Verb::Watch, Verb::Watch][rng.usize(..3)];
    let any_verb = rng.u8(..6) == 0 && aim.any_verb;
    let mut rule = if any_verb { server.faults().any() } else { server.faults().on(verb) };
    let mut text = format!("{verb}");
    if rng.bool() {
        let resource = aim.resources[rng.usize(..3)];
        rule = rule.resource(resource);
        text = format!("{text} of {resource}");
    }
    match rng.u8(..4) {
        0 => {
            let nth = rng.u64(1..4);
            rule = rule.nth(nth);
            text = format!("{text} nth {nth}");
        }
        1 => rule = rule.probability(0.5),
        _ => {}
    }
    (rule, text) = point(rng, rule, text);
    let times = [1, 1, 1, 2, 4, 7][rng.usize(..6)];
    let fault = match any(rng, mood) {
        Fault::StaleList { .. } if !aim.stale_lists => Fault::Compact,
        fault => fault,
    };
    let text = format!("{} on {text}, {times} times", fault.name());
    rule.times(times).inject(fault);
    text
}

fn point<'a>(
    rng: &mut fastrand::Rng,
    rule: FaultRule<'a>,
    text: String,
) -> (FaultRule<'a>, String) {
    match rng.u8(..4) {
        0 | 1 => {
            let events = [0, 0, 1, 2, 5][rng.usize(..5)];
            (rule.after_events(events), format!("{text} after {events} events"))
        }
        2 => {
            let bytes = rng.u64(1..3000);
            (rule.after_bytes(bytes), format!("{text} after {bytes} bytes"))
        }
        _ => (rule, text),
    }
}

fn any(rng: &mut fastrand::Rng, mood: Mood) -> Fault {
    if mood.damaged && rng.u8(..3) == 0 {
        return damage(rng);
    }
    if mood.slow && rng.u8(..6) == 0 {
        return delay(rng);
    }
    if mood.lossy && rng.u8(..6) == 0 {
        return [Fault::DropEvent, Fault::ReorderEvents][rng.usize(..2)].clone();
    }
    match rng.u8(..27) {
        0 => Fault::Refused,
        1 => Fault::Down(DOWN_MAX.mul_f64(rng.f64())),
        2 | 3 => Fault::Reset,
        4 => Fault::LostAnswer,
        5 | 6 => Fault::HalfOpen,
        7 => Fault::StalledHeaders,
        8 => Fault::StalledBody,
        9 => Fault::status([401, 403, 404, 500, 503][rng.usize(..5)]),
        10 => Fault::status([400, 422, 504, 409][rng.usize(..4)]),
        11 => Fault::status_retry_after(429, ["1", "20", "soon", "-3"][rng.usize(..4)]),
        12..15 => Fault::Gone,
        15 => Fault::html([200, 502][rng.usize(..2)]),
        16 => Fault::content_type("text/html"),
        17 => Fault::StaleList { versions: rng.u64(1..20) },
        18 => Fault::Compact,
        19 => Fault::DropWatches,
        20 => Fault::Restart,
        21 | 22 => Fault::DuplicateEvent,
        23 => Fault::BookmarkLost,
        24 => Fault::EndBookmarkMissing,
        25 => Fault::SplitUtf8,
        _ => Fault::Truncated,
    }
}

fn delay(rng: &mut fastrand::Rng) -> Fault {
    let late = Duration::from_millis(rng.u64(1..40_000));
    // At least a kilobyte a second, so that a few dozen events arrive within half a minute.
    let (bytes, every) = (rng.usize(100..500), Duration::from_millis(rng.u64(10..100)));
    if rng.bool() { Fault::Latency(late) } else { Fault::SlowBytes { bytes, every } }
}

fn damage(rng: &mut fastrand::Rng) -> Fault {
    match rng.u8(..4) {
        0 => Fault::WrongType,
        1 => Fault::Oversized { bytes: 50_000 },
        2 => Fault::TooDeep { levels: 2_000 },
        _ => Fault::MalformedUtf8,
    }
}

/// Injects several faults together: everything has to be relisted, and that fails, too.
pub(crate) fn scenario(rng: &mut fastrand::Rng, server: &ApiServer) -> String {
    let faults = server.faults();
    let relist = || faults.on(Verb::Watch).after_events(0).times(3).inject(Fault::Gone);
    let lists = |fault| faults.on(Verb::List).times(3).inject(fault);
    let text = match rng.u8(..7) {
        0 => {
            drop(faults.control_plane_upgrade());
            "a control plane upgrade"
        }
        1 => {
            drop(faults.flaky_network(0.2));
            "a flaky network"
        }
        2 | 3 => {
            relist();
            lists(Fault::StaleList { versions: rng.u64(1..8) });
            "relists from servers that lag"
        }
        4 => {
            relist();
            faults.on(Verb::List).after_bytes(rng.u64(100..2000)).times(3).inject(Fault::Reset);
            "relists that break"
        }
        5 => {
            relist();
            faults.on(Verb::List).nth(2).times(2).inject(Fault::Compact);
            "relists whose pages expire"
        }
        _ => {
            relist();
            faults.on(Verb::Watch).nth(1).times(2).inject(Fault::EndBookmarkMissing);
            "relists without an end"
        }
    };
    text.to_owned()
}
