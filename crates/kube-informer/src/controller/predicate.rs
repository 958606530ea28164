//! Predicates that decide which events cause a reconcile.

use std::fmt;
use std::ops::Not;

use crate::{Event, Object, Untyped};

/// Decides which events cause a reconcile. Combine predicates with [`and`](Self::and), [`or`](Self::or) and
/// `!`.
///
/// The predefined ones concern only updates: adds, deletes and resyncs pass all of them, and so
/// does an object that was recreated under the same name.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::Event;
/// use kube_informer::controller::Predicate;
///
/// let worth: Predicate<Deployment> = Predicate::generation_changed()
///     .or(Predicate::labels_changed())
///     .and(Predicate::new(|event| event.key().is_some_and(|key| key.name() != "ignored")));
/// ```
pub struct Predicate<K = Untyped>(Box<Worth<K>>);

type Worth<K> = dyn Fn(&Event<K>) -> bool + Send + Sync;

impl<K: 'static> Predicate<K> {
    /// Creates a predicate from a function. It is not called for [`Event::Synced`].
    pub fn new(worth: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Box::new(worth))
    }

    /// Accepts updates in which `metadata.generation` changed, as it does with every change of a spec and none
    /// of a status, or in which the object was marked for deletion.
    ///
    /// Use it only for kinds that have a generation: custom resources need the status subresource
    /// for it.
    pub fn generation_changed() -> Self {
        Self::changed(|old, new| {
            old.generation() != new.generation()
                || old.deletion_timestamp() != new.deletion_timestamp()
        })
    }

    /// Accepts updates in which the labels changed.
    pub fn labels_changed() -> Self {
        Self::changed(|old, new| old.labels() != new.labels())
    }

    /// Accepts updates in which the annotations changed.
    pub fn annotations_changed() -> Self {
        Self::changed(|old, new| old.annotations() != new.annotations())
    }

    /// Accepts updates in which anything changed: all but those that a relist repeats.
    pub fn version_changed() -> Self {
        Self::changed(|old, new| !old.same_version(new))
    }

    /// Accepts updates for which the function returns true, and all other events.
    pub fn changed(
        differ: impl Fn(&Object<K>, &Object<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |event| match event {
            Event::Updated { old, new } => old.uid() != new.uid() || differ(old, new),
            _ => true,
        })
    }

    /// Accepts events that both predicates accept.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) && other.passes(event))
    }

    /// Accepts events that either predicate accepts.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) || other.passes(event))
    }

    /// Returns whether the predicate accepts an event.
    pub fn passes(&self, event: &Event<K>) -> bool {
        (self.0)(event)
    }
}

/// Accepts the events that the predicate rejects.
impl<K: 'static> Not for Predicate<K> {
    type Output = Self;
    fn not(self) -> Self {
        Self::new(move |event| !self.passes(event))
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Deleted;

    fn object(change: &Value) -> Object {
        let mut metadata =
            json!({"name": "a", "uid": "1", "resourceVersion": "1", "generation": 1});
        for (field, value) in change.as_object().unwrap() {
            metadata[field] = value.clone();
        }
        Object::from_json(json!({ "metadata": metadata }).to_string()).unwrap()
    }

    /// Results of the predicates on generation, labels, annotations and version for a change.
    fn passes(change: &Value) -> [bool; 4] {
        let event = Event::Updated { old: object(&json!({})), new: object(change) };
        [
            Predicate::generation_changed(),
            Predicate::labels_changed(),
            Predicate::annotations_changed(),
            Predicate::version_changed(),
        ]
        .map(|predicate| predicate.passes(&event))
    }

    #[test]
    fn an_update_passes_if_that_part_of_it_changed() {
        assert_eq!(passes(&json!({})), [false; 4]);
        assert_eq!(passes(&json!({"resourceVersion": "2"})), [false, false, false, true]);
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(passes(&deleted), [true, false, false, false]);
        assert_eq!(passes(&json!({"generation": 2})), [true, false, false, false]);
        assert_eq!(passes(&json!({"labels": {"a": "b"}})), [false, true, false, false]);
        assert_eq!(passes(&json!({"annotations": {"a": "b"}})), [false, false, true, false]);
        assert_eq!(passes(&json!({"uid": "2"})), [true; 4]);
    }

    #[test]
    fn everything_but_updates_passes() {
        let object = object(&json!({}));
        let deleted = Deleted { object: object.clone(), final_state: crate::FinalState::Unknown };
        for event in [
            Event::Added { object: object.clone(), initial: false },
            Event::Deleted(deleted),
            Event::Resynced(object),
        ] {
            assert!(Predicate::generation_changed().passes(&event), "{event:?}");
        }
    }

    #[test]
    fn predicates_combine() {
        let event = Event::Resynced(object(&json!({})));
        let constant = |value: bool| Predicate::new(move |_| value);
        for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(constant(a).and(constant(b)).passes(&event), a && b);
            assert_eq!(constant(a).or(constant(b)).passes(&event), a || b);
            assert_eq!((!constant(a)).passes(&event), !a);
        }
    }
}
