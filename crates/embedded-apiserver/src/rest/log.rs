//! The log of a simulated container: one line per second since it started. The lines depend only on
//! the pod and the time, so that every reader sees the same ones.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;

use super::{Call, read};
use crate::body::Body;
use crate::limits::LOG_LINES_MAX;
use crate::object::{self, Object};
use crate::request::{Query, boolean, integer};
use crate::response::of_type;
use crate::server::{Shared, WatchSlot};
use crate::status::{FieldError, Status};
use crate::store::Key;
use crate::upgrade::Upgrade;

/// The media type of logs.
const TEXT: &str = "text/plain";

/// The time between two lines, in nanoseconds.
const SECOND: i128 = 1_000_000_000;

/// The options of a request for a log.
#[derive(Debug, Default)]
struct LogOptions {
    container: String,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail: Option<i64>,
    since_seconds: Option<i64>,
    since: Option<Timestamp>,
    bytes_max: Option<i64>,
}

/// A container that has run or runs.
#[derive(Debug)]
struct Container {
    /// `namespace/pod`.
    pod: String,
    name: String,
    started: Timestamp,
    finished: Option<Timestamp>,
}

pub(super) async fn answer(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let options = LogOptions::of(&target.query, target.name())?;
    let pod = read::find(shared, target).await?.to_map();
    let name = container_name(&pod, target.name(), &options.container)?;
    if Upgrade::of(&call.headers) != Upgrade::Http {
        return Err(Status::bad_request("logs are sent over plain HTTP only"));
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if spec["nodeName"].as_str().unwrap_or_default().is_empty() {
        let mut empty = Response::new(Body::whole(Bytes::new()));
        *empty.status_mut() = StatusCode::NO_CONTENT;
        return Ok(empty);
    }
    if options.previous {
        let pod = target.name();
        let why = format!("previous terminated container {name:?} in pod {pod:?} not found");
        return Err(Status::bad_request(why));
    }
    let container = Container::of(&pod, target.name(), &name)?;
    let now = shared.clock.now();
    let (text, next) = container.lines(&options, now);
    // Cut as bytes, because a name may be any text.
    let mut text = text.into_bytes();
    let limit = options.bytes_max.and_then(|limit| usize::try_from(limit).ok());
    if let Some(limit) = limit {
        text.truncate(limit);
    }
    if !options.follow || container.finished.is_some() || limit == Some(text.len()) {
        return Ok(of_type(StatusCode::OK, TEXT, text));
    }
    let follower = Follower {
        _slot: shared.watch_slot()?,
        shared: Arc::clone(shared),
        table: Arc::clone(&target.resource.table),
        key: Key::new(target.namespace(), target.name()),
        uid: object::meta_text(&pod, "uid").to_owned(),
        left: limit.map(|limit| limit - text.len()),
        connections: shared.connections.current(),
        watches: shared.watches.current(),
        first: Some(Bytes::from(text)).filter(|text| !text.is_empty()),
        timestamps: options.timestamps,
        container,
        next,
    };
    let body = Body::chunks(stream::unfold(Some(Box::new(follower)), |follower| async move {
        let mut follower = follower?;
        let chunk = follower.next().await?;
        let rest = chunk.is_ok().then_some(follower);
        Some((chunk, rest))
    }));
    Ok(of_type(StatusCode::OK, TEXT, "").map(|_| body))
}

impl LogOptions {
    fn of(query: &Query, pod: &str) -> Result<Self, Status> {
        let mut out = Self::default();
        for (name, value) in &query.log {
            match *name {
                "container" => out.container.clone_from(value),
                "follow" => out.follow = boolean(value),
                "previous" => out.previous = boolean(value),
                "timestamps" => out.timestamps = boolean(value),
                "tailLines" => out.tail = Some(integer(value)?),
                "sinceSeconds" => out.since_seconds = Some(integer(value)?),
                "limitBytes" => out.bytes_max = Some(integer(value)?),
                _ => {
                    let since = value.parse().map_err(|_| {
                        Status::bad_request(format!("sinceTime {value:?} is not a time"))
                    })?;
                    out.since = Some(since);
                }
            }
        }
        let mut errors = Vec::new();
        if let Some(tail) = out.tail.filter(|tail| *tail < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("tailLines", tail, why));
        }
        for (field, value) in [("limitBytes", out.bytes_max), ("sinceSeconds", out.since_seconds)] {
            if let Some(value) = value.filter(|value| *value < 1) {
                errors.push(FieldError::invalid(field, value, "must be greater than 0"));
            }
        }
        if errors.is_empty() {
            return Ok(out);
        }
        Err(Status::invalid("", "PodLogOptions", pod, &errors))
    }
}

/// Returns the names of a pod's containers of one type.
fn names<'a>(pod: &'a Object, list: &str) -> Vec<&'a str> {
    let containers = pod.get("spec").and_then(|spec| spec[list].as_array());
    containers.into_iter().flatten().filter_map(|c| c["name"].as_str()).collect()
}

/// Returns the container that is meant, with the errors of a real server.
fn container_name(pod: &Object, pod_name: &str, asked: &str) -> Result<String, Status> {
    let containers = names(pod, "containers");
    let init = names(pod, "initContainers");
    let ephemeral = names(pod, "ephemeralContainers");
    if !asked.is_empty() {
        let all = [&containers, &init, &ephemeral];
        if all.iter().any(|names| names.contains(&asked)) {
            return Ok(asked.to_owned());
        }
        let why = format!("container {asked} is not valid for pod {pod_name}");
        return Err(Status::bad_request(why));
    }
    if let [only] = *containers {
        return Ok(only.to_owned());
    }
    let mut why = format!("a container name must be specified for pod {pod_name}");
    if !containers.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(why, ", choose one of: [{}]", containers.join(" "));
        for (kind, names) in [("init", init), ("ephemeral", ephemeral)] {
            if !names.is_empty() {
                let _ = write!(why, " or one of the {kind} containers: [{}]", names.join(" "));
            }
        }
    }
    Err(Status::bad_request(why))
}

impl Container {
    fn of(pod: &Object, pod_name: &str, name: &str) -> Result<Self, Status> {
        let status = pod.get("status").unwrap_or(&Value::Null);
        let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
        let mut all = lists.iter().filter_map(|list| status[*list].as_array()).flatten();
        let state = all.find(|status| status["name"] == name).map(|status| &status["state"]);
        let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let started = state.and_then(|state| {
            time(&state["running"]["startedAt"]).or_else(|| time(&state["terminated"]["startedAt"]))
        });
        let Some(started) = started else {
            let waiting = state.and_then(|state| state["waiting"]["reason"].as_str());
            let reason = waiting.unwrap_or("ContainerCreating");
            return Err(Status::bad_request(format!(
                "container {name:?} in pod {pod_name:?} is waiting to start: {reason}"
            )));
        };
        Ok(Self {
            pod: format!("{}/{pod_name}", object::meta_text(pod, "namespace")),
            name: name.to_owned(),
            started,
            finished: state.and_then(|state| time(&state["terminated"]["finishedAt"])),
        })
    }

    /// Returns the number of lines at a time: one at the start, and one after each second.
    fn count(&self, at: Timestamp) -> u64 {
        let end = self.finished.map_or(at, |finished| finished.min(at));
        let seconds = end.duration_since(self.started).as_secs();
        u64::try_from(seconds).map_or(0, |seconds| seconds + 1)
    }

    fn line(&self, number: u64, timestamps: bool, out: &mut String) {
        if timestamps {
            let seconds = i64::try_from(number).unwrap_or(i64::MAX);
            let at = self.started.saturating_add(SignedDuration::from_secs(seconds));
            let at = at.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S.000000000Z");
            let _ = write!(out, "{at} ");
        }
        let Self { pod, name, .. } = self;
        let _ = writeln!(out, "{name} of {pod}: line {}", number + 1);
    }

    /// Returns the lines that are asked for, and the number of the line that comes after them.
    fn lines(&self, options: &LogOptions, now: Timestamp) -> (String, u64) {
        let count = self.count(now);
        let since = options.since_seconds.map(|seconds| {
            now.saturating_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN)
        });
        let since = since.into_iter().chain(options.since).max();
        let skipped = since.map_or(0, |since| {
            // Rounded up: a line at that time is included.
            let before = since.duration_since(self.started).as_nanos();
            let (seconds, rest) = (before.div_euclid(SECOND), before.rem_euclid(SECOND));
            u64::try_from(seconds + i128::from(rest > 0)).unwrap_or(0)
        });
        let tail = options.tail.and_then(|tail| u64::try_from(tail).ok());
        let kept = tail.map_or(LOG_LINES_MAX, |tail| tail.min(LOG_LINES_MAX));
        let first = skipped.max(count.saturating_sub(kept)).min(count);
        let mut text = String::new();
        for number in first..count {
            self.line(number, options.timestamps, &mut text);
        }
        (text, count)
    }
}

/// A reader that waits for further lines.
struct Follower {
    shared: Arc<Shared>,
    table: Arc<str>,
    key: Key,
    uid: String,
    container: Container,
    timestamps: bool,
    /// The lines that exist already.
    first: Option<Bytes>,
    next: u64,
    /// The bytes that may still be sent, if they are limited.
    left: Option<usize>,
    connections: CancellationToken,
    watches: CancellationToken,
    _slot: WatchSlot,
}

impl Follower {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        if self.left == Some(0) {
            return None;
        }
        loop {
            let mut text = String::new();
            let count = self.container.count(self.shared.clock.now());
            for number in self.next..count.min(self.next + LOG_LINES_MAX) {
                self.container.line(number, self.timestamps, &mut text);
            }
            self.next = self.next.max(count);
            if !text.is_empty() {
                let mut text = text.into_bytes();
                if let Some(left) = &mut self.left {
                    text.truncate(*left);
                    *left -= text.len();
                }
                return Some(Ok(text.into()));
            }
            if self.container.finished.is_some() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.connections.cancelled() => {
                    return Some(Err(io::ErrorKind::ConnectionReset.into()));
                }
                () = self.watches.cancelled() => return None,
                () = sleep(self.until_next_line()) => {}
            }
            self.look_at_pod()?;
        }
    }

    fn until_next_line(&self) -> Duration {
        let seconds = i64::try_from(self.next).unwrap_or(i64::MAX);
        let at = self.container.started.saturating_add(SignedDuration::from_secs(seconds));
        let left = at.unwrap_or(Timestamp::MAX).duration_since(self.shared.clock.now());
        // A clock that is not quite there yet must not make this spin.
        Duration::try_from(left).unwrap_or_default().max(Duration::from_millis(1))
    }

    /// Notices that the container has terminated. Returns `None` if the pod is gone.
    fn look_at_pod(&mut self) -> Option<()> {
        let pod = self.shared.store.get(&self.table, &self.key)?.to_map();
        if object::meta_text(&pod, "uid") != self.uid {
            return None;
        }
        let now = Container::of(&pod, self.key.name(), &self.container.name).ok()?;
        self.container.finished = now.finished;
        Some(())
    }
}
