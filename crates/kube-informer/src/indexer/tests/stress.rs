//! One writer, many readers, and indexes that are added in the meantime, on OS threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::List;

const STEPS: u64 = 1500;
/// Always present, and always from the same step.
const PAIRED: [&str; 3] = ["shop/a", "shop/b", "cluster"];

/// Returns the paired objects of a step, and one that is sometimes absent.
fn objects(step: u64) -> Vec<Object> {
    let label = step.to_string();
    let labels = [("step", &*label)];
    let paired = PAIRED.iter().zip(1..);
    let mut objects: Vec<Object> =
        paired.map(|(key, nth)| labelled(&format!("{key}@{}", step * 10 + nth), &labels)).collect();
    if step.is_multiple_of(3) {
        objects.push(labelled(&format!("shop/extra@{}", step * 10 + 4), &labels));
    }
    objects
}

fn write_step(store: &Store, step: u64) {
    if step.is_multiple_of(5) {
        replace(store, objects(step), &[], &(step * 10 + 5).to_string());
        return;
    }
    let mut changes = Vec::new();
    if (step - 1).is_multiple_of(3) {
        changes.push(deleted(object(&format!("shop/extra@{}", step * 10))));
    }
    changes.extend(objects(step).into_iter().map(put_delta));
    changes.push(Delta::Bookmark((step * 10 + 5).into()));
    apply(store, changes);
}

/// Returns the step of a snapshot, all of which must be from the same step.
fn step_of(list: &List) -> u64 {
    let steps: BTreeSet<_> = list.iter().filter_map(|object| object.labels().get("step")).collect();
    assert_eq!(steps.len(), 1, "{list:?}");
    let step: u64 = steps.first().unwrap().parse().unwrap();
    assert_eq!(list.resource_version(), &ResourceVersion::from(step * 10 + 5), "{list:?}");
    step
}

fn read(store: &Arc<Store>, by_step: &Index, seen: &mut u64) {
    let lister = lister(store);
    let list = lister.list();
    let step = step_of(&list);
    assert_eq!(list.len(), objects(step).len(), "{list:?}");
    assert!(*seen <= step, "from {seen} back to {step}");
    let shop = lister.namespace("shop").list();
    assert!(step <= step_of(&shop));
    // Either the step is current, and has all objects, or it is over, and has none.
    let indexed = by_step.get(&step.to_string());
    if indexed.resource_version() == list.resource_version() {
        assert_eq!(texts(&indexed), texts(&list));
    } else {
        assert!(indexed.is_empty() && indexed.resource_version() > list.resource_version());
    }
    assert!(by_step.values().len() == 1 && store.memory() > 0);
    *seen = step;
}

/// Checks that a new index is complete when its handle is returned.
fn add_index(store: &Arc<Store>) {
    let index: Index = named(store, "all", |_| ["all"]);
    let list = index.get("all");
    let step = step_of(&list);
    assert_eq!(list.len(), objects(step).len(), "{list:?}");
}

/// A guard that ends the readers, even if the writer panics.
struct Done<'a>(&'a AtomicBool);
impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn i5_i9_i15_b20_s4_readers_only_see_whole_writes_with_their_version() {
    let store = Store::new();
    let by_step: Index = Index::label(&store, None, "step");
    write_step(&store, 0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (mut seen, mut last) = (0, false);
                while !last {
                    last = done.load(Ordering::Acquire);
                    read(&store, &by_step, &mut seen);
                }
                assert_eq!(seen, STEPS);
            });
        }
        scope.spawn(|| (0..30).for_each(|_| add_index(&store)));
        let _done = Done(&done);
        for step in 1..=STEPS {
            write_step(&store, step);
        }
    });
    assert_eq!(store.resource_version(), ResourceVersion::from(STEPS * 10 + 5));
}
