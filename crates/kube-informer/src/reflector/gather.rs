//! A list while it is being read: nothing of it is visible before it is complete.

use hashbrown::HashMap;

use crate::{Error, Object, ObjectKey};

/// Number of objects without a readable key that have an error of their own.
const NAMELESS_MAX: usize = 100;

/// The objects of a list, or of the initial events of a streaming list, in which objects may still
/// change and disappear.
#[derive(Default)]
pub(super) struct Gather {
    objects: Vec<Option<Object>>,
    /// Needed only for streams: a list does not contain an object twice.
    places: HashMap<ObjectKey, usize>,
    unreadable: HashMap<ObjectKey, Error>,
    /// Errors of objects whose key could not be read either.
    nameless: Vec<Error>,
    of_any_history: bool,
}

impl Gather {
    /// Starts a list. A list of the most recent state, regardless of what was seen before, may
    /// belong to another history of the server.
    pub(super) fn new(of_any_history: bool) -> Self {
        Self { of_any_history, ..Self::default() }
    }

    pub(super) fn is_of_any_history(&self) -> bool {
        self.of_any_history
    }

    /// Adds an item of a list.
    pub(super) fn push(&mut self, object: Object) {
        self.objects.push(Some(object));
    }

    /// Adds an object of a stream, replacing the one with the same key.
    pub(super) fn put(&mut self, object: Object) {
        self.unreadable.remove(object.key());
        let next = self.objects.len();
        let place = *self.places.entry(object.key().clone()).or_insert(next);
        if place == next {
            self.objects.push(Some(object));
        } else {
            self.objects[place] = Some(object);
        }
    }

    /// Removes an object that was deleted while its list was being streamed.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.unreadable.remove(key);
        if let Some(place) = self.places.remove(key) {
            self.objects[place] = None;
        }
    }

    /// Records an item that could not be stored.
    pub(super) fn unreadable(&mut self, error: Error) {
        match error.key().cloned() {
            Some(key) => _ = self.unreadable.insert(key, error),
            // These are counted too, but take only one pointer each.
            None if self.nameless.len() >= NAMELESS_MAX => {
                self.nameless.extend_from_within(NAMELESS_MAX - 1..NAMELESS_MAX);
            }
            None => self.nameless.push(error),
        }
    }

    /// Records an object of a stream that could not be stored: an earlier state of it is outdated.
    pub(super) fn put_unreadable(&mut self, error: Error, deleted: bool) {
        if let Some(key) = error.key() {
            self.remove(&key.clone());
        }
        if !deleted {
            self.unreadable(error);
        }
    }

    /// Returns the objects, and the errors sorted by key.
    pub(super) fn finish(self) -> (Vec<Object>, Vec<Error>) {
        let mut unreadable: Vec<_> = self.unreadable.into_values().collect();
        unreadable.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
        unreadable.extend(self.nameless);
        (self.objects.into_iter().flatten().collect(), unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Cause;

    fn unreadable(name: &str) -> Error {
        Error::new(Cause::Unreadable { key: Some(ObjectKey::cluster(name)) }, name)
    }

    #[test]
    fn an_object_that_becomes_readable_or_goes_is_not_unreadable() {
        let mut gather = Gather::new(false);
        for name in ["c", "b", "a"] {
            gather.put_unreadable(unreadable(name), false);
        }
        gather.put_unreadable(Error::new(Cause::Unreadable { key: None }, "nameless"), false);
        gather.put(Object::from_json(r#"{"metadata":{"name":"b"}}"#).unwrap());
        gather.put_unreadable(unreadable("c"), true);
        let (objects, errors) = gather.finish();
        assert_eq!(objects.len(), 1);
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["a", "nameless"]);
    }

    #[test]
    fn i19_many_nameless_objects_share_what_is_kept_of_them() {
        let nameless = |nth: usize| Error::new(Cause::Unreadable { key: None }, nth.to_string());
        let mut gather = Gather::new(false);
        for nth in 0..10_000 {
            gather.put_unreadable(nameless(nth), false);
        }
        let (_, errors) = gather.finish();
        assert_eq!(errors.len(), 10_000);
        assert_eq!(errors[NAMELESS_MAX - 1], nameless(NAMELESS_MAX - 1));
        assert!(errors[NAMELESS_MAX..].iter().all(|error| *error == errors[NAMELESS_MAX - 1]));
    }

    /// A quadratic implementation took 43 s.
    #[test]
    fn a_stream_of_unreadable_objects_takes_linear_time() {
        let mut gather = Gather::new(false);
        for number in 0..40_000 {
            gather.put_unreadable(unreadable(&number.to_string()), false);
        }
        assert_eq!(gather.finish().1.len(), 40_000);
    }
}
