//! Replacing the content: found out first, done then, so that the lock is held for the least time.

use std::sync::Arc;

use hashbrown::HashSet;

use super::definition::{Definition, Prepared};
use crate::Object;

/// An object of a list, and its values in indexes once they are needed.
pub(super) struct Incoming {
    pub(super) object: Object,
    pub(super) values: Prepared,
}

/// What it takes to make the content of a store that of a list.
pub(super) struct Plan {
    /// The part of the content that was listed.
    pub(super) part: usize,
    /// The count of writes at which this is right.
    pub(super) writes: u64,
    pub(super) definitions: Vec<Arc<Definition>>,
    /// Where each object of the list goes.
    pub(super) places: Vec<Place>,
    /// Slots of objects that the list does not have.
    pub(super) gone: Vec<u32>,
}

/// Where an object of a list goes.
#[derive(Clone, Copy)]
pub(super) enum Place {
    New,
    /// Another state of the object is there.
    Other(u32),
    /// It is there already.
    Same(u32),
}

impl Plan {
    /// Finds the values of the objects that go in. Most of what a relist brings is there already.
    pub(super) fn prepare(&self, incoming: &mut [Incoming]) {
        for (incoming, place) in incoming.iter_mut().zip(&self.places) {
            if !matches!(place, Place::Same(_)) {
                incoming.values.extend(&incoming.object, &self.definitions);
            }
        }
    }
}

/// Of several objects with one key the last one.
pub(super) fn last_of_each_key(objects: Vec<Object>) -> Vec<Incoming> {
    let mut keys = HashSet::with_capacity(objects.len());
    let backwards = objects.into_iter().rev().filter(|object| keys.insert(object.key().clone()));
    let mut incoming: Vec<_> =
        backwards.map(|object| Incoming { object, values: Prepared::default() }).collect();
    incoming.reverse();
    incoming
}
