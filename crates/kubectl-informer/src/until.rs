//! Conditions to wait for: `status.phase=Running`, `condition=Ready`, `deleted`.
//!
//! The syntax includes that of `kubectl wait --for`, and what users are likely to guess.

mod parse;
pub(crate) mod quantity;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::path::Path;
use crate::syntax::SyntaxError;

/// A condition on an object, or on an event about it.
///
/// Kubernetes omits fields that are zero, false or empty, so that a missing field counts as that:
/// `status.readyReplicas=0` holds for a Deployment without ready replicas. For a path to several
/// values (`status.containerStatuses[*].ready=true`), it must hold for each of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Until {
    text: String,
    /// The groups of terms. The condition holds if all terms of one group hold.
    any: Vec<Vec<Term>>,
}

/// The type of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The object was created, or is seen for the first time.
    Added,
    /// The object was updated, or is seen again.
    Updated,
    /// The object was deleted; its last state is known.
    Deleted,
}

#[derive(Debug, Clone, PartialEq)]
enum Term {
    Created,
    Deleted,
    /// The status of a condition that a controller publishes.
    Condition {
        name: String,
        status: String,
    },
    /// There is a value, whatever it is.
    Exists(Path),
    /// The value is true, or it is not.
    True(Path, bool),
    /// The value is one of these, or none of them.
    Equal(Path, bool, Vec<Literal>),
    /// The value compares to a number.
    Compare(Path, Order, f64),
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
struct Literal {
    text: String,
    /// A quoted value is a string, even if it looks like something else.
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
    /// Returns whether the condition holds for an object after this event.
    ///
    /// A deleted object is in no state. Only a group that includes `deleted` can also refer to its
    /// last state.
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

/// Returns whether a test holds for all values at a path, or for `null` if there are none.
fn each(path: &Path, object: &Value, test: impl Fn(&Value) -> bool) -> bool {
    match path.find(object).as_slice() {
        [] => test(&Value::Null),
        found => found.iter().all(|value| test(value)),
    }
}

/// Returns whether the object has a condition with this status that is not for an older generation.
/// As in kubectl, case is insignificant.
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

/// Returns whether a value is true. A condition is true if its status is, and the strings `False`,
/// `false` and `Unknown` are not.
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

/// Displays the condition as it was written.
impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
