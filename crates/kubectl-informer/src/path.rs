//! Paths into an object, as people type them: `status.phase`, `spec.containers[0].image`.
//!
//! Several ways to write the same are understood, because people bring their habits: a dot in front or
//! none, `{.status.phase}` as in kubectl's templates, `\.` or quotes for a dot within a name. An element
//! of a list can be named: `status.conditions[Ready].status`.

pub(crate) mod key;
mod parse;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

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
    /// A field of an object, or an element of a list by its name, in brackets.
    Named(String),
    /// An element of a list, from its end if negative.
    Index(i64),
    /// All elements of a list, or all fields of an object.
    Each,
    /// The elements of a list that pass a test.
    Where(Filter),
}

/// A test of the elements of a list: `?(@.type=="Ready")`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    /// From the element to what is tested.
    steps: Vec<Step>,
    /// What it is to be, or not to be; nothing if it is to be there.
    test: Option<(bool, Value)>,
}

impl Path {
    /// A path of these steps.
    pub(crate) fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// The path that a text begins with, and how many bytes of it that is.
    ///
    /// It ends before white space and what no name has: `=`, `!`, `<`, `>`, `,`, `&`, `|`, `(` and `)`.
    pub(crate) fn parse_start(text: &str, from: usize) -> Result<(Self, usize), SyntaxError> {
        parse::path(text, from)
    }

    /// The steps in their order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The values at the path; none if the object has nothing there.
    pub(crate) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        find(&self.steps, object)
    }
}

/// The values that steps lead to.
pub(crate) fn find<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    let mut values = vec![object];
    for step in steps {
        values = values.into_iter().flat_map(|value| step.from(value)).collect();
    }
    values
}

impl Step {
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
            _ => Vec::new(),
        }
    }
}

/// Where in a list of this length an index points to, if into it.
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    let at = if index < 0 { length.checked_sub(distance)? } else { distance };
    (at < length).then_some(at)
}

impl Filter {
    /// Whether an element passes the test.
    pub(crate) fn passes(&self, element: &Value) -> bool {
        let found = find(&self.steps, element);
        match &self.test {
            None => !found.is_empty(),
            Some((equal, literal)) => {
                !found.is_empty() && found.iter().all(|value| (*value == literal) == *equal)
            }
        }
    }
}

impl FromStr for Path {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        parse::whole(text)
    }
}

/// What is shown can be parsed again.
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
            Self::Where(filter) => {
                f.write_str("[?(@")?;
                filter.steps.iter().try_for_each(|step| step.fmt(f))?;
                if let Some((equal, literal)) = &filter.test {
                    f.write_str(if *equal { "==" } else { "!=" })?;
                    match literal {
                        Value::String(text) => Quoted(text).fmt(f)?,
                        other => other.fmt(f)?,
                    }
                }
                f.write_str(")]")
            }
        }
    }
}

/// Whether a name needs no quotes: nothing in it means something in a path, a condition or a shell
/// (which brackets do already, but mostly get away with).
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
        // Characters that steer the terminal are shown, at the price of not being parsed again.
        write!(f, "'{}'", cells::one_line(&escaped))
    }
}

#[cfg(test)]
mod tests;
