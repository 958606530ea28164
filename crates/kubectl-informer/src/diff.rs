//! Computes the difference between two states of an object, in a form that people can read.
//!
//! List elements that have names are compared by name, so that a condition that becomes true is one
//! line, wherever it is in its list. Fields that change all the time are omitted, and named only if
//! nothing else has changed.

mod compare;
mod noise;
mod place;
mod render;
mod value;

use std::fmt;

use serde_json::{Value, json};

use self::place::Place;
use crate::path::{self, Path, Step};

/// The difference between two states of an object.
#[derive(Default)]
pub(crate) struct Diff<'a> {
    changes: Vec<Change<'a>>,
    noise: Vec<Noise<'a>>,
    /// Whether the object is a Secret, whose data is not shown.
    secret: bool,
}

/// One change. An addition has no old value, a removal no new one.
#[derive(Clone)]
pub(crate) struct Change<'a> {
    place: Place<'a>,
    /// The old value.
    pub(crate) old: Option<&'a Value>,
    /// The new value.
    pub(crate) new: Option<&'a Value>,
}

/// A change that carries no information.
enum Noise<'a> {
    Value(Change<'a>),
    /// The elements of a list are the same, in a different order.
    Order(Place<'a>),
}

/// Compares two states of an object. If one of them is `null`, everything in the other was added or
/// removed.
pub(crate) fn diff<'a>(old: &'a Value, new: &'a Value) -> Diff<'a> {
    compare::compare(old, new)
}

impl<'a> Diff<'a> {
    /// Returns whether nothing has changed, except for noise.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes: metadata first, then the spec, other fields and the status.
    pub(crate) fn changes(&self) -> &[Change<'a>] {
        &self.changes
    }

    /// Keeps only the changes at or below the path. A field that is otherwise noise is not if the
    /// path names it.
    pub(crate) fn under(self, path: &Path) -> Self {
        let steps = path.steps();
        let mut changes: Vec<Change<'a>> =
            self.changes.iter().flat_map(|change| change.under(steps)).collect();
        let mut noise = Vec::new();
        for kept in self.noise {
            match kept {
                Noise::Value(change) if steps.len() >= change.place.len() => {
                    changes.extend(change.under(steps));
                }
                Noise::Value(change) if change.place.begins_with(steps) => {
                    noise.push(Noise::Value(change));
                }
                Noise::Order(place) if place.begins_with(steps) => noise.push(Noise::Order(place)),
                _ => {}
            }
        }
        Self { changes, noise, secret: self.secret }
    }

    /// If nothing but noise has changed, names it: `only metadata.resourceVersion changed`.
    pub(crate) fn only_noise(&self) -> Option<String> {
        if self.is_empty() { noise::sentence(&self.noise) } else { None }
    }

    /// Renders the changes as lines for people, each with its line ending. Without a width, nothing
    /// is shortened.
    pub(crate) fn render(&self, width: Option<usize>, colour: bool) -> String {
        render::render(&self.changes, self.secret, width, colour)
    }

    /// Renders the changes for programs. Unlike the lines for people, this includes the data of
    /// Secrets: the object beside it is printed in full as well, as the user requested.
    pub(crate) fn to_json(&self) -> Value {
        self.changes.iter().map(Change::to_json).collect()
    }
}

impl<'a> Change<'a> {
    /// Returns the path of the change, as [`Path`] parses it.
    pub(crate) fn path(&self) -> String {
        self.place.to_string()
    }

    /// Returns the parts of the change at a path. Usually that is all of it or nothing, but if a
    /// whole list element was added, it may be one of its fields.
    fn under(&self, steps: &[Step]) -> Vec<Self> {
        let (common, rest) = steps.split_at(steps.len().min(self.place.len()));
        if !self.place.begins_with(common) {
            return Vec::new();
        }
        if rest.is_empty() {
            return vec![self.clone()];
        }
        let find = |value: Option<&'a Value>| value.map_or(Vec::new(), |v| path::find(rest, v));
        let (old, new) = (find(self.old), find(self.new));
        (0..old.len().max(new.len()))
            .map(|at| (old.get(at).copied(), new.get(at).copied()))
            .filter(|(old, new)| old != new)
            .map(|(old, new)| Self { place: self.place.with(rest), old, new })
            .collect()
    }

    fn to_json(&self) -> Value {
        let path = self.path();
        match (self.old, self.new) {
            (Some(old), Some(new)) => {
                json!({"op": "replace", "path": path, "old": old, "new": new})
            }
            (Some(old), None) => json!({"op": "remove", "path": path, "old": old}),
            (None, new) => json!({"op": "add", "path": path, "new": new}),
        }
    }
}

// The values may be secrets.
impl fmt::Debug for Diff<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diff").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").field("path", &self.path()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
