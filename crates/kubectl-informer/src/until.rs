//! Conditions that somebody waits for: `status.phase=Running`, `condition=Ready`, `deleted`.
//!
//! What `kubectl wait --for` understands is understood, and so is what one would guess.

mod parse;
mod quantity;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::path::Path;
use crate::syntax::SyntaxError;

/// A condition on an object, or on what happens to it.
///
/// Kubernetes leaves out fields that are 0, false or empty, so that what is missing counts as these:
/// `status.readyReplicas=0` holds for a Deployment that has none. A path to several values
/// (`status.containerStatuses[*].ready=true`) must hold for each of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Until {
    text: String,
    /// One of these groups is to hold, with all that is in it.
    any: Vec<Vec<Term>>,
}

/// What happened to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// It was created, or is seen for the first time.
    Added,
    /// It has changed, or is seen again.
    Updated,
    /// It is gone; its last state is known.
    Deleted,
}

#[derive(Debug, Clone, PartialEq)]
enum Term {
    Created,
    Deleted,
    /// The status of a condition, as controllers publish it.
    Condition {
        name: String,
        status: String,
    },
    /// There is something, whatever it is.
    Exists(Path),
    /// There is something that counts as true, or not.
    True(Path, bool),
    /// It is one of these, or none of these.
    Equal(Path, bool, Vec<Literal>),
    /// It compares to a number.
    Compare(Path, Order, f64),
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
struct Literal {
    text: String,
    /// In quotes it is a text, even if it looks like something else.
    quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Until {
    /// Whether what happened to the object is what is waited for.
    ///
    /// An object that is gone no longer is in any state: only who waits for that (`deleted`) may also
    /// ask what it was last.
    pub(crate) fn holds(&self, what: Happened, object: &Value) -> bool {
        self.any.iter().any(|terms| {
            (what != Happened::Deleted || terms.contains(&Term::Deleted))
                && terms.iter().all(|term| term.holds(what, object))
        })
    }
}

impl Term {
    fn holds(&self, what: Happened, object: &Value) -> bool {
        match self {
            Self::Created => what == Happened::Added,
            Self::Deleted => what == Happened::Deleted,
            Self::Condition { name, status } => has_condition(object, name, status),
            Self::Exists(path) => path.find(object).iter().any(|value| !value.is_null()),
            Self::True(path, wanted) => {
                let found = path.find(object);
                (!found.is_empty() && found.into_iter().all(is_true)) == *wanted
            }
            Self::Equal(path, wanted, literals) => each(path, object, |value| {
                literals.iter().any(|literal| literal.equals(value)) == *wanted
            }),
            Self::Compare(path, order, number) => each(path, object, |value| {
                quantity::of(value).is_some_and(|value| order.holds(value, *number))
            }),
        }
    }
}

/// Whether a test holds for all values at a path, or for nothing if there are none.
fn each(path: &Path, object: &Value, test: impl Fn(&Value) -> bool) -> bool {
    match path.find(object).as_slice() {
        [] => test(&Value::Null),
        found => found.iter().all(|value| test(value)),
    }
}

/// Whether the object has a condition with this status, which was not found out about an older
/// specification of it. Upper and lower case do not matter, as for kubectl.
fn has_condition(object: &Value, name: &str, status: &str) -> bool {
    let text = |value: &Value, field: &str, wanted: &str| {
        value.get(field).and_then(Value::as_str).is_some_and(|is| is.eq_ignore_ascii_case(wanted))
    };
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let Some(condition) = conditions.into_iter().flatten().find(|c| text(c, "type", name)) else {
        return false;
    };
    let observed = condition
        .get("observedGeneration")
        .or_else(|| object.pointer("/status/observedGeneration"))
        .and_then(Value::as_i64);
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let outdated = matches!((observed, generation), (Some(old), Some(new)) if old < new);
    text(condition, "status", status) && !outdated
}

/// Whether a value counts as true. A condition does if it is met, and `False` is its word for false.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.as_str(), "" | "False" | "false" | "Unknown"),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => match (fields.get("type"), fields.get("status")) {
            (Some(Value::String(_)), Some(status @ Value::String(_))) => is_true(status),
            _ => !fields.is_empty(),
        },
    }
}

impl Literal {
    fn equals(&self, value: &Value) -> bool {
        let number = || self.text.parse::<f64>().ok().filter(|_| !self.quoted);
        match value {
            Value::String(text) => *text == self.text,
            Value::Number(is) => {
                self.text == is.to_string() || number().is_some_and(|it| is.as_f64() == Some(it))
            }
            Value::Null => {
                self.text.is_empty()
                    || !self.quoted && matches!(self.text.as_str(), "false" | "null")
                    || number() == Some(0.0)
            }
            // Lists and objects can be written as JSON.
            other => serde_json::from_str::<Value>(&self.text).is_ok_and(|it| it == *other),
        }
    }
}

impl Order {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl FromStr for Until {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self { any: parse::until(text)?, text: text.trim().to_owned() })
    }
}

/// As it was written.
impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
