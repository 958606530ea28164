//! One writer, many readers, and indexes that come while it writes: threads of the system.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::List;

const STEPS: u64 = 1500;
/// Always there, and always all of the same step.
const PAIRED: [&str; 3] = ["shop/a", "shop/b", "cluster"];

/// The paired objects of a step, and one that comes and goes.
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

/// The step that a snapshot is of, which all of it must be of.
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
    // Either the step is still the same, and it has all objects, or it is over, and has none.
    let indexed = by_step.get(&step.to_string());
    if indexed.resource_version() == list.resource_version() {
        assert_eq!(texts(&indexed), texts(&list));
    } else {
        assert!(indexed.is_empty() && indexed.resource_version() > list.resource_version());
    }
    assert!(by_step.values().len() == 1 && store.memory() > 0);
    *seen = step;
}

/// Every index that comes has all that is there when its handle is given out.
fn add_index(store: &Arc<Store>) {
    let index: Index = named(store, "all", |_| ["all"]);
    let list = index.get("all");
    let step = step_of(&list);
    assert_eq!(list.len(), objects(step).len(), "{list:?}");
}

/// Ends the readers, also when the writer panics.
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
