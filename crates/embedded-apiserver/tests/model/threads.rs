//! The model with real threads: concurrent writers, watchers, lists and compactions. The order is
//! not known in advance. It is taken from one watcher per kind that reads from the start, and
//! checked against the writers' responses. All other readers must then agree with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use embedded_apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, yield_now};
use tokio_util::sync::CancellationToken;

use super::history::{History, KINDS, Key, SELECTORS, Selection, count_of, path, set_count};
use super::wire::{Given, Watching, Wire, version_of};

const WRITERS: usize = 8;
const WATCHERS: usize = 8;
const WRITES: usize = 120;
/// Config maps and nodes: one namespaced and one not.
const WRITTEN: [usize; 2] = [0, 2];

struct Scene {
    server: ApiServer,
    start: u64,
    /// The progress of the watcher of each kind that defines the order. Compaction must not
    /// overtake it.
    read: [AtomicU64; 2],
    stop: CancellationToken,
}

/// The responses to a writer.
#[derive(Default)]
struct Written {
    states: Vec<Value>,
    /// By uid.
    counted: BTreeMap<String, i64>,
    deleted: Vec<String>,
}

/// The events of a watch.
struct Session {
    selection: Selection,
    /// `None` if it started with the state, and reported its version.
    start: Option<u64>,
    events: Vec<Value>,
    /// Whether it was read to the end.
    complete: bool,
}

struct Listed {
    selection: Selection,
    /// The key after which it starts.
    after: Option<Key>,
    limit: usize,
    page: Value,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_see_one_order() {
    // However long it takes, there are no further bookmarks, and nothing is compacted by its age.
    let server =
        ApiServer::builder().bookmark_interval(Duration::MAX).history_window(Duration::MAX).build();
    let start = server.store().revision();
    let scene = Arc::new(Scene {
        server,
        start,
        read: [AtomicU64::new(start), AtomicU64::new(start)],
        stop: CancellationToken::new(),
    });
    let order: Vec<_> = (0..2).map(|at| tokio::spawn(Arc::clone(&scene).follow(at))).collect();
    let watchers: Vec<_> =
        (0..WATCHERS).map(|n| tokio::spawn(Arc::clone(&scene).watch_on(n))).collect();
    let lists: Vec<_> = (0..2).map(|n| tokio::spawn(Arc::clone(&scene).list_on(n))).collect();
    let writers: Vec<_> =
        (0..WRITERS).map(|n| tokio::spawn(Arc::clone(&scene).write_on(n))).collect();
    let compactor = tokio::spawn(Arc::clone(&scene).compact_on());
    let written = all(writers).await;
    scene.stop.cancel();
    compactor.await.expect("it does not panic");

    let history = scene.history(&all(order).await);
    check_writes(&history, written);
    let sessions: Vec<Session> = all(watchers).await.into_iter().flatten().collect();
    assert!(sessions.len() >= WATCHERS);
    for session in &sessions {
        check_session(&history, session);
    }
    let lists: Vec<Listed> = all(lists).await.into_iter().flatten().collect();
    assert!(!lists.is_empty());
    for list in &lists {
        check_list(&history, list);
    }
}

async fn all<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    futures::future::try_join_all(tasks).await.expect("no task panics")
}

impl Scene {
    fn wire(&self, name: &str, n: usize) -> Wire {
        Wire::new(&self.server, &format!("{name}{n}"))
    }

    /// Returns all events of a kind.
    async fn follow(self: Arc<Self>, at: usize) -> Vec<Value> {
        let selection = Selection { kind: WRITTEN[at], namespace: None, selector: 0 };
        let uri = format!("{}&watch=1&resourceVersion={}", selection.uri(), self.start);
        let mut watching = self.wire("order", at).watch(&uri).await;
        let mut events = Vec::new();
        let complete = self
            .read_on(&mut watching, &mut events, usize::MAX, |event| {
                self.read[at].store(version_of(&event["object"]), Ordering::Relaxed);
            })
            .await;
        assert!(complete, "nobody ends it: {:?}", events.last());
        events
    }

    /// Reads until there are `most` events, until the watch ends, or until the test is done and
    /// nothing is left. Returns true in the last case.
    async fn read_on(
        &self,
        watching: &mut Watching,
        events: &mut Vec<Value>,
        most: usize,
        mut on_event: impl FnMut(&Value),
    ) -> bool {
        while events.len() < most {
            let event = tokio::select! {
                event = watching.next() => event,
                () = self.stop.cancelled() => match watching.next_now() {
                    Given::Event(event) => Some(event),
                    Given::Nothing => return true,
                    Given::End | Given::Broken => None,
                },
            };
            let Some(event) = event else { return false };
            if event["type"] != "ERROR" {
                on_event(&event);
            }
            events.push(event);
        }
        false
    }

    async fn watch_on(self: Arc<Self>, n: usize) -> Vec<Session> {
        let wire = self.wire("watcher", n);
        let mut sessions = Vec::new();
        for round in n.. {
            let selection = Selection {
                kind: WRITTEN[n % 2],
                namespace: Some("default").filter(|_| n % 4 == 2),
                selector: n % (SELECTORS.len() - 1),
            };
            let start = (round % 3 != 0).then(|| self.server.store().revision());
            let how = match start {
                Some(version) => format!("&resourceVersion={version}"),
                None => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
            };
            let uri = format!("{}&watch=1&allowWatchBookmarks=true{how}", selection.uri());
            let mut watching = wire.watch(&uri).await;
            let mut events = Vec::new();
            let complete = self.read_on(&mut watching, &mut events, 60, |_| {}).await;
            sessions.push(Session { selection, start, events, complete });
            if self.stop.is_cancelled() {
                break;
            }
            yield_now().await;
        }
        sessions
    }

    async fn list_on(self: Arc<Self>, n: usize) -> Vec<Listed> {
        let wire = self.wire("lister", n);
        let mut lists = Vec::new();
        // At least once, even if the writers finished before this task ran.
        while lists.is_empty() || !self.stop.is_cancelled() {
            let selection =
                Selection { kind: WRITTEN[n % 2], namespace: None, selector: lists.len() % 4 };
            let (mut after, mut token, limit) = (None, String::new(), 1 + lists.len() % 5);
            loop {
                let uri = format!("{}&limit={limit}&continue={token}", selection.uri());
                let reply = wire.send(Method::GET, &uri, &Value::Null).await;
                if reply.code == 410 {
                    assert!(!token.is_empty(), "only the past is forgotten");
                    break;
                }
                assert_eq!(reply.code, 200, "{}", reply.body);
                let (selection, page) = (selection.clone(), reply.body);
                let last = page["items"].as_array().and_then(|items| items.last()).map(key_of);
                let next = page["metadata"]["continue"].as_str().map(str::to_owned);
                lists.push(Listed { selection, after, limit, page });
                yield_now().await;
                let Some(next) = next else { break };
                (after, token) = (last, next);
            }
        }
        lists
    }

    async fn compact_on(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            let read = self.read.iter().map(|read| read.load(Ordering::Relaxed)).min();
            self.server.store().compact(read.unwrap_or(0));
            for _ in 0..50 {
                yield_now().await;
            }
        }
    }

    async fn write_on(self: Arc<Self>, n: usize) -> Written {
        let wire = self.wire("writer", n);
        let mut rng = fastrand::Rng::with_seed(n as u64);
        let mut written = Written::default();
        for _ in 0..WRITES {
            let kind = &KINDS[WRITTEN[rng.usize(..2)]];
            let namespace =
                if kind.namespaced { ["default", "kube-public"][rng.usize(..2)] } else { "" };
            let key = (namespace.to_owned(), ["a", "b", "c"][rng.usize(..3)].to_owned());
            let uri = path(kind, &key);
            let color = ["red", "blue", "green"][rng.usize(..3)];
            let seen = wire.get(&uri).await;
            if rng.bool() {
                yield_now().await;
            }
            if seen.code == 404 {
                let metadata = json!({"name": key.1, "labels": {"color": color}});
                let mut body = json!({"apiVersion": kind.api_version, "kind": kind.name,
                    "metadata": metadata});
                set_count(kind, &mut body, 0);
                let collection = super::history::collection(kind, Some(&key.0));
                let reply = wire.send(Method::POST, &collection, &body).await;
                match reply.code {
                    201 => written.states.push(reply.body),
                    code => assert_eq!(code, 409, "{}", reply.body),
                }
            } else if rng.u8(..8) == 0 {
                let reply = wire.send(Method::DELETE, &uri, &Value::Null).await;
                match reply.code {
                    200 => written.deleted.push(text(&reply.body["details"]["uid"])),
                    code => assert_eq!(code, 404, "{}", reply.body),
                }
            } else {
                let mut wanted = seen.body;
                let count = count_of(kind, &wanted) + 1;
                set_count(kind, &mut wanted, count);
                wanted["metadata"]["labels"]["color"] = color.into();
                let reply = wire.send(Method::PUT, &uri, &wanted).await;
                match reply.code {
                    200 => {
                        *written.counted.entry(text(&wanted["metadata"]["uid"])).or_default() += 1;
                        written.states.push(reply.body);
                    }
                    code => assert!(code == 409 || code == 404, "{}", reply.body),
                }
            }
            yield_now().await;
        }
        written
    }

    /// Returns the history, as the watchers from the start received it.
    fn history(&self, orders: &[Vec<Value>]) -> History {
        let mut events: BTreeMap<u64, (usize, &Value)> = BTreeMap::new();
        for (kind, order) in WRITTEN.into_iter().zip(orders) {
            let versions: Vec<u64> = order.iter().map(|e| version_of(&e["object"])).collect();
            assert!(versions.is_sorted_by(|a, b| a < b), "versions increase");
            events.extend(versions.into_iter().zip(order.iter().map(|event| (kind, event))));
        }
        let mut history = History { revision: self.start, ..History::default() };
        for (version, (kind, event)) in events {
            assert_eq!(version, history.revision + 1, "there is no gap");
            let (key, object) = (key_of(&event["object"]), event["object"].clone());
            let before = history.current(kind, &key).is_some();
            let expected = match event["type"].as_str() {
                Some("ADDED") => !before,
                _ => before,
            };
            assert!(expected, "{event} when there was {before}");
            history.push(kind, &key, Some(object).filter(|_| event["type"] != "DELETED"));
        }
        assert_eq!(history.revision, self.server.store().revision());
        history.compacted = self.server.store().compacted_revision();
        history
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is a text").to_owned()
}

fn key_of(object: &Value) -> Key {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Checks that responses and changes correspond one to one, and that no count is lost.
fn check_writes(history: &History, written: Vec<Written>) {
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    let mut states = BTreeMap::new();
    let mut deleted = Vec::new();
    for writer in written {
        for (uid, count) in writer.counted {
            *counted.entry(uid).or_default() += count;
        }
        states.extend(writer.states.into_iter().map(|state| (version_of(&state), state)));
        deleted.extend(writer.deleted);
    }
    let mut ended = Vec::new();
    for change in &history.changes {
        match &change.after {
            Some(after) => assert_eq!(states.remove(&change.version).as_ref(), Some(after)),
            None => ended.extend(change.before.as_ref().map(|o| text(&o["metadata"]["uid"]))),
        }
    }
    assert!(states.is_empty(), "answered, but never seen: {states:?}");
    ended.sort_unstable();
    deleted.sort_unstable();
    assert_eq!(ended, deleted);
    let last: BTreeMap<String, i64> = history
        .changes
        .iter()
        .filter_map(|change| Some((change.kind, change.after.as_ref()?)))
        .map(|(kind, object)| (text(&object["metadata"]["uid"]), count_of(&KINDS[kind], object)))
        .collect();
    for (uid, count) in &last {
        assert_eq!(counted.get(uid).copied().unwrap_or(0), *count, "an update of {uid} was lost");
    }
    assert!(last.values().sum::<i64>() > 100, "there is something to lose");
}

fn check_session(history: &History, session: &Session) {
    let selection = &session.selection;
    let mut events = session.events.iter();
    let mut low = session.start.unwrap_or_default();
    if session.start.is_none() {
        let mut state = Vec::new();
        let end = events.by_ref().find(|event| {
            let end = event["type"] == "BOOKMARK";
            if !end {
                state.push((*event).clone());
            }
            end
        });
        let Some(end) = end else { return assert!(!session.complete) };
        low = version_of(&end["object"]);
        let expected = history.at(selection, low).into_values();
        let expected: Vec<Value> =
            expected.map(|object| json!({"type": "ADDED", "object": object})).collect();
        assert_eq!(state, expected);
    }
    for event in events {
        if event["type"] == "ERROR" {
            assert_eq!(event["object"]["code"], 410);
            assert!(low < history.compacted, "{selection:?} from {low}");
            return;
        }
        let (version, expected) = history.event_after(selection, low).unwrap_or_default();
        assert_eq!(event, &expected, "{selection:?} after {low}");
        low = version;
    }
    if session.complete {
        assert_eq!(history.event_after(selection, low), None, "{selection:?} after {low}");
    }
}

fn check_list(history: &History, list: &Listed) {
    let state = history.at(&list.selection, version_of(&list.page));
    let expected =
        state.into_iter().filter(|(key, _)| list.after.as_ref().is_none_or(|a| *key > a));
    let expected: Vec<Value> =
        expected.map(|(_, object)| super::reads::listed(object)).take(list.limit).collect();
    assert_eq!(list.page["items"].as_array(), Some(&expected));
}
