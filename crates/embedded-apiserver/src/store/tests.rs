//! The store without a server: reads, writes and compaction.

mod compaction;
mod encoding;
mod paging;
mod restoring;
mod together;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::EventType::{Added, Deleted, Modified};
use super::*;
use crate::kinds::{Registry, Resource};

/// A store with one table of config maps.
struct Scene {
    store: Store,
    resource: Arc<Resource>,
    table: Arc<str>,
}

impl Scene {
    fn new() -> Self {
        Self::with(Duration::from_secs(300), usize::MAX)
    }

    fn with(window: Duration, history_bytes_max: usize) -> Self {
        let store = Store::new(window, history_bytes_max);
        let registry = Registry::new();
        let resource = registry.get("", "v1", "configmaps").expect("it is built in");
        let table = Arc::clone(&resource.table);
        store.open_table(&table);
        Self { store, resource: Arc::clone(resource), table }
    }

    fn draft(&self, namespace: &str, name: &str, value: &str) -> Draft {
        let metadata = json!({
            "namespace": namespace, "name": name, "labels": {"value": value},
            "resourceVersion": "ignored", "uid": "u",
        });
        let object = json!({"metadata": metadata, "data": {"value": value}});
        Draft::encode(&self.resource, object.as_object().expect("it is one"))
    }

    /// Stores an object unconditionally. Returns its version.
    fn put(&self, namespace: &str, name: &str, value: &str) -> u64 {
        let key = Key::new(namespace, name);
        let expected = self
            .store
            .get(&self.table, &key)
            .map_or(Expected::Absent, |current| Expected::Version(current.version()));
        let stored = self.store.put(&self.table, expected, &self.draft(namespace, name, value));
        stored.expect("nobody else writes").version()
    }

    fn delete(&self, namespace: &str, name: &str) -> u64 {
        let key = Key::new(namespace, name);
        let current = self.store.get(&self.table, &key).expect("it is there").version();
        self.store.delete(&self.table, &key, current).expect("nobody else writes").version()
    }

    /// Returns a complete list at a version, as `namespace/name=value`.
    fn list(&self, at: u64) -> Result<Vec<String>, Unreadable> {
        let page = self.store.list(&self.table, Some(at), &PageRequest::default())?;
        Ok(page.items.iter().map(|item| shown(item)).collect())
    }

    /// Returns the retained versions of a key.
    fn versions(&self, namespace: &str, name: &str) -> Vec<u64> {
        let key = Key::new(namespace, name);
        self.store.history(&self.table, &key).iter().map(|state| state.version()).collect()
    }

    /// Returns the events after a version for a new watcher.
    fn events(&self, after: u64) -> Result<Vec<(EventType, u64)>, Unreadable> {
        self.store.check_start(after)?;
        let subscription = self.store.subscribe(&self.table).ok_or(Unreadable::Gone)?;
        let batch = self.store.events_after(&self.table, &subscription, after, usize::MAX / 2)?;
        let events = batch.events.iter().map(|e| (e.revision.event_type(), e.revision.version()));
        Ok(events.collect())
    }
}

fn shown(state: &Revision) -> String {
    format!("{}={}", state.key(), state.to_map()["data"]["value"].as_str().unwrap_or("?"))
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("it is JSON")
}

#[test]
fn every_write_has_the_next_version() {
    let scene = Scene::new();
    let other: Arc<str> = "nodes".into();
    scene.store.open_table(&other);
    assert_eq!(scene.store.revision(), 1);
    assert_eq!(scene.put("a", "x", "1"), 2);
    let node = scene.store.put(&other, Expected::Absent, &scene.draft("", "n", "1")).unwrap();
    assert_eq!(node.version(), 3);
    assert_eq!(scene.put("a", "x", "2"), 4);
    assert_eq!(scene.delete("a", "x"), 5);
    assert_eq!(scene.store.revision(), 5);
}

#[test]
fn a_write_that_expects_something_else_changes_nothing() {
    let scene = Scene::new();
    let first = scene.put("a", "x", "1");
    let second = scene.put("a", "x", "2");
    let key = Key::new("a", "x");
    for wrong in [Expected::Absent, Expected::Version(first), Expected::Version(second + 1)] {
        let refused = scene.store.put(&scene.table, wrong, &scene.draft("a", "x", "3"));
        assert_eq!(refused.unwrap_err(), Stale);
    }
    assert_eq!(scene.store.delete(&scene.table, &key, first).unwrap_err(), Stale);
    let absent = Key::new("a", "y");
    assert_eq!(scene.store.delete(&scene.table, &absent, second).unwrap_err(), Stale);
    let nothing = scene.store.put(&scene.table, Expected::Version(2), &scene.draft("a", "y", "1"));
    assert_eq!(nothing.unwrap_err(), Stale);
    assert_eq!(scene.store.revision(), second);
    assert_eq!(scene.versions("a", "x"), [first, second]);
}

#[test]
fn the_history_of_a_key_has_its_deletions() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    scene.put("a", "y", "1");
    scene.delete("a", "x");
    scene.put("a", "x", "2");
    let history = scene.store.history(&scene.table, &Key::new("a", "x"));
    let types: Vec<_> = history.iter().map(|state| (state.event_type(), state.version())).collect();
    assert_eq!(types, [(Added, 2), (Deleted, 4), (Added, 5)]);
    assert_eq!(shown(&history[1]), "a/x=1", "a deletion shows the last state");
    assert_eq!(parsed(&history[1].object())["metadata"]["resourceVersion"], "4");
}

#[test]
fn counts_follow_the_objects() {
    let scene = Scene::new();
    let count = |namespace| scene.store.count(&scene.table, namespace);
    scene.put("a", "x", "1");
    scene.put("a", "y", "1");
    scene.put("b", "x", "1");
    scene.put("b", "x", "2");
    assert_eq!((count(None), count(Some("a")), count(Some("b"))), (3, 2, 1));
    scene.delete("b", "x");
    assert_eq!((count(None), count(Some("b"))), (2, 0));
    assert!(scene.store.namespace_is_empty_but("b", "events"));
    assert!(!scene.store.namespace_is_empty_but("a", "events"));
}

#[test]
fn a_watcher_is_woken_and_reads_in_batches() {
    let scene = Scene::new();
    let mut subscription = scene.store.subscribe(&scene.table).expect("it is open");
    subscription.changed.mark_seen();
    let start = scene.store.revision();
    for n in 0..4 {
        scene.put("a", &format!("x{n}"), "1");
    }
    assert!(subscription.changed.has_news());
    let first = scene.store.events_after(&scene.table, &subscription, start, 3).unwrap();
    assert_eq!((first.events.len(), first.remaining), (3, 1));
    assert_eq!(first.seen, start + 3, "what is left is not seen");
    let rest = scene.store.events_after(&scene.table, &subscription, first.seen, 3).unwrap();
    assert_eq!((rest.events.len(), rest.remaining, rest.seen), (1, 0, start + 4));
    let none = scene.store.events_after(&scene.table, &subscription, rest.seen, 3).unwrap();
    assert_eq!((none.events.len(), none.seen), (0, start + 4));
}

#[test]
fn events_carry_what_they_replaced() {
    let scene = Scene::new();
    let start = scene.put("a", "x", "1");
    scene.put("a", "x", "2");
    scene.delete("a", "x");
    scene.put("a", "x", "3");
    let subscription = scene.store.subscribe(&scene.table).expect("it is open");
    let batch = scene.store.events_after(&scene.table, &subscription, start - 1, 10).unwrap();
    let seen: Vec<_> = batch
        .events
        .iter()
        .map(|event| {
            let previous = event.previous.as_deref().map(Revision::version);
            (event.revision.event_type(), previous)
        })
        .collect();
    let expected =
        [(Added, None), (Modified, Some(start)), (Deleted, Some(start + 1)), (Added, None)];
    assert_eq!(seen, expected);
}
