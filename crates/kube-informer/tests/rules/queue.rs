//! D- and F-: the queue.

use futures::FutureExt;
use kube_informer::reflector::ReflectorStore;
use kube_informer::{Delta, DeltaFifo, FinalState, Indexer};

use crate::scene::object;

/// Prints a delta: `+a`, `~a`, `-a`, `?a` for a missed delete, `=a` of a list, `[a b]` for a whole
/// list.
fn short(delta: &Delta) -> String {
    match delta {
        Delta::Added(object) => format!("+{}", object.name()),
        Delta::Updated(object) => format!("~{}", object.name()),
        Delta::Deleted(gone) if gone.final_state == FinalState::Known => {
            format!("-{}", gone.name())
        }
        Delta::Deleted(gone) => format!("?{}", gone.name()),
        Delta::Replaced(object) => format!("={}", object.name()),
        Delta::ReplacedAll { objects, .. } => {
            let names: Vec<_> = objects.iter().map(kube_informer::Object::name).collect();
            format!("[{}]", names.join(" "))
        }
        Delta::Sync(object) => format!("sync {}", object.name()),
        Delta::Bookmark(version) => format!("@{version}"),
        _ => "?".to_owned(),
    }
}

fn drain(queue: &DeltaFifo) -> Vec<String> {
    let pop = || queue.pop().now_or_never().flatten();
    std::iter::from_fn(pop).flatten().map(|delta| short(&delta)).collect()
}

fn knowing(names: &[&str]) -> Indexer {
    let mut store = Indexer::new();
    for name in names {
        store.put(object(name, 1));
    }
    store
}

#[test]
fn d4_d15_a_dropped_delete_still_counts_as_a_first_change() {
    let mut queue = DeltaFifo::by_key(knowing(&[]).lister());
    queue.delete(object("never", 1)).unwrap();
    assert!(queue.is_empty() && queue.has_synced());
}

#[test]
fn d9_tombstones_follow_the_order_of_queue_then_store() {
    let mut queue = DeltaFifo::by_key(knowing(&["z", "k", "b"]).lister());
    for name in ["y", "c"] {
        queue.add(object(name, 2)).unwrap();
    }
    queue.replace(vec![object("n", 3)], vec![], 4.into()).unwrap();
    assert_eq!(drain(&queue), ["+y", "?y", "+c", "?c", "=n", "?z", "?k", "?b"]);
}

#[test]
fn f12_a_queued_delete_stays_before_the_next_list() {
    let mut queue = DeltaFifo::in_order(knowing(&["a"]).lister());
    queue.delete(object("a", 2)).unwrap();
    queue.replace(vec![object("a", 3)], vec![], 4.into()).unwrap();
    assert_eq!(drain(&queue), ["-a", "[a]"]);
}

#[test]
fn f22_a_resync_skips_objects_with_queued_changes() {
    let mut queue = DeltaFifo::in_order(knowing(&["a", "b", "c"]).lister());
    queue.update(object("b", 2)).unwrap();
    queue.resync();
    assert_eq!(drain(&queue), ["~b", "sync a", "sync c"]);
    queue.replace(vec![object("b", 2)], vec![], 4.into()).unwrap();
    queue.resync();
    assert_eq!(drain(&queue), ["[b]"], "a list is about all of them");
}

#[test]
fn f23_a_bookmark_does_not_say_that_no_list_is_awaited() {
    let mut queue = DeltaFifo::in_order(knowing(&[]).lister());
    queue.bookmark(3.into()).unwrap();
    assert!(!queue.has_synced());
    assert_eq!(drain(&queue), ["@3"]);
    assert!(!queue.has_synced());
}

#[tokio::test(start_paused = true)]
async fn f26_any_number_may_pop_and_each_delta_goes_to_one_of_them() {
    let mut queue = DeltaFifo::in_order(knowing(&[]).lister());
    let poppers = [(); 3].map(|()| {
        let queue = queue.clone();
        tokio::spawn(async move {
            let mut popped = vec![];
            while let Some(deltas) = queue.pop().await {
                popped.extend(deltas.iter().map(short));
            }
            popped
        })
    });
    tokio::task::yield_now().await;
    for version in 0..10 {
        queue.update(object(&version.to_string(), version)).unwrap();
        tokio::task::yield_now().await;
    }
    queue.close();
    let mut all = vec![];
    for popper in poppers {
        all.extend(popper.await.unwrap());
    }
    all.sort();
    assert_eq!(all, (0..10).map(|version| format!("~{version}")).collect::<Vec<_>>());
}
