//! Paths into an object, as people type them: `status.phase`, `spec.containers[0].image`.
//!
//! Several notations are accepted, because people bring their habits: the leading dot is optional,
//! `{.status.phase}` is as in kubectl's templates, and `\.` or quotes protect a dot in a name. List
//! elements can be named: `status.conditions[Ready].status`.

mod filter;
pub(crate) mod key;
mod parse;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use self::filter::Filter;
use crate::cells;
use crate::syntax::SyntaxError;

/// A path to values inside an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A field of an object, after a dot.
    Field(String),
    /// A field of an object or a list element by name, in brackets.
    Named(String),
    /// An element of a list, counted from its end if negative.
    Index(i64),
    /// All elements of a list, or all fields of an object.
    Each,
    /// The elements of a list that pass a test.
    Where(Filter),
    /// A slice of a list: start, end (exclusive) and step. In templates only.
    Slice([Option<i64>; 3]),
    /// The results of several steps. In templates only.
    Union(Vec<Step>),
    /// The value and all lists and objects in it, recursively. In templates only.
    Descend,
}

impl Path {
    /// Creates a path from steps.
    pub(crate) fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// Parses the path that starts at a byte of a text. Also returns its end.
    ///
    /// The path ends before white space and characters that names do not have: `=`, `!`, `<`, `>`,
    /// `,`, `&`, `|`, `(` and `)`.
    pub(crate) fn parse_start(text: &str, from: usize) -> Result<(Self, usize), SyntaxError> {
        parse::path(text, from)
    }

    /// Parses steps as in kubectl's templates, as far as they go: `@.items[0:2]..name`. Also
    /// returns their end.
    pub(crate) fn parse_steps(text: &str, from: usize) -> Result<(Vec<Step>, usize), SyntaxError> {
        parse::steps(text, from)
    }

    /// Returns the steps in order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the values at the path. Empty if the object has none there.
    pub(crate) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        find(&self.steps, object)
    }
}

/// Returns the values that steps lead to.
pub(crate) fn find<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    steps.iter().fold(vec![object], |values, step| step.follow(&values))
}

impl Step {
    /// Returns the values that this step leads to from these. In a union, each step applies to all
    /// of them.
    pub(crate) fn follow<'a>(&self, values: &[&'a Value]) -> Vec<&'a Value> {
        match self {
            Self::Union(steps) => steps.iter().flat_map(|step| step.follow(values)).collect(),
            step => values.iter().flat_map(|value| step.from(value)).collect(),
        }
    }

    fn from<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name) | Self::Named(name), Value::Object(fields)) => {
                fields.get(name).into_iter().collect()
            }
            (Self::Named(name), Value::Array(elements)) => key::find(elements, name),
            (Self::Index(index), Value::Array(elements)) => {
                position(*index, elements.len()).map(|at| &elements[at]).into_iter().collect()
            }
            (Self::Each, Value::Array(elements)) => elements.iter().collect(),
            (Self::Each, Value::Object(fields)) => fields.values().collect(),
            (Self::Where(filter), Value::Array(elements)) => {
                elements.iter().filter(|element| filter.passes(element)).collect()
            }
            (Self::Slice(places), Value::Array(elements)) => slice(elements, *places),
            (Self::Descend, value) => {
                let mut found = Vec::new();
                descend(value, &mut found);
                found
            }
            _ => Vec::new(),
        }
    }
}

fn slice(elements: &[Value], [from, to, step]: [Option<i64>; 3]) -> Vec<&Value> {
    let length = elements.len() as i64;
    let place = |at: i64| (if at < 0 { at.saturating_add(length) } else { at }).clamp(0, length);
    let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(length)));
    let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1).max(1);
    elements.get(from as usize..to as usize).unwrap_or_default().iter().step_by(step).collect()
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            found.push(value);
            for element in elements {
                descend(element, found);
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            found.push(value);
            for field in fields.values() {
                descend(field, found);
            }
        }
        _ => {}
    }
}

/// Resolves an index in a list of this length. Returns `None` if it is out of bounds.
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    let at = if index < 0 { length.checked_sub(distance)? } else { distance };
    (at < length).then_some(at)
}

impl FromStr for Path {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        parse::whole(text)
    }
}

/// The output can be parsed again.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str(".");
        }
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if plain(name) && !name.contains('.') => write!(f, ".{name}"),
            Self::Named(name) if plain(name) && name.parse::<i64>().is_err() => {
                write!(f, "[{name}]")
            }
            Self::Field(name) | Self::Named(name) => write!(f, "[{}]", Quoted(name)),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Each => f.write_str("[*]"),
            Self::Where(filter) => write!(f, "[{filter}]"),
            Self::Slice(places) => {
                let shown = places.map(|place| place.map_or(String::new(), |at| at.to_string()));
                write!(f, "[{}]", shown.join(":"))
            }
            Self::Union(steps) => {
                let shown: Vec<_> = steps.iter().map(ToString::to_string).collect();
                let inside = |step: &String| step.trim_matches(['[', ']', '.']).to_owned();
                write!(f, "[{}]", shown.iter().map(inside).collect::<Vec<_>>().join(","))
            }
            Self::Descend => f.write_str(".."),
        }
    }
}

/// Returns whether a name needs no quotes, because none of its characters is special in a path, a
/// condition or a shell. (Brackets are special in shells too, but rarely cause trouble.)
fn plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '@'))
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = self.0.replace('\\', "\\\\").replace('\'', "\\'");
        // Control characters are escaped for the terminal. Such a name cannot be parsed again.
        write!(f, "'{}'", cells::one_line(&escaped))
    }
}

#[cfg(test)]
mod tests;
