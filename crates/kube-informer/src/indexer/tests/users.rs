//! User code: functions of indexes, and the `Drop` of types that objects are kept decoded as.

use std::cell::{Cell, RefCell};
use std::sync::Weak;

use super::*;
use crate::Transform;
use crate::object::Packer;

thread_local! {
    static STORE: RefCell<Weak<Store>> = const { RefCell::new(Weak::new()) };
    static DROPS: Cell<usize> = const { Cell::new(0) };
    static UNDER_LOCK: Cell<usize> = const { Cell::new(0) };
}

/// A user type that checks on drop whether the store is locked.
struct Watchful;

impl Drop for Watchful {
    fn drop(&mut self) {
        DROPS.set(DROPS.get() + 1);
        look();
    }
}

fn look() {
    let store = STORE.with_borrow(Weak::upgrade);
    if store.is_some_and(|store| store.is_locked()) {
        UNDER_LOCK.set(UNDER_LOCK.get() + 1);
    }
}

#[test]
fn no_code_of_users_runs_under_the_lock() {
    let store = Store::new();
    STORE.set(Arc::downgrade(&store));
    let packer = Packer::new(Transform::default(), Some(|_| Ok(Arc::new(Watchful))), false);
    let watchful = |text| packer.repack(object(text)).unwrap();
    let by_name = || -> Index {
        named(&store, "name", |object| {
            look();
            [object.name().to_owned()]
        })
    };
    let names = by_name();
    let drops = |work: &dyn Fn()| {
        let before = DROPS.get();
        work();
        DROPS.get() - before
    };
    let apply = |delta: Delta| drop(apply(&store, vec![delta]));
    assert_eq!(drops(&|| apply(put_delta(watchful("a@2")))), 0);
    assert_eq!(drops(&|| apply(put_delta(watchful("a@2")))), 1);
    assert_eq!(drops(&|| apply(put_delta(watchful("a@1")))), 1);
    assert_eq!(drops(&|| apply(put_delta(watchful("a@3")))), 1);
    assert_eq!(drops(&|| apply(deleted(watchful("a@1")))), 1);
    assert_eq!(drops(&|| apply(deleted(watchful("b@1")))), 1);
    assert_eq!(drops(&|| apply(deleted(watchful("a@4")))), 2);
    apply(put_delta(watchful("a@5")));
    assert_eq!(drops(&|| apply(missed(watchful("a@5")))), 2);
    let list = |texts: &[&'static str]| {
        let objects = texts.iter().map(|text| watchful(text)).collect();
        drop(replace(&store, objects, &[], "9"));
    };
    assert_eq!(drops(&|| list(&["a@6", "b@6", "a@7"])), 1);
    assert_eq!(drops(&|| list(&["a@7", "b@8"])), 2);
    let write = |delta| drop(write(&store, vec![delta], Accept::Any));
    assert_eq!(drops(&|| write(put_delta(watchful("a@7")))), 1);
    assert_eq!(drops(&|| write(missed(watchful("a@7")))), 2);
    drop(names);
    assert_eq!(drops(&|| drop(by_name())), 0);
    assert_eq!(drops(&|| list(&[])), 1);
    assert_eq!(UNDER_LOCK.get(), 0);
}

#[test]
fn functions_of_indexes_may_use_the_store_that_they_are_of() {
    let store = Store::new();
    put(&store, "a@1");
    let inner = Arc::downgrade(&store);
    let index: Index = named(&store, "nosy", move |object| {
        let store = inner.upgrade()?;
        let labels: Index = Index::label(&store, None, "app");
        let there = store.get(object.key().into()).is_some();
        Some(format!("{there} {} {}", store.len(), labels.values().len()))
    });
    put(&store, "b@2");
    replace(&store, vec![object("c@3"), object("b@2")], &[], "3");
    assert_eq!(index.values().join(", "), "false 1 0, false 2 0");
    drop(index);
    assert_eq!(Arc::strong_count(&store), 1);
}
