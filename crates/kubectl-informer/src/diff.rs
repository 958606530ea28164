//! What changed between two states of an object, as somebody wants to read it.
//!
//! Elements of lists are compared by their names where they have them, so that a condition that became
//! true is one line, wherever it stands. What changes without anything having happened is left out, and
//! named if nothing else changed.

mod compare;
mod noise;
mod place;
mod render;
mod value;

use std::fmt;

use serde_json::{Value, json};

use self::place::Place;
use crate::path::{self, Path, Step};

/// What changed between two states of an object.
#[derive(Default)]
pub(crate) struct Diff<'a> {
    changes: Vec<Change<'a>>,
    noise: Vec<Noise<'a>>,
    /// Whether the object is a Secret, whose data is not shown.
    secret: bool,
}

/// One thing that changed: added without an old value, removed without a new one.
#[derive(Clone)]
pub(crate) struct Change<'a> {
    place: Place<'a>,
    /// What was there.
    pub(crate) old: Option<&'a Value>,
    /// What is there now.
    pub(crate) new: Option<&'a Value>,
}

/// One thing that changed but says nothing.
enum Noise<'a> {
    Value(Change<'a>),
    /// The elements of a list are the same, in another order.
    Order(Place<'a>),
}

/// What changed from the old state to the new one. `null` is no object: all of the other is then
/// added, or removed.
pub(crate) fn diff<'a>(old: &'a Value, new: &'a Value) -> Diff<'a> {
    compare::compare(old, new)
}

impl<'a> Diff<'a> {
    /// Whether nothing changed but noise, if that.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What changed: metadata, then the specification, other fields, the status.
    pub(crate) fn changes(&self) -> &[Change<'a>] {
        &self.changes
    }

    /// Only what changed at the path, or below it. What is noise elsewhere is none if the path names
    /// it: somebody wants to know.
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

    /// If nothing else changed, what did: `only metadata.resourceVersion changed`.
    pub(crate) fn only_noise(&self) -> Option<String> {
        if self.is_empty() { noise::sentence(&self.noise) } else { None }
    }

    /// Lines for people, each with its end. Without a width nothing is shortened.
    pub(crate) fn render(&self, width: Option<usize>, colour: bool) -> String {
        render::render(&self.changes, self.secret, width, colour)
    }

    /// The changes for programs. The data of a Secret is in it, unlike in what people are shown: the
    /// object is printed beside it with all of its data, as it was asked for.
    pub(crate) fn to_json(&self) -> Value {
        self.changes.iter().map(Change::to_json).collect()
    }
}

impl<'a> Change<'a> {
    /// Where it is, as [`Path`] reads it.
    pub(crate) fn path(&self) -> String {
        self.place.to_string()
    }

    /// The parts of it that are at a path. Usually that is all of it, or nothing, but a whole element
    /// of a list may have been added, of which only one field is wanted.
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

// The values may be somebody's secrets.
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
