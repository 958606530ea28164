//! The place of a change in two states of an object.

use std::fmt;

use serde_json::Value;

use crate::path::{self, Step, key};

/// The path to a change.
#[derive(Clone, Default)]
pub(super) struct Place<'a> {
    stops: Vec<Stop<'a>>,
}

#[derive(Clone)]
pub(super) enum Stop<'a> {
    Field(&'a str),
    /// A list element, by its name if it has one. It may be at different positions in the two
    /// states, or in only one of them.
    Element {
        name: Option<String>,
        old: Option<At<'a>>,
        new: Option<At<'a>>,
    },
    /// A scalar value that was added to a list, or removed from it.
    Item(At<'a>),
    /// A step into a value that was added or removed as a whole.
    Within(Step),
}

/// The position of a value in a list.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    position: usize,
    length: usize,
    value: &'a Value,
}

impl<'a> At<'a> {
    pub(super) fn new(list: &'a [Value], position: usize) -> Option<Self> {
        list.get(position).map(|value| Self { position, length: list.len(), value })
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    fn is_at(&self, step: &Step) -> bool {
        match step {
            Step::Each => true,
            Step::Index(index) => path::position(*index, self.length) == Some(self.position),
            Step::Named(name) => !key::find(std::slice::from_ref(self.value), name).is_empty(),
            Step::Where(filter) => filter.passes(self.value),
            // Other steps do not occur in paths.
            Step::Field(_) | Step::Slice(_) | Step::Union(_) | Step::Descend => false,
        }
    }
}

impl Stop<'_> {
    fn is_at(&self, step: &Step) -> bool {
        match (self, step) {
            (Self::Field(field), Step::Field(name) | Step::Named(name)) => field == name,
            (Self::Field(_), Step::Each) => true,
            (Self::Field(_), _) => false,
            (Self::Element { name: Some(name), .. }, Step::Named(wanted)) if name == wanted => true,
            (Self::Element { old, new, .. }, step) => {
                old.iter().chain(new).any(|at| at.is_at(step))
            }
            (Self::Item(at), step) => at.is_at(step),
            (Self::Within(own), step) => own == step,
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Element { name, .. } => name.as_deref(),
            _ => None,
        }
    }
}

impl<'a> Place<'a> {
    pub(super) fn len(&self) -> usize {
        self.stops.len()
    }

    pub(super) fn push(&mut self, stop: Stop<'a>) {
        self.stops.push(stop);
    }

    pub(super) fn pop(&mut self) {
        self.stops.pop();
    }

    /// Returns whether this place is at or below these steps.
    pub(super) fn begins_with(&self, steps: &[Step]) -> bool {
        self.len() >= steps.len()
            && self.stops.iter().zip(steps).all(|(stop, step)| stop.is_at(step))
    }

    /// Appends steps to this place.
    pub(super) fn with(&self, steps: &[Step]) -> Self {
        let mut deeper = self.clone();
        deeper.stops.extend(steps.iter().cloned().map(Stop::Within));
        deeper
    }

    /// Returns the fields along the path, without the list elements.
    pub(super) fn fields(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.stops.iter().filter_map(|stop| match stop {
            Stop::Field(name) => Some(*name),
            Stop::Within(Step::Field(name) | Step::Named(name)) => Some(name),
            _ => None,
        })
    }

    /// Returns the name of the list element that this place ends with.
    pub(super) fn element(&self) -> Option<&str> {
        self.stops.last().and_then(Stop::name)
    }

    /// Returns the path with `[*]` for each list element, which is the same for a field of all
    /// elements.
    pub(super) fn in_each(&self) -> String {
        let each = |stop: &Stop<'_>| match stop {
            Stop::Field(_) | Stop::Within(_) => stop.to_string(),
            Stop::Element { .. } | Stop::Item(_) => "[*]".to_owned(),
        };
        self.stops.iter().map(each).collect()
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stops.is_empty() {
            return f.write_str(".");
        }
        self.stops.iter().try_for_each(|stop| stop.fmt(f))
    }
}

impl fmt::Display for Stop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => Step::Field((*name).to_owned()).fmt(f),
            Self::Element { name: Some(name), .. } => Step::Named(name.clone()).fmt(f),
            Self::Element { old, new, .. } => {
                let position = new.or(*old).map_or(0, |at| at.position);
                Step::Index(position as i64).fmt(f)
            }
            Self::Item(_) => f.write_str("[]"),
            Self::Within(step) => step.fmt(f),
        }
    }
}
