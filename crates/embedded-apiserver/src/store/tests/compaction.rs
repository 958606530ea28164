//! Compaction.

use std::sync::Weak;

use super::*;

const EXPIRED: fn(u64) -> Unreadable = |oldest| Unreadable::Expired { oldest };

#[test]
fn only_what_a_reader_from_then_on_sees_is_kept() {
    let scene = Scene::new();
    let mut versions = Vec::new();
    for n in 1..=5 {
        versions.push(scene.put("a", "x", &n.to_string()));
    }
    scene.put("a", "other", "1");
    let before: Vec<_> = versions.iter().map(|&version| scene.list(version).unwrap()).collect();
    scene.store.compact(versions[2]);
    assert_eq!(scene.versions("a", "x"), &versions[2..], "the state in force then stays");
    assert_eq!(scene.store.compacted_revision(), versions[2]);
    for (version, list) in versions.iter().zip(before) {
        if *version < versions[2] {
            assert_eq!(scene.list(*version), Err(EXPIRED(versions[2])));
            assert_eq!(scene.events(*version), Err(EXPIRED(versions[2])));
        } else {
            assert_eq!(scene.list(*version).unwrap(), list);
        }
    }
    let left: Vec<_> = scene.events(versions[2]).unwrap().iter().map(|event| event.1).collect();
    assert_eq!(left, [versions[3], versions[4], versions[4] + 1]);
}

#[test]
fn compacting_backwards_or_beyond_the_end_is_harmless() {
    let scene = Scene::new();
    let one = scene.put("a", "x", "1");
    let two = scene.put("a", "x", "2");
    scene.store.compact(u64::MAX);
    assert_eq!(scene.store.compacted_revision(), two);
    scene.store.compact(one);
    scene.store.compact(0);
    assert_eq!(scene.store.compacted_revision(), two);
    assert_eq!(scene.list(two).unwrap(), ["a/x=2"]);
    assert_eq!(scene.put("a", "x", "3"), two + 1);
}

#[test]
fn a_key_that_came_and_went_is_forgotten_whole() {
    let scene = Scene::new();
    scene.put("a", "x", "1");
    scene.delete("a", "x");
    scene.put("a", "x", "2");
    let gone = scene.delete("a", "x");
    scene.store.compact(gone - 1);
    assert_eq!(scene.versions("a", "x"), [gone - 1, gone]);
    scene.store.compact(gone);
    assert!(scene.versions("a", "x").is_empty());
    let empty: [&str; 0] = [];
    assert_eq!(scene.list(gone).unwrap(), empty);
    let history = scene.store.state.read().history_bytes;
    assert_eq!(history, 0, "every byte of it was counted and given back");
}

#[test]
fn a_key_that_was_made_again_keeps_its_new_life() {
    // At the version of a compaction, the current state is kept, but a deletion is not.
    for (at, oldest_kept) in [(2, 2), (3, 4), (4, 4), (5, 5), (6, 7), (7, 7)] {
        let scene = Scene::new();
        assert_eq!(scene.put("a", "x", "1"), 2);
        scene.delete("a", "x");
        scene.put("a", "x", "2");
        scene.put("a", "x", "3");
        scene.delete("a", "x");
        assert_eq!(scene.put("a", "x", "4"), 7);
        let lists: Vec<_> = (2..=7).map(|version| scene.list(version).unwrap()).collect();
        scene.store.compact(at);
        for (version, list) in (2..=7).zip(lists).filter(|(version, _)| *version >= at) {
            assert_eq!(scene.list(version).unwrap(), list, "{version} after {at}");
        }
        assert_eq!(scene.versions("a", "x")[0], oldest_kept, "after {at}");
    }
}

#[test]
fn what_is_forgotten_is_freed() {
    let scene = Scene::new();
    let key = Key::new("a", "x");
    let states: Vec<Weak<Revision>> = (0..4)
        .map(|n| {
            scene.put("a", "x", &n.to_string());
            Arc::downgrade(&scene.store.get(&scene.table, &key).expect("it was put"))
        })
        .collect();
    let alive = |states: &[Weak<Revision>]| -> Vec<bool> {
        states.iter().map(|state| state.strong_count() > 0).collect()
    };
    assert_eq!(alive(&states), [true; 4]);
    let held = scene.store.state.read().history_bytes;
    assert!(held > 0);
    scene.store.compact(4);
    assert_eq!(alive(&states), [false, false, true, true]);
    assert!(scene.store.state.read().history_bytes < held);
    scene.store.compact(5);
    assert_eq!(alive(&states), [false, false, false, true]);
    assert_eq!(scene.store.state.read().history_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn the_window_forgets_by_age() {
    let window = Duration::from_secs(60);
    let scene = Scene::with(window, usize::MAX);
    let old = scene.put("a", "x", "1");
    let newer = scene.put("a", "x", "2");
    tokio::time::advance(window).await;
    scene.put("a", "x", "3");
    assert_eq!(scene.list(old).unwrap(), ["a/x=1"], "a window old is within the window");
    tokio::time::advance(Duration::from_secs(1)).await;
    let newest = scene.put("a", "x", "4");
    let compacted = scene.store.compacted_revision();
    assert!(compacted >= old && compacted <= newer, "{compacted}: what is younger stays");
    for _ in 0..3 {
        tokio::time::advance(window).await;
        scene.put("a", "x", "5");
    }
    assert!(scene.list(newest).is_err());
    assert!(scene.versions("a", "x").len() <= 3, "{:?}", scene.versions("a", "x"));
}

#[tokio::test(start_paused = true)]
async fn a_write_every_second_keeps_a_window_of_them() {
    let scene = Scene::with(Duration::from_secs(60), usize::MAX);
    for n in 0..1000_u32 {
        let version = scene.put("a", "x", &n.to_string());
        tokio::time::advance(Duration::from_secs(1)).await;
        let kept = version - scene.store.compacted_revision();
        assert!(n < 70 || (60..=70).contains(&kept), "{kept} are kept after {n} seconds");
    }
    assert!(scene.store.state.read().marks.len() <= 18);
}

#[test]
fn too_many_bytes_forget_the_older_half() {
    let max = 20_000;
    let scene = Scene::with(Duration::from_secs(300), max);
    let value = "v".repeat(1000);
    for n in 0..200 {
        let version = scene.put("a", &format!("x{}", n % 3), &format!("{value}{n}"));
        let state = scene.store.state.read();
        assert!(state.history_bytes <= max, "{} bytes", state.history_bytes);
        drop(state);
        assert_eq!(scene.list(version).unwrap().len(), 3.min(n + 1));
    }
    assert!(scene.store.compacted_revision() > 150);
    // The counted bytes match the stored ones.
    let names = ["x0", "x1", "x2"];
    let superseded = names.map(|name| {
        let history = scene.store.history(&scene.table, &Key::new("a", name));
        let (_, old) = history.split_last().expect("it is live");
        old.iter().map(|state| state.line().len()).sum::<usize>()
    });
    assert_eq!(scene.store.state.read().history_bytes, superseded.iter().sum::<usize>());
}

#[test]
fn a_running_watch_outlives_the_compaction_of_other_tables() {
    let scene = Scene::new();
    let other: Arc<str> = "nodes".into();
    scene.store.open_table(&other);
    let position = scene.put("a", "x", "1");
    let subscription = scene.store.subscribe(&scene.table).expect("it is open");
    for n in 0..5 {
        scene.store.put(&other, Expected::Absent, &scene.draft("", &n.to_string(), "1")).unwrap();
    }
    scene.store.compact(u64::MAX);
    let next = scene.put("a", "x", "2");
    let batch = scene.store.events_after(&scene.table, &subscription, position, 10);
    assert_eq!(batch.unwrap().events[0].revision.version(), next);
    assert!(scene.events(position).is_err(), "a new watch from there cannot know");
    // A watcher that would miss events receives an error.
    scene.put("a", "x", "3");
    scene.store.compact(u64::MAX);
    let missed = scene.store.events_after(&scene.table, &subscription, next, 10);
    assert_eq!(missed.unwrap_err(), EXPIRED(next + 1));
}
