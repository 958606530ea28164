use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use crate::processor::tests::{Fold, object, text, version};

use super::*;

fn filter(pass: impl Fn(&Object) -> bool + Send + Sync + 'static) -> Filter {
    Filter::new(vec![Box::new(pass)])
}

fn even(object: &Object) -> bool {
    version(object).is_multiple_of(2)
}

fn updated(old: u64, new: u64) -> Event {
    Event::Updated { old: object("a", old), new: object("a", new) }
}
fn added(version: u64, initial: bool) -> Event {
    Event::Added { object: object("a", version), initial }
}
fn deleted(version: u64, final_state: FinalState) -> Event {
    Event::Deleted(Deleted { object: object("a", version), final_state })
}

fn told(filter: &mut Filter, event: Event) -> Option<String> {
    filter.apply(event, |object| panic!("{object:?}")).map(|event| text(&event))
}

#[test]
fn c24_an_update_is_what_it_means_to_the_filtered_view() {
    let mut even = filter(even);
    let steps = [
        (added(1, true), None),
        (updated(1, 3), None),
        (updated(3, 4), Some("+a@4")),
        (updated(4, 6), Some("a@4>6")),
        // The state that the handler last saw, and an observed delete: nothing is left to infer.
        (updated(6, 7), Some("-a@6")),
        (Event::Resynced(object("a", 7)), None),
        (deleted(8, FinalState::Known), None),
        (added(10, true), Some("*a@10")),
        (Event::Resynced(object("a", 10)), Some("=a@10")),
        (deleted(10, FinalState::Unknown), Some("?a@10")),
        (Event::Synced, Some("synced")),
    ];
    for (event, expected) in steps {
        let event_text = text(&event);
        assert_eq!(told(&mut even, event).as_deref(), expected, "{event_text}");
    }
}

#[test]
fn c24_what_was_delivered_is_deleted_whatever_the_last_state_was() {
    let mut even = filter(even);
    assert_eq!(told(&mut even, added(2, false)).as_deref(), Some("+a@2"));
    // Merged from 2>3 and the delete: judging by its object, the filter would say that it never passed.
    assert_eq!(told(&mut even, deleted(3, FinalState::Known)).as_deref(), Some("-a@3"));
    assert_eq!(told(&mut even, added(5, false)), None);
    assert_eq!(told(&mut even, deleted(6, FinalState::Known)), None);
}

#[test]
fn c24_the_new_state_is_asked_once_and_the_old_one_not_at_all() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let mut all = filter(move |object| {
        count.fetch_add(version(object), Ordering::Relaxed);
        true
    });
    told(&mut all, added(1, false));
    told(&mut all, updated(1, 10));
    assert_eq!(asked.load(Ordering::Relaxed), 11);
}

#[test]
fn every_filter_must_pass() {
    let mut both = Filter::new(vec![Box::new(|object| version(object) > 2), Box::new(even)]);
    assert_eq!(told(&mut both, added(2, false)), None);
    assert_eq!(told(&mut both, updated(2, 3)), None);
    assert_eq!(told(&mut both, updated(3, 4)).as_deref(), Some("+a@4"));
}

#[test]
fn a_filter_that_panics_lets_nothing_pass() {
    let mut bad = filter(|object| {
        assert!(even(object), "odd");
        true
    });
    let mut panicked = vec![];
    let mut apply = |event| bad.apply(event, |object| panicked.push(version(object)));
    assert!(apply(added(1, false)).is_none());
    assert_eq!(text(&apply(updated(1, 2)).unwrap()), "+a@2");
    assert_eq!(text(&apply(updated(2, 3)).unwrap()), "-a@2");
    assert_eq!(panicked, [1, 3]);
}

#[test]
fn without_filters_nothing_is_remembered() {
    let mut none = Filter::new(vec![]);
    assert_eq!(told(&mut none, added(1, false)).as_deref(), Some("+a@1"));
    assert_eq!(told(&mut none, deleted(2, FinalState::Known)).as_deref(), Some("-a@2"));
    assert!(none.delivered.is_empty());
}

proptest! {
    /// I11 also holds for a filter whose answers change.
    #[test]
    fn i11_a_filter_may_change_its_mind(
        steps in prop::collection::vec((0..4_u8, 0..4_u8), 0..100),
        answers in prop::collection::vec(any::<bool>(), 1..100),
    ) {
        let asked = AtomicU64::new(0);
        let mut fickle = filter(move |_| {
            let asked = asked.fetch_add(1, Ordering::Relaxed) as usize;
            answers[asked % answers.len()]
        });
        let (mut cache, mut fold) = (BTreeMap::<ObjectKey, Object>::new(), Fold::default());
        for (now, (key, what)) in (1..).zip(steps) {
            let new = object(&key.to_string(), now);
            let old = cache.get(new.key()).cloned();
            let event = match (what, old) {
                (0, Some(_)) => {
                    cache.remove(new.key());
                    Event::Deleted(Deleted { object: new, final_state: FinalState::Known })
                }
                (1, Some(old)) => Event::Resynced(old),
                (_, old) => {
                    cache.insert(new.key().clone(), new.clone());
                    match old {
                        Some(old) => Event::Updated { old, new },
                        None => Event::Added { object: new, initial: false },
                    }
                }
            };
            if let Some(event) = fickle.apply(event, |_| {}) {
                fold.tell(&event);
            }
        }
        prop_assert!(fold.wrong.is_empty(), "{:?}", fold.wrong);
        prop_assert!(fold.known.keys().all(|key| cache.contains_key(key)));
    }
}
