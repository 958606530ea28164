//! The benchmarks. All programs take turns, in several rounds.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::Program;
use super::programs::{FLOORS, Form, OURS, OURS_SNAPSHOT, OURS_WARM, PLAIN, Start, fetch};
use super::server::Server;
use super::table::{Table, Unit, number};
use crate::real_kubernetes::{root, say};

/// The sizes of the measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) rounds: usize,
    /// Pods in caches that are written to and read.
    pub(super) cached: usize,
    /// The number of events sent at once.
    pub(super) events: usize,
    /// The number of events sent at a steady rate.
    pub(super) paced: usize,
    pub(super) rate: usize,
}

/// Time for runtimes and allocators to return the memory that a sync needed.
const SETTLE: Duration = Duration::from_secs(1);

/// The number of workers of a controller.
const WORKERS: usize = 4;

/// How long an idle informer is observed.
const IDLE: Duration = Duration::from_secs(20);

pub(super) struct Measures<'a> {
    pub(super) server: &'a mut Server,
    pub(super) forms: Vec<Form>,
    pub(super) size: Size,
    pub(super) day: String,
}

impl Measures<'_> {
    /// Returns the informers that can read from this server.
    fn forms(&self, pick: impl Fn(&Form) -> bool) -> Vec<Form> {
        self.all_forms(|form| !form.reconciles && pick(form))
    }

    fn all_forms(&self, pick: impl Fn(&Form) -> bool) -> Vec<Form> {
        let fits = |form: &&Form| form.on.fits(self.server.real);
        self.forms.iter().filter(fits).filter(|form| pick(form)).copied().collect()
    }

    fn table(&self, name: &str, title: &str, metrics: &[(&str, Unit)]) -> Table {
        let id = format!("{}-{name}", self.server.name());
        let server = if self.server.real { "the real server" } else { "the embedded server" };
        say(&format!("{title}, on {server}"));
        Table::new(&id, &format!("{title}, on {server}"), &self.day, metrics)
    }

    /// Measures the time from the start of a process until its handler has seen all pods.
    pub(super) fn sync(&mut self, pods: usize, rounds: usize) -> Result<Table, String> {
        self.server.fill(pods)?;
        let metrics = [
            ("wall", Unit::Seconds),
            ("CPU", Unit::Seconds),
            ("RSS", Unit::Bytes),
            ("RSS peak", Unit::Bytes),
        ];
        let title = format!("Sync of {} pods", thousands(pods));
        let mut table = self.table(&format!("sync-{pods}"), &title, &metrics);
        for _ in 0..rounds {
            for form in self.forms(|_| true) {
                let (mut client, synced) = self.start(&form, PLAIN)?;
                sleep(SETTLE);
                let after = client.ask("usage")?;
                let values =
                    [number(&synced, "wall")?, number(&synced, "cpu")?, number(&after, "rss")?];
                let peak = number(&after, "peak")?;
                table.add(form.label, &[values[0], values[1], values[2], peak]);
            }
        }
        Ok(table)
    }

    /// Measures a download of the list in protobuf, without using it, beside a sync of ours.
    pub(super) fn fetch(&mut self, pods: usize, rounds: usize) -> Result<Table, String> {
        self.server.fill(pods)?;
        let title = format!("The list of {} pods, got and discarded", thousands(pods));
        let metrics = [("wall", Unit::Seconds), ("CPU", Unit::Seconds)];
        let mut table = self.table(&format!("fetch-{pods}"), &title, &metrics);
        let ours = self.forms(|form| form.label == OURS);
        let floors = FLOORS.iter().filter(|(_, told)| *told != "curl" || has_curl());
        let floors: Vec<_> = floors.collect();
        for _ in 0..rounds {
            for form in &ours {
                let (_, synced) = self.start(form, PLAIN)?;
                table.add(form.label, &[number(&synced, "wall")?, number(&synced, "cpu")?]);
            }
            for (label, told) in &floors {
                let fetched = fetch(label, told, self.server.kubeconfig())?.answer()?;
                if number(&fetched, "bytes")? < pods as f64 {
                    return Err(format!("{label} has got no list of {pods} pods: {fetched}"));
                }
                table.add(label, &[number(&fetched, "wall")?, number(&fetched, "cpu")?]);
            }
        }
        Ok(table)
    }

    /// Measures a start from a snapshot instead of a list.
    pub(super) fn warm(&mut self, pods: usize, rounds: usize) -> Result<Table, String> {
        self.server.fill(pods)?;
        let title = format!("Warm start with {} pods", thousands(pods));
        let metrics = [("wall", Unit::Seconds), ("CPU", Unit::Seconds), ("RSS", Unit::Bytes)];
        let mut table = self.table(&format!("warm-{pods}"), &title, &metrics);
        let file = root().join("target/bench/pods.snapshot");
        // The file of an earlier server would be rejected, and the pods listed.
        let _ = fs::remove_file(&file);
        let start = Start { snapshot: Some(&file), ..PLAIN };
        self.start(&OURS_SNAPSHOT, start)?;
        let ours = self.forms(|form| form.label == OURS);
        for _ in 0..rounds {
            for form in ours.iter().chain([&OURS_WARM]) {
                let (mut client, synced) = self.start(form, start)?;
                sleep(SETTLE);
                let resident = number(&client.ask("usage")?, "rss")?;
                let values = [number(&synced, "wall")?, number(&synced, "cpu")?, resident];
                table.add(form.label, &values);
            }
        }
        let _ = fs::remove_file(&file);
        Ok(table)
    }

    /// Starts a client, waits until it has all pods, and returns its report.
    fn start(&self, form: &Form, start: Start<'_>) -> Result<(Program, Value), String> {
        let mut client = form.start(self.server.kubeconfig(), start)?;
        let synced = client.answer()?;
        let (expected, found) = (self.server.pods + 1, number(&synced, "objects")?);
        if found as usize != expected {
            return Err(format!("{} has {found} pods, not {expected}", form.label));
        }
        Ok((client, synced))
    }

    /// Measures events. On the embedded server they are queued for a paused client, so that only the client limits
    /// the rate. The real one would end the watch of a paused client: there, events arrive as they are written.
    pub(super) fn events(&mut self) -> Result<Table, String> {
        let forms = self.forms(|_| true);
        self.events_of("events", "", &forms)
    }

    /// Does the same in protobuf on the embedded server, for programs that can read it. kube-rs cannot, and reads
    /// JSON.
    pub(super) fn protobuf_events(&mut self) -> Result<Table, String> {
        let forms = self.forms.iter().filter(|form| form.whole && !form.reconciles);
        let forms: Vec<Form> =
            forms.filter(|form| form.reads_protobuf() || form.is_kube_rs()).copied().collect();
        self.events_of("events-protobuf", "in protobuf, ", &forms)
    }

    fn events_of(&mut self, name: &str, kind: &str, forms: &[Form]) -> Result<Table, String> {
        let (events, pods) = (self.size.events, self.cached()?);
        let how = if self.server.real {
            "as they are written by 24 writers"
        } else {
            "as fast as the client can"
        };
        let title = format!(
            "{} watch events, {kind}{how}, {} pods cached",
            thousands(events),
            thousands(pods)
        );
        let metrics = [("CPU for each event", Unit::Seconds), ("events", Unit::PerSecond)];
        let mut table = self.table(name, &title, &metrics);
        for _ in 0..self.size.rounds {
            for form in forms {
                let (mut client, _) = self.start(form, PLAIN)?;
                table.add(form.label, &self.push(&mut client)?);
            }
        }
        Ok(table)
    }

    fn cached(&mut self) -> Result<usize, String> {
        self.server.fill(self.size.cached)?;
        Ok(self.server.pods)
    }

    /// Returns the CPU time per event, and the events per second.
    fn push(&mut self, client: &mut Program) -> Result<[f64; 2], String> {
        let push = format!("push {}", self.size.events);
        client.ask("events")?;
        let (pushed, began) = if self.server.real {
            let began = Instant::now();
            (self.server.tell(&push), began)
        } else {
            client.pause(true)?;
            let pushed = self.server.tell(&push);
            let began = Instant::now();
            client.pause(false)?;
            (pushed, began)
        };
        let events = number(&pushed?, "events")?;
        let done = client.answer()?;
        let wall = began.elapsed().as_secs_f64();
        Ok([number(&done, "cpu")? / events, events / wall])
    }

    /// Measures the cost of additional handlers.
    pub(super) fn handlers(&mut self, counts: &[usize]) -> Result<Vec<Table>, String> {
        self.cached()?;
        let mut tables = Vec::new();
        for count in counts {
            let title = format!("{} watch events to {count} handlers", thousands(self.size.events));
            let metrics = [("CPU for each event", Unit::Seconds), ("events", Unit::PerSecond)];
            tables.push(self.table(&format!("handlers-{count}"), &title, &metrics));
        }
        let with_handlers = ["ours, packed", "client-go, JSON, stripped"];
        for _ in 0..self.size.rounds {
            for (count, table) in counts.iter().zip(&mut tables) {
                for form in self.forms(|form| with_handlers.contains(&form.label)) {
                    let start = Start { handlers: *count, ..PLAIN };
                    let (mut client, _) = self.start(&form, start)?;
                    table.add(form.label, &self.push(&mut client)?);
                }
            }
        }
        Ok(tables)
    }

    /// Measures the latency from a write to the handler, at a rate that all programs can follow.
    pub(super) fn latency(&mut self) -> Result<Table, String> {
        let forms = self.forms(|form| form.whole);
        self.paced("latency", "writes a second", &forms, PLAIN)
    }

    /// Measures the latency from a write to the start of its reconcile, by controllers that do nothing else.
    pub(super) fn reconcile(&mut self) -> Result<Table, String> {
        let forms = self.all_forms(|form| form.reconciles);
        let start = Start { handlers: WORKERS, ..PLAIN };
        let what = format!("writes a second to controllers with {WORKERS} workers");
        self.paced("reconcile", &what, &forms, start)
    }

    fn paced(
        &mut self,
        name: &str,
        what: &str,
        forms: &[Form],
        start: Start<'_>,
    ) -> Result<Table, String> {
        let (pods, rate) = (self.cached()?, self.size.rate);
        let title = format!("{rate} {what}, {} pods cached", thousands(pods));
        let metrics =
            [("p50", Unit::Seconds), ("p99", Unit::Seconds), ("CPU for each event", Unit::Seconds)];
        let mut table = self.table(name, &title, &metrics);
        for _ in 0..self.size.rounds {
            for form in forms {
                let (mut client, _) = self.start(form, start)?;
                sleep(SETTLE);
                client.ask("latency")?;
                let wrote = self.server.tell(&format!("pace {} {rate}", self.size.paced))?;
                let done = client.answer()?;
                let mut times = latencies(&wrote["wrote"], &done["seen"]);
                times.sort_by(f64::total_cmp);
                let at = |of: f64| times.get((times.len() as f64 * of) as usize).copied();
                let (Some(half), Some(most)) = (at(0.5), at(0.99)) else {
                    return Err(format!("{} has seen none of the writes", form.label));
                };
                let cpu = number(&done, "cpu")? / number(&wrote, "events")?;
                table.add(form.label, &[half, most, cpu]);
            }
        }
        Ok(table)
    }

    /// Measures a relist after the version has expired.
    pub(super) fn relist(&mut self, pods: usize, rounds: usize) -> Result<Table, String> {
        self.server.fill(pods)?;
        let title = format!("Relist of {} pods", thousands(self.server.pods));
        let metrics = [("CPU", Unit::Seconds), ("wall", Unit::Seconds), ("RSS peak", Unit::Bytes)];
        let mut table = self.table(&format!("relist-{pods}"), &title, &metrics);
        for _ in 0..rounds {
            for form in self.forms(|form| form.whole) {
                let (mut client, _) = self.start(&form, PLAIN)?;
                sleep(SETTLE);
                client.ask("relist")?;
                self.server.tell("expire")?;
                let done = client.answer()?;
                let peak = number(&done, "peak")?;
                table.add(form.label, &[number(&done, "cpu")?, number(&done, "wall")?, peak]);
            }
        }
        Ok(table)
    }

    /// Measures how long a thread that reads in a loop waits while events arrive.
    pub(super) fn reads(&mut self) -> Result<Table, String> {
        let (pods, rate) = (self.cached()?, self.size.rate);
        let title = format!(
            "Reads of {} pods without a pause, {rate} writes a second meanwhile",
            thousands(pods)
        );
        let metrics =
            ["get p50", "get p99", "list p50", "list p99", "of a node p50", "of a node p99"];
        let metrics = metrics.map(|name| (name, Unit::Seconds));
        let mut table = self.table("reads", &title, &metrics);
        for _ in 0..self.size.rounds {
            for form in self.forms(|form| form.whole) {
                let (mut client, _) = self.start(&form, Start { index: true, ..PLAIN })?;
                client.ask("reads")?;
                self.server.tell(&format!("pace {} {rate}", self.size.paced))?;
                let reads = &client.answer()?["reads"];
                let mut values = Vec::new();
                for kind in ["get", "list", "node"] {
                    values.push(number(&reads[kind], "p50")? / 1e9);
                    values.push(number(&reads[kind], "p99")? / 1e9);
                }
                table.add(form.label, &values);
            }
        }
        Ok(table)
    }

    /// Measures the cost of an idle cache.
    pub(super) fn idle(&mut self) -> Result<Table, String> {
        let pods = self.cached()?;
        let title = format!("Idle, {} pods cached, nothing happens", thousands(pods));
        let metrics = [("CPU for each minute", Unit::Seconds), ("RSS", Unit::Bytes)];
        let mut table = self.table("idle", &title, &metrics);
        // They run concurrently.
        let mut clients = Vec::new();
        for form in self.forms(|form| form.whole) {
            clients.push((form, self.start(&form, PLAIN)?.0));
        }
        sleep(SETTLE);
        let mut before = Vec::new();
        for (_, client) in &mut clients {
            before.push((number(&client.ask("usage")?, "cpu")?, Instant::now()));
        }
        sleep(IDLE);
        for ((form, client), (used, since)) in clients.iter_mut().zip(before) {
            let after = client.ask("usage")?;
            let minutes = since.elapsed().as_secs_f64() / 60.0;
            let cpu = (number(&after, "cpu")? - used) / minutes;
            table.add(form.label, &[cpu, number(&after, "rss")?]);
        }
        Ok(table)
    }
}

fn has_curl() -> bool {
    let curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    curl.is_ok_and(|status| status.success())
}

/// Returns the seconds from each write until it was seen. Writes that were merged with later ones are left out.
fn latencies(wrote: &Value, seen: &Value) -> Vec<f64> {
    let pairs = |value: &Value| -> Vec<(u64, u64)> {
        let pairs = value.as_array().into_iter().flatten();
        pairs.filter_map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?))).collect()
    };
    let seen: HashMap<u64, u64> = pairs(seen).into_iter().collect();
    let wrote = pairs(wrote);
    let times =
        wrote.iter().filter_map(|(version, at)| Some(seen.get(version)?.saturating_sub(*at)));
    times.map(|nanos| nanos as f64 / 1e9).collect()
}

pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_are_matched_with_when_they_were_seen() {
        let wrote = json!([[5, 1_000_000_000_u64], [6, 2_000_000_000_u64], [7, 3_000_000_000_u64]]);
        let seen = json!([[7, 3_500_000_000_u64], [5, 1_250_000_000_u64]]);
        assert_eq!(latencies(&wrote, &seen), [0.25, 0.5]);
        assert!(latencies(&wrote, &json!(null)).is_empty());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [100, 1000, 30_000, 1_234_567].map(thousands),
            ["100", "1,000", "30,000", "1,234,567"]
        );
    }
}
