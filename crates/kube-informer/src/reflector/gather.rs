//! A list as it comes together: nobody sees it before it is whole.

use hashbrown::HashMap;

use crate::{Error, Object, ObjectKey};

/// The objects of a list, or of the initial events of a streaming one, where objects may still
/// change and go.
#[derive(Default)]
pub(super) struct Gather {
    objects: Vec<Option<Object>>,
    /// Only streams need it: a list does not name an object twice.
    places: HashMap<ObjectKey, usize>,
    unreadable: Vec<Error>,
    of_any_history: bool,
}

impl Gather {
    /// A list that is about to come. One of the most recent state, whatever was seen before, may be
    /// of another history of the server.
    pub(super) fn new(of_any_history: bool) -> Self {
        Self { of_any_history, ..Self::default() }
    }

    pub(super) fn is_of_any_history(&self) -> bool {
        self.of_any_history
    }

    /// An item of a list.
    pub(super) fn push(&mut self, object: Object) {
        self.objects.push(Some(object));
    }

    /// An object of a stream, in place of the one that has its key.
    pub(super) fn put(&mut self, object: Object) {
        self.forget_unreadable(object.key());
        let next = self.objects.len();
        let place = *self.places.entry(object.key().clone()).or_insert(next);
        if place == next {
            self.objects.push(Some(object));
        } else {
            self.objects[place] = Some(object);
        }
    }

    /// An object of a stream went.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.forget_unreadable(key);
        if let Some(place) = self.places.remove(key) {
            self.objects[place] = None;
        }
    }

    /// An item that could not be kept.
    pub(super) fn unreadable(&mut self, error: Error) {
        self.unreadable.push(error);
    }

    /// An object that could not be kept in a stream: what came of it before is not its state now.
    pub(super) fn put_unreadable(&mut self, error: Error, deleted: bool) {
        if let Some(key) = error.key().cloned() {
            self.remove(&key);
        }
        if !deleted {
            self.unreadable.push(error);
        }
    }

    fn forget_unreadable(&mut self, key: &ObjectKey) {
        if !self.unreadable.is_empty() {
            self.unreadable.retain(|error| error.key() != Some(key));
        }
    }

    pub(super) fn finish(self) -> (Vec<Object>, Vec<Error>) {
        (self.objects.into_iter().flatten().collect(), self.unreadable)
    }
}
