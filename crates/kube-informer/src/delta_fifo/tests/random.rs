//! Random writes and pops: the queries of a queue agree with what is popped.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Add(&'static str),
    Update(&'static str),
    Delete(&'static str),
    Unreadable { name: &'static str, deleted: bool },
    Replace { names: Vec<&'static str>, unreadable: Vec<&'static str> },
    Bookmark,
    Resync,
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || select(&NAMES[..]);
    let list = (vec(name(), 0..4), vec(name(), 0..3));
    prop_oneof![
        2 => name().prop_map(Step::Add),
        2 => name().prop_map(Step::Update),
        2 => name().prop_map(Step::Delete),
        1 => (name(), any::<bool>()).prop_map(|(name, deleted)| Step::Unreadable { name, deleted }),
        2 => list.prop_map(|(names, unreadable)| Step::Replace { names, unreadable }),
        1 => Just(Step::Bookmark),
        1 => Just(Step::Resync),
        4 => Just(Step::Pop),
    ]
}

fn queues() -> [DeltaFifo; 2] {
    let known = known(&[("a", 1), ("b", 1)]);
    [DeltaFifo::by_key(known.clone()), DeltaFifo::in_order(known)]
}

/// Performs any step except a pop. The version serves as the time.
fn write(queue: &DeltaFifo, step: &Step, version: u32) {
    let (mut store, at) = (queue.clone(), ResourceVersion::from(u64::from(version)));
    match step {
        Step::Add(name) => add(queue, name, version),
        Step::Update(name) => update(queue, name, version),
        Step::Delete(name) => delete(queue, name, version),
        Step::Unreadable { name, deleted } => {
            store.unreadable(unreadable(name), at, *deleted).unwrap();
        }
        Step::Replace { names, unreadable } => {
            let objects = names.iter().map(|name| object(name, version)).collect();
            let unreadable = unreadable.iter().map(|name| self::unreadable(name)).collect();
            store.replace(objects, unreadable, at).unwrap();
        }
        Step::Bookmark => store.bookmark(at).unwrap(),
        Step::Resync => queue.resync(),
        Step::Pop => {}
    }
}

/// Returns the changes of each object, with lists split into their objects.
fn by_name(deltas: &[Delta]) -> Vec<(ObjectKey, String)> {
    let mut all = vec![];
    for delta in deltas {
        if let Delta::ReplacedAll { objects, unreadable, .. } = delta {
            let listed = objects.iter().cloned().map(Delta::Replaced);
            all.extend(listed.map(|delta| (delta.key().unwrap().clone(), short(&delta))));
            all.extend(unreadable.iter().map(|error| {
                let key = error.key().unwrap();
                (key.clone(), format!("!{key}"))
            }));
        }
        all.extend(delta.key().map(|key| (key.clone(), short(delta))));
    }
    all
}

fn check(queue: &DeltaFifo) {
    let waiting = by_name(&queue.list());
    let mut seen = BTreeSet::new();
    let expected: Vec<_> =
        waiting.iter().map(|(key, _)| key.clone()).filter(|key| seen.insert(key.clone())).collect();
    assert_eq!(queue.keys(), expected);
    for key in NAMES.map(ObjectKey::cluster) {
        let found: Vec<_> = queue.get(&key).iter().map(short).collect();
        let of_key = waiting.iter().filter(|(other, _)| *other == key);
        assert_eq!(found, of_key.map(|(_, delta)| delta.clone()).collect::<Vec<_>>(), "{key}");
        assert_eq!(queue.keys().contains(&key), !found.is_empty(), "{key}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn keys_get_and_list_agree_with_pop(steps in vec(step(), 1..30)) {
        for queue in queues() {
            for (version, step) in (2..).zip(&steps) {
                write(&queue, step, version);
                if matches!(step, Step::Pop) {
                    pop(&queue);
                }
                check(&queue);
            }
            let waiting: Vec<_> = queue.list().iter().map(short).collect();
            prop_assert_eq!(waiting.join(" "), drain(&queue).join(" "));
        }
    }

    #[test]
    fn d14_f34_a_batch_never_straddles_the_initial_list(steps in vec(step(), 1..30)) {
        for (one_by_one, batched) in queues().into_iter().zip(queues()) {
            for (version, step) in (2..).zip(&steps) {
                write(&one_by_one, step, version);
                write(&batched, step, version);
                if !matches!(step, Step::Pop) {
                    continue;
                }
                let synced = batched.has_synced();
                let Some(batch) = batched.pop_batch().now_or_never().flatten() else { continue };
                prop_assert_eq!(batch.initial, !synced);
                let mut popped = 0;
                while popped < batch.len() {
                    let synced = one_by_one.has_synced();
                    let deltas = one_by_one.pop().now_or_never().flatten().unwrap();
                    prop_assert_eq!(deltas.initial, !synced);
                    prop_assert_eq!(deltas.initial, batch.initial, "{:?}", &batch);
                    popped += deltas.len();
                }
            }
        }
    }
}
