//! Snapshots, and tables that are opened and closed.

use super::*;

#[test]
fn a_restore_goes_back_to_the_objects_and_the_version() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    let at = scene.put("b", "y", "1");
    let snapshot = scene.store.snapshot();
    assert_eq!((snapshot.revision(), snapshot.len(), snapshot.is_empty()), (at, 2, false));
    scene.put("a", "x", "2");
    scene.delete("b", "y");
    scene.put("c", "z", "1");
    scene.store.restore(&snapshot);
    assert_eq!(scene.store.revision(), at);
    assert_eq!(scene.list(at).unwrap(), ["a/x=1", "b/y=1"]);
    assert_eq!(scene.list(at - 1), Err(Unreadable::Expired { oldest: at }));
    assert_eq!(scene.store.count(&scene.table, Some("b")), 1);
    assert_eq!(scene.store.count(&scene.table, Some("c")), 0);
    // Versions are assigned again, and the snapshot can be restored again.
    assert_eq!(scene.put("a", "x", "other"), at + 1);
    assert_eq!(scene.events(at).unwrap(), [(EventType::Modified, at + 1)]);
    scene.store.restore(&snapshot);
    assert_eq!(scene.list(at).unwrap(), ["a/x=1", "b/y=1"]);
    assert_eq!(scene.versions("a", "x").len(), 1, "nothing of the other history is left");
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    let snapshot = scene.store.snapshot();
    scene.delete("a", "x");
    scene.store.compact(u64::MAX);
    scene.store.restore(&snapshot);
    assert_eq!(scene.list(snapshot.revision()).unwrap(), ["a/x=1"]);
}

#[test]
fn a_watcher_ahead_of_a_restore_waits_until_the_versions_pass_it() {
    let scene = Scene::new();
    let subscription = scene.store.subscribe(&scene.table).expect("it is open");
    scene.put("a", "x", "1");
    let snapshot = scene.store.snapshot();
    scene.put("a", "x", "2");
    let position = scene.put("a", "x", "3");
    scene.store.restore(&snapshot);
    let read = |after| scene.store.events_after(&scene.table, &subscription, after, 10).unwrap();
    scene.put("a", "x", "2'");
    let batch = read(position);
    assert_eq!((batch.events.len(), batch.seen), (0, position), "it does not go back");
    assert_eq!(scene.put("a", "x", "3'"), position);
    assert_eq!(read(position).events.len(), 0);
    let passed = scene.put("a", "x", "4'");
    let batch = read(position);
    assert_eq!((batch.events.len(), batch.seen), (1, passed));
}

#[test]
fn a_watcher_behind_a_restore_has_missed_something() {
    let scene = Scene::new();
    let subscription = scene.store.subscribe(&scene.table).expect("it is open");
    let behind = scene.put("a", "x", "1");
    scene.put("a", "x", "2");
    let snapshot = scene.store.snapshot();
    scene.store.restore(&snapshot);
    let missed = scene.store.events_after(&scene.table, &subscription, behind, 10);
    assert_eq!(missed.unwrap_err(), Unreadable::Expired { oldest: snapshot.revision() });
}

#[test]
fn another_stores_snapshot_brings_its_tables_along() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    let empty = Store::new(Duration::from_secs(300), usize::MAX);
    empty.restore(&scene.store.snapshot());
    empty.open_table(&scene.table);
    assert_eq!(empty.count(&scene.table, None), 1);
}

#[test]
fn closing_a_table_deletes_what_is_in_it_and_then_ends_its_watchers() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    let start = scene.put("b", "y", "1");
    let mut subscription = scene.store.subscribe(&scene.table).expect("it is open");
    subscription.changed.mark_seen();
    scene.store.close_table(&scene.table);
    assert!(subscription.changed.has_news());
    let last = scene.store.events_after(&scene.table, &subscription, start, 10).unwrap();
    let deleted: Vec<_> = last
        .events
        .iter()
        .map(|event| (event.revision.event_type(), event.revision.version()))
        .collect();
    assert_eq!(deleted, [(EventType::Deleted, start + 1), (EventType::Deleted, start + 2)]);
    let over = scene.store.events_after(&scene.table, &subscription, last.seen, 10);
    assert_eq!(over.unwrap_err(), Unreadable::Gone);
    assert!(scene.store.subscribe(&scene.table).is_none());
    assert_eq!(scene.list(start), Err(Unreadable::Gone));
    let late = scene.store.put(&scene.table, Expected::Absent, &scene.draft("a", "z", "1"));
    assert_eq!(late.unwrap_err(), Stale, "a write that was under way comes too late");
    assert!(scene.store.namespace_is_empty_but("a", "events"));
}

#[test]
fn a_table_that_is_opened_again_is_another_one_to_its_old_watchers() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    let old = scene.store.subscribe(&scene.table).expect("it is open");
    scene.store.close_table(&scene.table);
    let closed_at = scene.store.revision();
    scene.store.open_table(&scene.table);
    let again = scene.put("a", "x", "2");
    let over = scene.store.events_after(&scene.table, &old, closed_at, 10);
    assert_eq!(over.unwrap_err(), Unreadable::Gone);
    assert_eq!(scene.events(closed_at).unwrap(), [(EventType::Added, again)]);
    // Opening an open table has no effect.
    let running = scene.store.subscribe(&scene.table).expect("it is open");
    scene.store.open_table(&scene.table);
    assert!(scene.store.events_after(&scene.table, &running, again, 10).is_ok());
    assert_eq!(scene.list(again).unwrap(), ["a/x=2"]);
}
