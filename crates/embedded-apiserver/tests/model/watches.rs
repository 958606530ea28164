//! Watches: the events that the model predicts, compared with those received.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::history::Selection;
use super::run::{BOOKMARK_INTERVAL, Run};
use super::wire::{Given, Watching, version_of};

/// An external action on a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Runs,
    /// Its connection was broken.
    Broken,
    /// It was ended gracefully.
    Ended,
}

/// A watch that is read from time to time.
pub(crate) struct Watcher {
    name: String,
    watching: Watching,
    selection: Selection,
    fate: Fate,
    /// Whether its version had already expired when it started.
    expired: bool,
    /// The initial state, and whether a bookmark marks its end.
    initial: VecDeque<Value>,
    initial_end: Marked,
    initial_version: u64,
    /// The version up to which everything was delivered.
    low: u64,
    /// The upper limit of what it had read at the last check.
    high: u64,
    /// Whether nothing was left at the last check.
    drained: bool,
    bookmarks: bool,
    last_bookmark: Instant,
    /// The earliest and the latest time at which it ends by itself.
    deadline: (Instant, Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marked {
    No,
    /// Older servers do not.
    Maybe,
    Yes,
}

/// The start of a watch.
enum Start {
    State(&'static str),
    After(u64),
    Now,
}

const NOT_OLDER: &str = "&resourceVersionMatch=NotOlderThan";

impl Run {
    pub(crate) async fn open_watch(&mut self) {
        let selection = self.any_selection();
        let bookmarks = self.rng.bool();
        let version = self.any_version();
        let (start, how) = match self.rng.u8(..10) {
            0 => (Start::State(""), String::new()),
            1 => (Start::State(""), "&resourceVersion=0".to_owned()),
            2 | 3 => {
                let at = ["0".to_owned(), String::new(), version.to_string()];
                let at = &at[self.rng.usize(..3)];
                let how = format!("&sendInitialEvents=true{NOT_OLDER}&resourceVersion={at}");
                (Start::State("marked"), how)
            }
            4 => {
                let how = format!("&sendInitialEvents=false{NOT_OLDER}&resourceVersion={version}");
                (Start::After(version), how)
            }
            5 => (Start::Now, format!("&sendInitialEvents=false{NOT_OLDER}&resourceVersion=0")),
            6 if !bookmarks => {
                let future = self.history.revision + self.rng.u64(1..4);
                (Start::After(future), format!("&resourceVersion={future}"))
            }
            _ => (Start::After(version), format!("&resourceVersion={version}")),
        };
        let timeout = self.rng.bool().then(|| self.rng.u64(1..200));
        let seconds = timeout.map_or_else(String::new, |seconds| seconds.to_string());
        let how = format!("{how}&allowWatchBookmarks={bookmarks}&timeoutSeconds={seconds}");
        let uri = format!("{}&watch=1{how}", selection.uri());
        let client = self.any_client();
        self.note(|| format!("{client} GET {uri}"));
        let watching = self.clients[client].wire.watch(&uri).await;
        let watcher = self.watcher(uri, watching, selection, (&start, bookmarks, timeout));
        self.watchers.push(watcher);
    }

    fn watcher(
        &self,
        name: String,
        watching: Watching,
        selection: Selection,
        (start, bookmarks, timeout): (&Start, bool, Option<u64>),
    ) -> Watcher {
        let revision = self.history.revision;
        let state = self.history.at(&selection, revision);
        let initial = match start {
            Start::State(_) => {
                state.into_values().map(|o| json!({"type": "ADDED", "object": o})).collect()
            }
            _ => VecDeque::new(),
        };
        let initial_end = match start {
            Start::State("marked") if bookmarks => Marked::Yes,
            Start::State(_) if bookmarks => Marked::Maybe,
            _ => Marked::No,
        };
        let low = match start {
            Start::After(version) => *version,
            _ => revision,
        };
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        let deadline = match timeout {
            Some(seconds) => (after(seconds), after(seconds)),
            None => (after(30 * 60), after(60 * 60)),
        };
        Watcher {
            name,
            watching,
            selection,
            fate: Fate::Runs,
            expired: low < self.history.compacted,
            initial,
            initial_end,
            initial_version: revision,
            low,
            high: low,
            drained: false,
            bookmarks,
            last_bookmark: Instant::now(),
            deadline,
        }
    }

    pub(crate) fn read_some_watch(&mut self) {
        if self.watchers.is_empty() {
            return;
        }
        let at = self.rng.usize(..self.watchers.len());
        let mut watcher = self.watchers.swap_remove(at);
        let most = if self.rng.bool() { usize::MAX } else { self.rng.usize(..4) };
        if watcher.read(self, most) {
            self.watchers.push(watcher);
        }
    }
}

impl Watcher {
    pub(crate) fn suffer(&mut self, fate: Fate) {
        // A broken connection is observed before a graceful end on it.
        if self.fate != Fate::Broken {
            self.fate = fate;
        }
    }

    /// Reads at most `most` events. Returns whether the watch is still open.
    pub(crate) fn read(&mut self, run: &mut Run, most: usize) -> bool {
        let drained = std::mem::replace(&mut self.drained, false);
        for taken in 0..most {
            let given = self.watching.next_now();
            run.note(|| format!("{} gives {given:?}", self.name));
            match given {
                Given::Event(event) if event["type"] == "ERROR" => {
                    self.check_error(run, &event);
                    assert_eq!(self.watching.next_now(), Given::End, "{}", self.name);
                    return false;
                }
                Given::Event(event) => {
                    assert_eq!((self.fate, self.expired), (Fate::Runs, false), "{event}");
                    let lagged = drained && taken == 0 && self.lag(run, self.high);
                    assert!(!lagged, "{}: it should have been cut off", self.name);
                    if event["type"] == "BOOKMARK" {
                        self.check_bookmark(run, &event["object"]);
                    } else {
                        self.check_event(run, &event);
                    }
                }
                Given::Nothing => {
                    self.check_rest(run);
                    return true;
                }
                Given::End => {
                    let timed_out = self.deadline.0 <= Instant::now();
                    let cut_off = self.lag(run, self.low);
                    let ended = self.fate == Fate::Ended || timed_out || cut_off;
                    assert!(ended, "{} ended", self.name);
                    return false;
                }
                Given::Broken => {
                    assert_eq!(self.fate, Fate::Broken, "{}", self.name);
                    return false;
                }
            }
        }
        self.high = self.high.max(run.history.revision);
        true
    }

    /// Returns whether more events were written since a version than a watcher may lag.
    fn lag(&self, run: &Run, since: u64) -> bool {
        run.history.count(self.selection.kind, since, run.history.revision) > run.lag_max
    }

    fn check_error(&self, run: &Run, event: &Value) {
        let status = &event["object"];
        assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
        assert_eq!((self.fate, self.initial.len()), (Fate::Runs, 0));
        let history = &run.history;
        let forgotten = history.count(self.selection.kind, self.low, history.compacted) > 0;
        assert!(self.expired || forgotten, "{} was told 410 without need", self.name);
    }

    fn check_event(&mut self, run: &Run, event: &Value) {
        if let Some(expected) = self.initial.pop_front() {
            assert_eq!(event, &expected, "{}", self.name);
            return;
        }
        assert_ne!(self.initial_end, Marked::Yes, "{}: the end was not marked", self.name);
        self.initial_end = Marked::No;
        let expected = run.history.event_after(&self.selection, self.low);
        let (version, expected) = expected.unwrap_or_default();
        assert_eq!(event, &expected, "{}, which has seen up to {}", self.name, self.low);
        // Compacted events that it had not read cannot be delivered.
        assert!(version <= self.high || version > run.history.compacted, "{}", self.name);
        self.low = version;
    }

    fn check_bookmark(&mut self, run: &Run, bookmark: &Value) {
        let name = &self.name;
        let version = version_of(bookmark);
        assert!(self.bookmarks && self.initial.is_empty(), "{name}");
        assert!(version <= run.history.revision, "{name}");
        let since_last = self.last_bookmark.elapsed();
        self.last_bookmark = Instant::now();
        let marked = bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        let state_was_marked = std::mem::replace(&mut self.initial_end, Marked::No);
        if marked {
            assert_ne!(state_was_marked, Marked::No, "{name}");
            assert_eq!(version, self.initial_version, "{name}");
            return;
        }
        assert_ne!(state_was_marked, Marked::Yes, "{name}");
        assert!(version >= self.high, "{name}: it had read up to {}", self.high);
        let missed = run.history.event_after(&self.selection, self.low);
        assert!(missed.is_none_or(|(missed, _)| missed > version), "{name} promised too much");
        let about_to_end = self.deadline.0 - Instant::now() <= Duration::from_secs(2);
        assert!(since_last >= BOOKMARK_INTERVAL || about_to_end, "{name}: too early");
        self.low = version;
    }

    /// Checks that an idle watch has delivered everything.
    fn check_rest(&mut self, run: &Run) {
        let name = &self.name;
        let fine = self.fate == Fate::Runs && !self.expired && self.initial.is_empty();
        assert!(fine && self.initial_end != Marked::Yes, "{name} has something to say");
        assert!(self.deadline.1 > Instant::now(), "{name} has outlived its time");
        let missed = run.history.event_after(&self.selection, self.low);
        assert_eq!(missed, None, "{name}");
        let bookmark_due = self.bookmarks && self.last_bookmark.elapsed() >= BOOKMARK_INTERVAL;
        assert!(!bookmark_due, "{name}: it is time for a bookmark");
        self.initial_end = Marked::No;
        self.low = self.low.max(run.history.revision);
        self.high = self.low;
        self.drained = true;
    }
}
