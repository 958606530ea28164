//! `Indexer::process`: popped changes in, events for handlers out.

use super::*;

/// Formats the events as in [`said`]; `s a@1` is a resync.
fn process(store: &mut Indexer, deltas: Vec<Delta>, initial: bool) -> String {
    let one = |event: &Event| match event {
        Event::Added { object, initial: true } => format!("*{}", text(object)),
        Event::Added { object, initial: false } => format!("+{}", text(object)),
        Event::Updated { old, new } if old.is_same_instance(new) => format!("={}", text(new)),
        Event::Updated { old, new } => format!("{}>{}", text(old), text(new)),
        Event::Deleted(gone) if gone.final_state == FinalState::Known => {
            format!("-{}", text(&gone.object))
        }
        Event::Deleted(gone) => format!("?{}", text(&gone.object)),
        Event::Resynced(object) => format!("s {}", text(object)),
        Event::Synced => "synced".to_owned(),
    };
    let events = store.process(Deltas { deltas, initial });
    events.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn list(objects: &[&str], version: &str) -> Vec<Delta> {
    let objects = objects.iter().map(|text| object(text)).collect();
    vec![Delta::ReplacedAll { objects, unreadable: vec![], version: version.into() }]
}

#[test]
fn c10_c11_the_store_decides_which_event_a_delta_is() {
    let mut store = Indexer::new();
    let deltas = vec![
        Delta::Updated(object("a@1")),
        Delta::Added(object("a@2")),
        Delta::Added(object("a@2")),
        deleted(object("b@3")),
        deleted(object("a@4")),
        Delta::Replaced(object("a@5")),
    ];
    assert_eq!(process(&mut store, deltas, false), "+a@1 a@1>a@2 -a@4 +a@5");
    assert_eq!(content(&store.store), "a@5 at 5");
}

#[test]
fn c13_c22_a_list_is_told_with_its_deletes_first() {
    let mut store = Indexer::new();
    assert_eq!(
        process(&mut store, list(&["a@1", "b@2", "c@3"], "3"), true),
        "*a@1 *b@2 *c@3 synced"
    );
    let told = process(&mut store, list(&["d@6", "c@3", "b@5"], "6"), false);
    assert_eq!(told, "?a@1 b@2>b@5 +d@6 =c@3");
    assert_eq!(store.resource_version(), "6");
}

#[test]
fn d14_c22_adds_are_initial_if_the_queue_says_so() {
    let mut store = Indexer::new();
    assert_eq!(process(&mut store, vec![Delta::Replaced(object("a@1"))], true), "*a@1");
    assert_eq!(process(&mut store, vec![Delta::Replaced(object("b@1"))], false), "+b@1");
    // Changes came before the list, so there was no list to wait for.
    assert_eq!(process(&mut store, list(&["c@2"], "2"), false), "?a@1 ?b@1 +c@2 synced");
}

#[test]
fn c15_a_resync_repeats_what_the_store_has_and_changes_nothing() {
    let mut store = Indexer::new();
    process(&mut store, list(&["a@3"], "3"), true);
    // It was queued before a newer state or the delete had been processed.
    let deltas = vec![Delta::Sync(object("a@2")), Delta::Sync(object("gone@4"))];
    assert_eq!(process(&mut store, deltas, false), "s a@3");
    assert_eq!(content(&store.store), "a@3 at 3");
}

#[test]
fn c16_a_bookmark_moves_the_version_and_is_no_event() {
    let mut store = Indexer::new();
    process(&mut store, list(&["a@3"], "3"), true);
    assert_eq!(process(&mut store, vec![Delta::Bookmark("9".into())], false), "");
    assert_eq!(content(&store.store), "a@3 at 9");
}

#[test]
fn c23_objects_of_a_list_are_told_also_unchanged_and_in_any_state() {
    let mut store = Indexer::new();
    let first = labelled("a@7", &[("history", "first")]);
    process(&mut store, vec![Delta::Replaced(first.clone())], true);
    let again = vec![Delta::Replaced(labelled("a@7", &[("history", "first")]))];
    assert_eq!(process(&mut store, again, false), "=a@7");
    assert!(store.lister().get("a").unwrap().is_same_instance(&first));
    // The server was restored from a backup: its versions start again.
    let other = vec![Delta::Replaced(labelled("a@7", &[("history", "second")]))];
    assert_eq!(process(&mut store, other, false), "a@7>a@7");
    assert_eq!(process(&mut store, vec![Delta::Replaced(object("a@5"))], false), "a@7>a@5");
}

#[test]
fn unreadable_objects_are_deleted_or_stay_as_they_are() {
    let mut store = Indexer::new();
    process(&mut store, list(&["a@1", "b@1"], "1"), true);
    let unreadable =
        |key, deleted| Delta::Unreadable { error: unreadable(key), version: "2".into(), deleted };
    let deltas = vec![unreadable("a", false), unreadable("b", true)];
    assert_eq!(process(&mut store, deltas, false), "?b@1");
    assert_eq!(content(&store.store), "a@1 at 2");
}
