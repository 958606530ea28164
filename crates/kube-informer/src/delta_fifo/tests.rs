mod fold;
mod random;

use futures_util::FutureExt;

use super::*;
use crate::{FinalState, Indexer};

fn object(name: &str, version: u32) -> Object {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
    );
    Object::from_json(json).unwrap()
}

fn known(names: &[(&str, u32)]) -> Lister {
    let mut store = Indexer::new();
    for (name, version) in names {
        store.put(object(name, *version));
    }
    store.lister()
}

fn nothing() -> Lister {
    known(&[])
}

fn unreadable(name: &str) -> Error {
    let key = Some(ObjectKey::cluster(name));
    Error::new(crate::error::Cause::Unreadable { key }, "unreadable")
}

/// Formats a delta: `+a1`, `~a2`, `-a2`, `-a1?` (final state unknown), `=a1` (replaced), `s a1` (sync),
/// `[a1 b1]@5` (a whole list), `@7` (a bookmark), `!a` (unreadable).
fn short(delta: &Delta) -> String {
    let name = |object: &Object| format!("{}{}", object.name(), object.resource_version());
    match delta {
        Delta::Added(object) => format!("+{}", name(object)),
        Delta::Updated(object) => format!("~{}", name(object)),
        Delta::Deleted(gone) => {
            let unknown = if gone.final_state == FinalState::Unknown { "?" } else { "" };
            format!("-{}{unknown}", name(gone))
        }
        Delta::Replaced(object) => format!("={}", name(object)),
        Delta::Sync(object) => format!("s {}", name(object)),
        Delta::ReplacedAll { objects, version, .. } => {
            format!("[{}]@{version}", objects.iter().map(name).collect::<Vec<_>>().join(" "))
        }
        Delta::Bookmark(version) => format!("@{version}"),
        Delta::Unreadable { error, .. } => format!("!{}", error.key().unwrap()),
    }
}

fn pop(queue: &DeltaFifo) -> Option<String> {
    let deltas = queue.pop().now_or_never()??;
    Some(deltas.iter().map(short).collect::<Vec<_>>().join(" "))
}

fn drain(queue: &DeltaFifo) -> Vec<String> {
    std::iter::from_fn(|| pop(queue)).collect()
}

fn replace(queue: &DeltaFifo, names: &[(&str, u32)], version: &str) {
    let objects = names.iter().map(|(name, version)| object(name, *version)).collect();
    queue.clone().replace(objects, vec![], version.into()).unwrap();
}

fn add(queue: &DeltaFifo, name: &str, version: u32) {
    queue.clone().add(object(name, version)).unwrap();
}

fn update(queue: &DeltaFifo, name: &str, version: u32) {
    queue.clone().update(object(name, version)).unwrap();
}

fn delete(queue: &DeltaFifo, name: &str, version: u32) {
    queue.clone().delete(object(name, version)).unwrap();
}

#[test]
fn d1_d2_a_key_keeps_its_place_and_pop_gives_all_its_deltas_oldest_first() {
    let queue = DeltaFifo::by_key(nothing());
    add(&queue, "a", 1);
    add(&queue, "b", 2);
    update(&queue, "a", 3);
    delete(&queue, "a", 4);
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["+a1 ~a3 -a4", "+b2"]);
}

#[test]
fn d3_of_two_deletes_in_a_row_the_one_stays_that_knows_more() {
    let queue = DeltaFifo::by_key(known(&[("a", 1)]));
    replace(&queue, &[], "5");
    delete(&queue, "a", 6);
    assert_eq!(drain(&queue), ["-a6"], "a real object in place of a tombstone");
    let queue = DeltaFifo::by_key(known(&[("a", 1)]));
    delete(&queue, "a", 6);
    replace(&queue, &[], "7");
    assert_eq!(drain(&queue), ["-a6"]);
}

#[test]
fn d4_a_delete_of_what_nobody_knows_is_no_news() {
    let queue = DeltaFifo::by_key(known(&[("b", 1)]));
    delete(&queue, "a", 1);
    delete(&queue, "b", 2);
    assert_eq!(drain(&queue), ["-b2"]);
}

#[test]
fn d5_d6_d7_a_list_comes_first_then_what_is_not_in_it_also_if_only_the_queue_knew_it() {
    let queue = DeltaFifo::by_key(known(&[("k", 1), ("l", 1)]));
    add(&queue, "q", 2);
    replace(&queue, &[("l", 1), ("n", 3)], "4");
    assert_eq!(drain(&queue), ["+q2 -q2?", "=l1", "=n3", "-k1?"]);
}

#[test]
fn d8_what_was_deleted_and_is_listed_is_not_lost() {
    let queue = DeltaFifo::by_key(known(&[("a", 1)]));
    delete(&queue, "a", 2);
    replace(&queue, &[("a", 3)], "4");
    assert_eq!(drain(&queue), ["-a2 =a3"]);
}

#[test]
fn d10_f14_a_resync_leaves_out_what_waits() {
    for queue in [
        DeltaFifo::by_key(known(&[("a", 1), ("b", 1)])),
        DeltaFifo::in_order(known(&[("a", 1), ("b", 1)])),
    ] {
        update(&queue, "a", 2);
        queue.resync();
        assert_eq!(drain(&queue), ["~a2", "s b1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn d13_f5_a_change_wakes_a_waiting_pop() {
    for queue in [DeltaFifo::by_key(nothing()), DeltaFifo::in_order(nothing())] {
        for batch in [false, true] {
            let waiting = waiting_pops(&queue, &[batch]).await;
            add(&queue, "a", 1);
            assert_eq!(ended(waiting).await, [Some(1)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d13_f5_close_wakes_every_waiting_pop() {
    for queue in [DeltaFifo::by_key(nothing()), DeltaFifo::in_order(nothing())] {
        let waiting = waiting_pops(&queue, &[false, true, false, true]).await;
        queue.close();
        assert_eq!(ended(waiting).await, [None; 4]);
    }
}

type Waiting = Vec<tokio::task::JoinHandle<Option<usize>>>;

/// Spawns tasks that wait in `pop` or, if true, in `pop_batch`, and return the number of changes they got.
async fn waiting_pops(queue: &DeltaFifo, batch: &[bool]) -> Waiting {
    let pop = |batch: bool| {
        let queue = queue.clone();
        tokio::spawn(async move {
            let popped = if batch { queue.pop_batch().await } else { queue.pop().await };
            popped.map(|deltas| deltas.len())
        })
    };
    let waiting: Waiting = batch.iter().map(|batch| pop(*batch)).collect();
    tokio::task::yield_now().await;
    assert!(waiting.iter().all(|pop| !pop.is_finished()));
    assert_eq!(queue.0.inner.lock().readers.len(), waiting.len());
    waiting
}

async fn ended(tasks: Waiting) -> Vec<Option<usize>> {
    let all = futures_util::future::try_join_all(tasks);
    let soon = tokio::time::timeout(std::time::Duration::from_secs(1), all);
    soon.await.expect("every pop is woken").unwrap()
}

#[test]
fn d13_f5_a_closed_queue_still_pops_what_waits() {
    for queue in [DeltaFifo::by_key(nothing()), DeltaFifo::in_order(nothing())] {
        add(&queue, "a", 1);
        add(&queue, "b", 1);
        queue.close();
        assert_eq!(drain(&queue), ["+a1", "+b1"]);
        assert!(matches!(queue.pop().now_or_never(), Some(None)));
        assert!(matches!(queue.pop_batch().now_or_never(), Some(None)));
        // Later changes are not refused: no observed change is lost.
        add(&queue, "c", 1);
        assert_eq!(pop(&queue).as_deref(), Some("+c1"));
    }
}

#[test]
fn d15_by_key_is_synced_once_all_keys_of_the_first_list_are_popped() {
    let queue = DeltaFifo::by_key(known(&[("old", 1)]));
    assert!(!queue.has_synced());
    replace(&queue, &[("a", 1), ("b", 1), ("a", 1)], "2");
    for _ in 0..3 {
        assert!(!queue.has_synced());
        pop(&queue);
    }
    assert!(queue.has_synced(), "two keys and a delete");
    // D-17: a later list does not change that.
    replace(&queue, &[("c", 1)], "3");
    assert!(queue.has_synced());
}

#[test]
fn d15_an_empty_list_syncs_by_key_at_once_and_in_order_once_it_is_popped() {
    let queue = DeltaFifo::by_key(nothing());
    replace(&queue, &[], "2");
    assert!(queue.has_synced());
    // F-24
    let queue = DeltaFifo::in_order(nothing());
    replace(&queue, &[], "2");
    assert!(!queue.has_synced());
    assert_eq!(pop(&queue).as_deref(), Some("[]@2"));
    assert!(queue.has_synced());
}

#[test]
fn d15_f6_what_comes_before_any_list_means_that_there_is_none_to_wait_for() {
    for queue in [DeltaFifo::by_key(nothing()), DeltaFifo::in_order(nothing())] {
        add(&queue, "a", 1);
        assert!(queue.has_synced());
    }
}

#[test]
fn f1_f2_f3_in_order_everything_comes_alone_as_it_came_and_a_delete_always() {
    let queue = DeltaFifo::in_order(nothing());
    add(&queue, "a", 1);
    add(&queue, "b", 2);
    update(&queue, "a", 3);
    delete(&queue, "x", 4);
    assert_eq!(drain(&queue), ["+a1", "+b2", "~a3", "-x4"]);
}

#[test]
fn f20_f23_a_list_is_one_delta_and_a_bookmark_has_its_place() {
    let mut queue = DeltaFifo::in_order(known(&[("gone", 1)]));
    add(&queue, "a", 1);
    queue.bookmark("2".into()).unwrap();
    replace(&queue, &[("b", 3)], "4");
    assert_eq!(drain(&queue), ["+a1", "@2", "[b3]@4"]);
}

#[test]
fn f30_f31_a_batch_is_bounded_and_a_list_comes_alone() {
    let queue = DeltaFifo::in_order(nothing());
    for version in 0..300 {
        update(&queue, "a", version);
    }
    replace(&queue, &[("b", 301)], "301");
    add(&queue, "c", 302);
    let sizes: Vec<_> = std::iter::from_fn(|| queue.pop_batch().now_or_never()?)
        .map(|deltas| deltas.len())
        .collect();
    assert_eq!(sizes, [256, 44, 1, 1]);
}

#[test]
fn i19_a_full_queue_stops_the_reader_until_something_is_popped() {
    let mut queue = DeltaFifo::in_order(nothing());
    let ready = |queue: &mut DeltaFifo| {
        poll_fn(|context| queue.poll_ready(context)).now_or_never().is_some()
    };
    for version in 0..QUEUE_DELTAS_MAX as u32 {
        assert!(ready(&mut queue));
        update(&queue, "a", version);
    }
    assert!(!ready(&mut queue));
    queue.close();
    assert!(!ready(&mut queue), "it is bounded also when it is closed");
    pop(&queue);
    assert!(ready(&mut queue));
}

#[test]
fn what_waits_can_be_asked_by_key() {
    for queue in [DeltaFifo::by_key(nothing()), DeltaFifo::in_order(nothing())] {
        add(&queue, "b", 1);
        add(&queue, "a", 1);
        update(&queue, "b", 2);
        assert_eq!(queue.keys(), [ObjectKey::cluster("b"), ObjectKey::cluster("a")]);
        let waiting: Vec<_> = queue.get(&ObjectKey::cluster("b")).iter().map(short).collect();
        assert_eq!(waiting, ["+b1", "~b2"]);
        assert!(queue.get(&ObjectKey::cluster("x")).is_empty());
    }
}

#[test]
fn a_waiting_list_can_be_asked_by_key() {
    let mut queue = DeltaFifo::in_order(nothing());
    add(&queue, "b", 1);
    queue.replace(vec![object("a", 2), object("b", 3)], vec![unreadable("c")], "4".into()).unwrap();
    queue.unreadable(unreadable("d"), "5".into(), false).unwrap();
    assert_eq!(queue.keys(), ["b", "a", "c", "d"].map(ObjectKey::cluster));
    let get = |name| queue.get(&ObjectKey::cluster(name)).iter().map(short).collect::<Vec<_>>();
    assert_eq!(get("b"), ["+b1", "=b3"]);
    assert_eq!(get("a"), ["=a2"]);
    assert_eq!(get("c"), ["!c"]);
    assert_eq!(get("d"), ["!d"]);
}

#[test]
fn list_returns_everything_and_pops_nothing() {
    for (queue, expected) in [
        (DeltaFifo::by_key(nothing()), ["=a1", "~a3", "=b1"].as_slice()),
        (DeltaFifo::in_order(nothing()), &["[a1 b1]@2", "~a3"]),
    ] {
        replace(&queue, &[("a", 1), ("b", 1)], "2");
        update(&queue, "a", 3);
        let list = || queue.list().iter().map(short).collect::<Vec<_>>();
        assert_eq!(list(), expected);
        assert_eq!(list(), expected);
        assert!(!queue.has_synced());
    }
}

#[test]
fn d14_f34_popped_deltas_say_whether_they_are_initial() {
    let all = |queue: &DeltaFifo| -> Vec<(String, bool)> {
        let pop = || queue.pop_batch().now_or_never().flatten();
        let short = |deltas: Deltas| (short(&deltas[0]), deltas.initial);
        std::iter::from_fn(pop).map(short).collect()
    };
    let queue = DeltaFifo::by_key(known(&[("old", 1)]));
    replace(&queue, &[("a", 1), ("b", 1)], "2");
    add(&queue, "c", 3);
    let expected = [("=a1", true), ("=b1", true), ("-old1?", true), ("+c3", false)];
    assert_eq!(all(&queue), expected.map(|(delta, initial)| (delta.to_owned(), initial)));

    let mut queue = DeltaFifo::in_order(nothing());
    queue.bookmark("1".into()).unwrap();
    replace(&queue, &[("a", 1), ("b", 1)], "2");
    add(&queue, "c", 3);
    replace(&queue, &[("d", 4)], "5");
    let expected = [("@1", true), ("[a1 b1]@2", true), ("+c3", false), ("[d4]@5", false)];
    assert_eq!(all(&queue), expected.map(|(delta, initial)| (delta.to_owned(), initial)));

    // Without a list to wait for, no change is initial.
    let queue = DeltaFifo::in_order(nothing());
    add(&queue, "a", 1);
    replace(&queue, &[("a", 1)], "2");
    assert!(all(&queue).iter().all(|(_, initial)| !initial));
}

#[test]
fn a_resync_never_revives_what_waits_to_be_deleted() {
    let queue = DeltaFifo::in_order(known(&[("a", 1), ("b", 1)]));
    replace(&queue, &[("b", 2)], "3");
    queue.resync();
    assert_eq!(drain(&queue), ["[b2]@3"]);
    let mut queue = DeltaFifo::in_order(known(&[("a", 1), ("b", 1)]));
    queue.unreadable(unreadable("a"), "2".into(), true).unwrap();
    queue.resync();
    assert_eq!(drain(&queue), ["!a", "s b1"]);
}

#[test]
fn an_object_that_cannot_be_read_is_gone_all_the_same_when_it_is_deleted() {
    let mut queue = DeltaFifo::by_key(known(&[("a", 1)]));
    queue.unreadable(unreadable("a"), "2".into(), false).unwrap();
    assert_eq!(drain(&queue), [] as [&str; 0]);
    queue.unreadable(unreadable("a"), "3".into(), true).unwrap();
    assert_eq!(drain(&queue), ["-a1?"]);
    // The list contains the object, so it is not deleted.
    queue.replace(vec![], vec![unreadable("a")], "4".into()).unwrap();
    assert_eq!(drain(&queue), [] as [&str; 0]);
}
