use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::processor::tests::{Fold, object, text, version};
use crate::{Deleted, FinalState, ObjectKey};

use super::*;

fn added(name: &str, version: u64) -> Applied {
    Applied::Added(object(name, version))
}
fn updated(name: &str, old: u64, new: u64) -> Applied {
    Applied::Updated { old: object(name, old), new: object(name, new) }
}
fn deleted(name: &str, version: u64, final_state: FinalState) -> Applied {
    Applied::Deleted(Deleted { object: object(name, version), final_state })
}
fn gone(name: &str, version: u64) -> Applied {
    deleted(name, version, FinalState::Known)
}
fn list(listed: Listed, versions: &[(&str, u64)]) -> Applied {
    let objects = versions.iter().map(|(name, version)| object(name, *version));
    Applied::List(listed, objects.collect())
}

fn push(backlog: &mut Backlog, applied: &Applied) {
    backlog.push(applied, &mut Vec::new());
}

fn push_all(backlog: &mut Backlog, applied: &[Applied]) {
    for applied in applied {
        push(backlog, applied);
    }
}

fn pop(backlog: &mut Backlog) -> Option<Event> {
    backlog.pop().map(|(event, _)| event)
}

fn drain(backlog: &mut Backlog) -> Vec<String> {
    std::iter::from_fn(|| pop(backlog)).map(|event| text(&event)).collect()
}

/// Returns the events that are delivered if all of these are queued before the first delivery.
fn merged(applied: &[Applied]) -> Vec<String> {
    let mut backlog = Backlog::new(0, false);
    push_all(&mut backlog, applied);
    let (waiting, delivered) = (backlog.len(), drain(&mut backlog));
    assert_eq!(waiting, delivered.len(), "len counts what is delivered");
    assert_eq!(backlog.len(), 0);
    delivered
}

#[test]
fn i11_events_of_one_object_merge_to_what_the_handler_needs_to_know() {
    assert_eq!(merged(&[added("a", 1), updated("a", 1, 2)]), ["+a@2"]);
    assert_eq!(merged(&[updated("a", 1, 2), updated("a", 2, 3)]), ["a@1>3"]);
    assert_eq!(merged(&[added("a", 1), gone("a", 2)]), [""; 0]);
    assert_eq!(merged(&[updated("a", 1, 2), gone("a", 3)]), ["-a@3"]);
    assert_eq!(merged(&[gone("a", 2), added("a", 3)]), ["-a@2", "+a@3"]);
    let again = [gone("a", 2), added("a", 3), updated("a", 3, 4)];
    assert_eq!(merged(&again), ["-a@2", "+a@4"]);
    let in_between = [gone("a", 2), added("a", 3), gone("a", 4)];
    assert_eq!(merged(&in_between), ["-a@2"]);
    let came_and_went = [added("a", 1), gone("a", 2), added("a", 3)];
    assert_eq!(merged(&came_and_went), ["+a@3"]);
}

#[test]
fn i16_a_delete_that_was_seen_replaces_one_that_was_found_out() {
    let found = || deleted("a", 1, FinalState::Unknown);
    assert_eq!(merged(&[updated("a", 1, 2), found()]), ["?a@1"]);
    assert_eq!(merged(&[found(), gone("a", 3)]), ["-a@3"]);
    assert_eq!(merged(&[gone("a", 3), found()]), ["-a@3"]);
}

#[test]
fn i10_merged_events_come_in_the_order_of_the_first_of_each_object() {
    let events = [added("b", 1), updated("a", 1, 2), updated("b", 1, 3), added("c", 4)];
    assert_eq!(merged(&events), ["+b@3", "a@1>2", "+c@4"]);
}

#[test]
fn a_delete_that_was_delivered_leaves_its_other_half_to_be_merged() {
    let mut backlog = Backlog::new(0, false);
    push_all(&mut backlog, &[gone("a", 2), added("a", 3)]);
    assert_eq!(text(&pop(&mut backlog).unwrap()), "-a@2");
    push(&mut backlog, &updated("a", 3, 4));
    assert_eq!(backlog.len(), 1);
    push(&mut backlog, &gone("a", 5));
    assert_eq!(drain(&mut backlog), [""; 0], "the new one came and went unseen");
    assert_eq!(backlog.merged_total(), 3);
}

#[test]
fn c22_the_first_list_is_initial_and_ends_with_synced_also_when_merged() {
    let mut backlog = Backlog::new(1, false);
    push(&mut backlog, &added("x", 1));
    push(&mut backlog, &added("y", 2));
    assert!(backlog.is_merging());
    push(&mut backlog, &list(Listed::Initial, &[("a", 3), ("b", 4)]));
    push(&mut backlog, &Applied::Synced);
    push_all(&mut backlog, &[updated("b", 4, 5), added("c", 6), gone("a", 7)]);
    assert_eq!(backlog.len(), 5);
    assert_eq!(drain(&mut backlog), ["+x@1", "+y@2", "*b@5", "synced", "+c@6"]);
}

#[test]
fn synced_comes_once() {
    for limit in [0, 10] {
        let mut backlog = Backlog::new(limit, false);
        push_all(&mut backlog, &[added("a", 1), Applied::Synced, Applied::Synced]);
        assert_eq!(drain(&mut backlog), ["+a@1", "synced"]);
        push(&mut backlog, &Applied::Synced);
        assert_eq!(backlog.len(), 0);
    }
}

#[test]
fn repetitions_are_dropped_while_one_that_has_not_begun_waits() {
    let mut backlog = Backlog::new(10, false);
    let both = [("a", 1), ("b", 2)];
    let unchanged = list(Listed::Unchanged, &both);
    let resync = list(Listed::Resync, &both);
    for _ in 0..2 {
        push_all(&mut backlog, &[unchanged.clone(), resync.clone()]);
    }
    assert_eq!((backlog.len(), backlog.skipped_total()), (4, 4));
    assert_eq!(text(&pop(&mut backlog).unwrap()), "a@1>1");
    // The first has started, so it cannot stand for one that is requested now.
    push_all(&mut backlog, &[unchanged.clone(), unchanged]);
    assert_eq!(backlog.skipped_total(), 6);
    assert_eq!(drain(&mut backlog), ["b@2>2", "=a@1", "=b@2", "a@1>1", "b@2>2"]);
    push(&mut backlog, &resync);
    assert_eq!(drain(&mut backlog), ["=a@1", "=b@2"]);
}

#[test]
fn repetitions_are_dropped_while_the_backlog_is_long() {
    let mut backlog = Backlog::new(1, false);
    push(&mut backlog, &added("a", 1));
    push(&mut backlog, &list(Listed::Resync, &[("a", 1)]));
    assert_eq!((backlog.skipped_total(), backlog.is_merging()), (1, false));
    assert_eq!(drain(&mut backlog), ["+a@1"]);
    push(&mut backlog, &list(Listed::Resync, &[("a", 1)]));
    assert_eq!(drain(&mut backlog), ["=a@1"]);
}

#[test]
fn c23_only_changes_leaves_out_what_is_as_it_was() {
    let mut backlog = Backlog::new(10, true);
    for listed in [Listed::Initial, Listed::Unchanged, Listed::Resync] {
        push(&mut backlog, &list(listed, &[("a", 1)]));
    }
    push(&mut backlog, &updated("a", 1, 1));
    push(&mut backlog, &updated("a", 1, 2));
    assert_eq!(drain(&mut backlog), ["*a@1", "a@1>2"]);
    assert_eq!(backlog.skipped_total(), 0, "what nobody wanted is not missed");
}

#[test]
fn h6_updates_of_objects_without_versions_are_changes() {
    let bare = || Object::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap();
    let mut backlog = Backlog::new(10, true);
    push(&mut backlog, &Applied::Updated { old: bare(), new: bare() });
    assert_eq!(backlog.len(), 1);
}

/// An action in a small world of objects.
#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    PutSame(u8),
    Delete(u8, bool),
    Unchanged,
    Resync,
    Synced,
    Pop(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..5_u8;
    let step = prop_oneof![
        6 => key.clone().prop_map(Step::Put),
        1 => key.clone().prop_map(Step::PutSame),
        3 => (key, any::<bool>()).prop_map(|(key, known)| Step::Delete(key, known)),
        1 => Just(Step::Unchanged),
        1 => Just(Step::Resync),
        1 => Just(Step::Synced),
        4 => (0..4_u8).prop_map(Step::Pop),
    ];
    prop::collection::vec(step, 0..120)
}

#[derive(Default)]
struct World {
    cache: BTreeMap<ObjectKey, Object>,
    version: u64,
}

impl World {
    /// Returns the effect of a step that listeners receive, if any.
    fn step(&mut self, step: &Step) -> Option<Applied> {
        let all = || self.cache.values().cloned().collect();
        match *step {
            Step::Put(key) => {
                self.version += 1;
                Some(self.put(object(&key.to_string(), self.version)))
            }
            Step::PutSame(key) => {
                let known = self.cache.get(object(&key.to_string(), 0).key())?.clone();
                Some(self.put(object(known.name(), version(&known))))
            }
            Step::Delete(key, seen) => {
                self.version += 1;
                let last = object(&key.to_string(), self.version);
                let known = self.cache.remove(last.key())?;
                let (object, final_state) =
                    if seen { (last, FinalState::Known) } else { (known, FinalState::Unknown) };
                Some(Applied::Deleted(Deleted { object, final_state }))
            }
            Step::Unchanged => Some(Applied::List(Listed::Unchanged, all())),
            Step::Resync => Some(Applied::List(Listed::Resync, all())),
            Step::Synced => Some(Applied::Synced),
            Step::Pop(_) => None,
        }
    }

    fn put(&mut self, new: Object) -> Applied {
        match self.cache.insert(new.key().clone(), new.clone()) {
            Some(old) => Applied::Updated { old, new },
            None => Applied::Added(new),
        }
    }
}

/// Returns the keys that the handler will know once `queue` has been delivered, before anything merged.
fn known_before_merged(backlog: &Backlog, fold: &Fold) -> BTreeSet<ObjectKey> {
    let mut known: BTreeSet<_> = fold.known.keys().cloned().collect();
    for (nth, waiting) in backlog.queue.iter().enumerate() {
        match waiting {
            Applied::Deleted(gone) => drop(known.remove(gone.key())),
            Applied::Added(object) | Applied::Updated { new: object, .. } => {
                known.insert(object.key().clone());
            }
            Applied::List(_, objects) => {
                let delivered = if nth == 0 { backlog.of_front } else { 0 };
                known.extend(objects[delivered..].iter().map(|object| object.key().clone()));
            }
            Applied::Synced => {}
        }
    }
    known
}

fn check_bound(backlog: &Backlog, fold: &Fold, world: &World) {
    assert!(backlog.singles <= backlog.limit);
    let mut keys = known_before_merged(backlog, fold);
    keys.extend(world.cache.keys().cloned());
    let synced = usize::from(backlog.synced);
    assert!(backlog.merged.len() <= 2 * keys.len() + synced, "{} keys", keys.len());
    let lists = |listed| {
        let is = |waiting: &&Applied| matches!(waiting, Applied::List(of, _) if *of == listed);
        backlog.queue.iter().filter(is).count()
    };
    assert!(lists(Listed::Resync) <= 2 && lists(Listed::Unchanged) <= 2);
}

proptest! {
    /// I11, I14, I16: however rarely events are delivered, they are consistent, add up to the cache, and are
    /// bounded by the number of keys.
    #[test]
    fn i11_i14_i16_what_is_delivered_adds_up(
        first in 0..4_u8, steps in steps(), limit in 0..4_usize, only_changes: bool,
    ) {
        let (mut backlog, mut fold) = (Backlog::new(limit, only_changes), Fold::default());
        let mut world = World::default();
        (0..first).for_each(|key| drop(world.step(&Step::Put(key))));
        push(&mut backlog, &Applied::List(Listed::Initial, world.cache.values().cloned().collect()));
        for step in &steps {
            if let Some(applied) = world.step(step) {
                push(&mut backlog, &applied);
            } else if let Step::Pop(count) = step {
                let waiting = backlog.len();
                let popped: Vec<_> = (0..*count).map_while(|_| pop(&mut backlog)).collect();
                for event in &popped {
                    fold.tell(event);
                }
                prop_assert_eq!(backlog.len(), waiting - popped.len());
            }
            check_bound(&backlog, &fold, &world);
        }
        while let Some(event) = pop(&mut backlog) {
            fold.tell(&event);
        }
        fold.assert_is(&world.cache);
        prop_assert_eq!(fold.synced, steps.iter().any(|step| matches!(step, Step::Synced)));
        prop_assert!(backlog.merged.is_empty() && backlog.queue.is_empty() && backlog.singles == 0);
    }

    /// H-2: while the backlog is short, everything is delivered, in order.
    #[test]
    fn h2_without_a_limit_everything_is_delivered_in_order(steps in steps()) {
        let mut backlog = Backlog::new(usize::MAX, false);
        let (mut world, mut expected, mut delivered) = (World::default(), vec![], vec![]);
        let mut synced = false;
        for step in &steps {
            if let Some(applied) = world.step(step) {
                let skipped = backlog.skipped_total();
                push(&mut backlog, &applied);
                if backlog.skipped_total() > skipped {
                    continue;
                }
                let event = match applied {
                    Applied::Added(object) => Event::Added { object, initial: false },
                    Applied::Updated { old, new } => Event::Updated { old, new },
                    Applied::Deleted(deleted) => Event::Deleted(deleted),
                    Applied::List(listed, objects) => {
                        let events = objects.iter().map(|object| listed.event(object.clone()));
                        expected.extend(events.map(|event| text(&event)));
                        continue;
                    }
                    Applied::Synced if std::mem::replace(&mut synced, true) => continue,
                    Applied::Synced => Event::Synced,
                };
                expected.push(text(&event));
            } else if let Step::Pop(count) = step {
                delivered.extend((0..*count).map_while(|_| pop(&mut backlog)).map(|event| text(&event)));
            }
        }
        delivered.extend(drain(&mut backlog));
        prop_assert_eq!(delivered, expected);
        prop_assert_eq!(backlog.merged_total(), 0);
    }
}
