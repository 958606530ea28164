//! The history of a Lease, and the leaders that it shows.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::api::{Api, WatchEvent, WatchParams};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::candidate::{LEASE_DURATION, RETRY_PERIOD};
use crate::process::PATIENCE;

/// The delay that a busy machine may add to the times that the rules allow.
const SLACK: Duration = Duration::from_secs(5);

/// All states of a Lease, from its creation on.
pub(crate) struct Records {
    states: watch::Receiver<Vec<State>>,
    reader: JoinHandle<()>,
}

/// One state of the record. All processes run on one machine, so the test may compare their clocks.
#[derive(Clone, PartialEq, Debug)]
struct State {
    holder: String,
    transitions: i32,
    seconds: i32,
    acquired: i64,
    renewed: i64,
}

/// A handover, as recorded in the Lease.
#[derive(Debug)]
pub(crate) struct HandOver {
    /// When the first leader released the lease, in microseconds of the wall clock.
    pub(crate) released: Option<i64>,
    /// When the second leader acquired it.
    pub(crate) acquired: i64,
}

impl Records {
    pub(crate) async fn of(client: Client, lease: &str) -> Result<Self> {
        let leases: Api<Lease> = Api::namespaced(client, "default");
        let params = WatchParams::default().fields(&format!("metadata.name={lease}"));
        let mut events = leases.watch(&params, "0").await?.boxed();
        let (writer, states) = watch::channel(Vec::new());
        let reader = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(lease) | WatchEvent::Modified(lease) = event
                    && let Some(state) = lease.spec.and_then(state)
                {
                    writer.send_modify(|states| states.push(state));
                }
            }
        });
        Ok(Self { states, reader })
    }

    /// Waits until the second leader has released the lease, if it always does, and checks everything written until
    /// then.
    pub(crate) async fn judge(mut self, is_released: bool) -> Result<HandOver> {
        let over = |states: &Vec<State>| {
            states.last().is_some_and(|state| state.holder.is_empty() || !is_released)
                && states.iter().any(|state| state.holder == "second")
        };
        let states = timeout(PATIENCE, self.states.wait_for(over)).await;
        let states = states.context("the second leader does not release")??.clone();
        self.reader.abort();
        judge(&states).with_context(|| format!("{states:#?}"))
    }
}

fn state(spec: LeaseSpec) -> Option<State> {
    Some(State {
        holder: spec.holder_identity.unwrap_or_default(),
        transitions: spec.lease_transitions?,
        seconds: spec.lease_duration_seconds?,
        acquired: spec.acquire_time?.0.as_microsecond(),
        renewed: spec.renew_time?.0.as_microsecond(),
    })
}

fn judge(states: &[State]) -> Result<HandOver> {
    let mut holders: Vec<&str> = states.iter().map(|state| &*state.holder).collect();
    holders.dedup();
    if holders.last() == Some(&"") {
        holders.pop();
    }
    let at = states.iter().position(|state| state.holder == "second").context("a second leader")?;
    let (before, second) = (&states[at - 1], &states[at]);
    ensure!(second.transitions == before.transitions + 1, "a takeover counts one transition");
    let of_second = states[at..].iter().filter(|state| state.holder == "second");
    for state in of_second {
        let same = (state.acquired, state.transitions) == (second.acquired, second.transitions);
        ensure!(same, "a renewal keeps the time of acquisition and the count");
    }
    let micros = |time: Duration| time.as_micros() as i64;
    let waited = second.acquired - before.renewed;
    // A candidate checks the lease 1 to 2.2 retry periods after its last check.
    let look = micros(RETRY_PERIOD) * 22 / 10;
    let released = before.holder.is_empty();
    let (least, most) = if released {
        ensure!(holders == ["first", "", "second"], "{holders:?}");
        (0, look)
    } else {
        ensure!(holders == ["first", "second"], "{holders:?}");
        ensure!(
            i64::from(before.seconds) * 1_000_000 == micros(LEASE_DURATION),
            "its own duration"
        );
        // One check until it has seen the last renewal, and one until it notices that the lease has expired.
        (micros(LEASE_DURATION), micros(LEASE_DURATION) + 2 * look)
    };
    let most = most + micros(SLACK);
    ensure!(
        (least..=most).contains(&waited),
        "the hand-over took {waited} µs: not {least} to {most}"
    );
    Ok(HandOver { released: released.then_some(before.renewed), acquired: second.acquired })
}
