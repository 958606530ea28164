//! Races while the lock is not held, one interleaving at a time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use parking_lot::Mutex;

use super::index::{Definition, Owner, Source};
use super::*;

/// A point at which a thread waits until another thread releases it or is gone. Only the first thread to arrive
/// waits.
struct Gate {
    arrived: Receiver<()>,
    go_on: SyncSender<()>,
}

fn gate() -> (Gate, impl Fn() + Send + Sync) {
    let ((arrive, arrived), (go_on, wait)) = (sync_channel(1), sync_channel(1));
    let once = Mutex::new(Some((arrive, wait)));
    let pass = move || {
        let first = once.lock().take();
        if let Some((arrive, wait)) = first {
            arrive.send(()).unwrap();
            wait.recv().ok();
        }
    };
    (Gate { arrived, go_on }, pass)
}

/// Returns an index whose function waits at a gate when it is first called for this object.
fn gated(store: &Arc<Store>, object: &'static str) -> (Index, Gate) {
    let (gate, pass) = gate();
    let index = named(store, "gated", move |other: &Object| {
        if text(other) == object {
            pass();
        }
        [text(other)]
    });
    (index, gate)
}

#[test]
fn i15_an_index_that_comes_while_a_write_asks_the_others_misses_nothing() {
    let store = Store::new();
    put(&store, "a@1");
    let (_index, gate) = gated(&store, "a@2");
    thread::scope(|scope| {
        let gate = gate;
        let write = scope.spawn(|| apply(&store, vec![put_delta(tagged("a@2", "new"))]));
        gate.arrived.recv().unwrap();
        let index = by_tags(&store);
        assert!(index.values().is_empty());
        gate.go_on.send(()).unwrap();
        assert_eq!(said(&write.join().unwrap()), "a@1>a@2");
        assert_eq!(index.keys("new").len(), 1);
    });
}

#[test]
fn i15_an_index_that_comes_while_a_replace_asks_the_others_misses_nothing() {
    let store = Store::new();
    apply(&store, vec![put_delta(tagged("a@1", "old")), put_delta(tagged("same@1", "same"))]);
    let (_index, gate) = gated(&store, "b@2");
    thread::scope(|scope| {
        let gate = gate;
        let list = vec![tagged("b@2", "new"), tagged("same@1", "same")];
        let replace = scope.spawn(|| replace(&store, list, &[], "2"));
        gate.arrived.recv().unwrap();
        let index = by_tags(&store);
        assert_eq!(index.values().join(" "), "old same");
        gate.go_on.send(()).unwrap();
        assert_eq!(said(&replace.join().unwrap()), "?a@1 *b@2 =same@1 synced");
        assert_eq!(index.values().join(" "), "new same");
    });
}

#[test]
fn i15_what_is_written_while_an_index_is_filled_is_not_overwritten() {
    let store = Store::new();
    apply(&store, ["a@1", "b@1", "c@1"].map(|text| put_delta(object(text))).into());
    let (gate, pass) = gate();
    thread::scope(|scope| {
        let gate = gate;
        let fill = scope.spawn(|| -> Index {
            named(&store, "slow", move |object| {
                if text(object) == "b@1" {
                    pass();
                }
                [text(object)]
            })
        });
        gate.arrived.recv().unwrap();
        // An index that is not complete cannot be queried.
        assert!(store.by_index("slow", "a@1").unwrap_err().is_unknown_index());
        apply(&store, vec![put_delta(object("b@2")), deleted(object("c@3"))]);
        // It takes the slot of the deleted object.
        apply(&store, vec![put_delta(object("d@4"))]);
        gate.go_on.send(()).unwrap();
        let index = fill.join().unwrap();
        assert_eq!(index.values().join(" "), "a@1 b@2 d@4");
        assert_eq!(store.by_index("slow", "a@1").unwrap().0.len(), 1);
    });
}

#[test]
fn an_index_that_somebody_else_is_filling_is_given_out_when_it_is_whole() {
    let store = Store::new();
    apply(&store, vec![put_delta(tagged("a@1", "x"))]);
    // The state that another thread leaves when it has only just started.
    let definition = Definition::new("label:tags".into(), Source::Label("tags".into()));
    let _owner = store.register(&Owner::new(&store, definition));
    assert!(store.by_index("label:tags", "x").is_err());
    let index = Index::<Untyped>::label(&store, None, "tags");
    assert_eq!(index.keys("x").len(), 1);
    assert_eq!(store.by_index("label:tags", "x").unwrap().0.len(), 1);
}
