//! The task that writes events.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube_core::Status;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::correlator::{Correlator, Verdict, Write};
use super::occurrence::{Occurrence, Source};
use crate::wire::{Client, Endpoint, Patch, Target};
use crate::{Error, Result};

/// Number of attempts for an event, and the pauses between them, with up to a quarter more so that the programs
/// of a cluster do not all return at the same moment: client-go's `maxTriesPerEvent` and
/// `defaultSleepDuration`.
pub(super) const TRIES_MAX: u32 = 12;
pub(super) const PAUSE: Duration = Duration::from_secs(10);
const JITTER: f64 = 0.25;

/// Maximum age of an event that is retried: the total duration of client-go's attempts. Events from before a
/// longer outage matter little after it, and should not delay newer ones.
pub(super) const AGE_MAX: Duration = Duration::from_secs(120);

/// Time limit of one request. Events are written one after the other.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) enum Command {
    Event(Box<Occurrence>),
    /// A request to write everything queued before it, and to report when that is done.
    Flush(oneshot::Sender<()>),
}

/// Numbers of events by outcome.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) counted: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
}

pub(super) fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) source: Source,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) counts: Arc<Counts>,
    pub(super) correlator: Correlator,
    pub(super) trouble: Trouble,
}

/// The last logged problem with the server.
#[derive(Default)]
pub(super) struct Trouble {
    /// When to try again, after an attempt that may succeed later; `None` after a success.
    pause_until: Option<Instant>,
    /// The codes with which the server has rejected events.
    refusals: BTreeSet<u16>,
}

impl Writer {
    /// Writes until the last handle has been dropped, and then what remains.
    pub(super) async fn run(&mut self) {
        loop {
            let due = self.correlator.next_due();
            let command = tokio::select! {
                biased;
                () = reached(due) => {
                    let now = Instant::now();
                    let writes = self.correlator.due(now);
                    self.write_all(&writes, now).await;
                    continue;
                }
                command = self.commands.recv() => command,
            };
            match command {
                Some(Command::Event(new)) => self.observe(&new).await,
                Some(Command::Flush(done)) => {
                    self.flush().await;
                    let _ = done.send(());
                }
                None => return self.flush().await,
            }
        }
    }

    /// Counts the events that remain in the queue.
    pub(super) fn abandon(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if matches!(command, Command::Event(_)) {
                add_one(&self.counts.dropped);
            }
        }
    }

    async fn observe(&mut self, new: &Occurrence) {
        let (verdict, forgotten) = self.correlator.observe(new, &self.source);
        if let Some(series) = forgotten {
            self.write(&series, new.at).await;
        }
        match verdict {
            Verdict::Write(write) => self.write(&write, new.at).await,
            Verdict::Counted => add_one(&self.counts.counted),
            Verdict::Limited => add_one(&self.counts.limited),
        }
    }

    async fn flush(&mut self) {
        let now = Instant::now();
        let writes = self.correlator.unwritten(now);
        self.write_all(&writes, now).await;
    }

    async fn write_all(&mut self, writes: &[Write], since: Instant) {
        for write in writes {
            self.write(write, since).await;
        }
    }

    /// Writes an event, with retries. All events wait while the server is unavailable or throttles requests.
    async fn write(&mut self, write: &Write, since: Instant) {
        let deadline = since + AGE_MAX;
        for _ in 0..TRIES_MAX {
            match self.trouble.pause_until {
                Some(end) if end > deadline => break,
                Some(end) => sleep_until(end).await,
                None => {}
            }
            let Err(error) = self.attempt(write).await else {
                self.trouble.over();
                return add_one(&self.counts.written);
            };
            if !may_pass(&error) {
                self.trouble.refused(&error);
                break;
            }
            self.trouble.pause(&error);
        }
        add_one(&self.counts.failed);
    }

    async fn attempt(&self, write: &Write) -> Result<()> {
        let event = write.event();
        let text = |field: &str| event["metadata"][field].as_str().unwrap_or_default();
        let target = Target {
            group: "events.k8s.io".to_owned(),
            version: "v1".to_owned(),
            plural: "events".to_owned(),
            namespace: Some(text("namespace").to_owned()),
            ..Target::default()
        };
        let endpoint = Endpoint::new(self.client.clone(), target).wait_max(ANSWER_WAIT_MAX);
        if let Write::Series(_) = write {
            let patch = Patch::Merge(json!({"series": event["series"]}));
            match endpoint.patch(text("name"), &patch).await {
                // The event has expired, or could not be created: it is created with the series.
                Err(error) if error.is_not_found() => {}
                result => return done(result.map(drop)),
            }
        }
        match endpoint.create(event).await {
            // An earlier attempt has created it, but its response was lost.
            Err(error) if error.is_already_exists() => Ok(()),
            result => done(result.map(drop)),
        }
    }
}

/// Treats a response that cannot be read as a success.
fn done(result: Result<()>) -> Result<()> {
    result.or_else(|error| if error.is_unreadable() { Ok(()) } else { Err(error) })
}

/// Returns whether the same request may succeed later.
fn may_pass(error: &Error) -> bool {
    let lasting = |status: &Status| !matches!(status.code, 401 | 429 | 500..);
    !error.is_invalid() && !error.status().is_some_and(lasting)
}

impl Trouble {
    fn over(&mut self) {
        if self.pause_until.take().is_some() {
            tracing::info!("events are written again");
        }
    }

    fn pause(&mut self, error: &Error) {
        let jitter = PAUSE.mul_f64(JITTER * fastrand::f64());
        let pause = (PAUSE + jitter).max(error.retry_after().unwrap_or_default());
        if self.pause_until.replace(Instant::now() + pause).is_none() {
            let minutes = AGE_MAX.as_secs() / 60;
            tracing::warn!("events are delayed, and will be lost after {minutes} minutes: {error}");
        }
    }

    fn refused(&mut self, error: &Error) {
        let code = error.status().map_or(0, |status| status.code);
        if self.refusals.insert(code) {
            tracing::warn!("an event was lost, and others may be for the same reason: {error}");
        }
    }
}

async fn reached(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
