//! Filters for list elements: `?(@.type=="Ready")`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::{Quoted, Step, find};

/// A test of list elements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    /// The path from the element to the values that are tested.
    pub(super) steps: Vec<Step>,
    /// The comparison and its right side. Without one, the filter tests for existence.
    pub(super) test: Option<(Comparison, Operand)>,
}

/// The right side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Literal(Value),
    /// Other values in the element.
    Steps(Vec<Step>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison operators. Longer ones precede their prefixes.
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
        ("=", Self::Equal),
    ];

    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().partial_cmp(&right.as_f64())
            }
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (left, right) => (left == right).then_some(Ordering::Equal),
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order.is_some_and(Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order.is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

impl Filter {
    /// Returns whether an element passes the test. All tested values must.
    pub(crate) fn passes(&self, element: &Value) -> bool {
        let left = find(&self.steps, element);
        let right = match &self.test {
            None => return !left.is_empty(),
            Some((_, Operand::Literal(value))) => vec![value],
            Some((_, Operand::Steps(steps))) => find(steps, element),
        };
        let holds = |left: &Value, right: &Value| {
            self.test.as_ref().is_some_and(|(comparison, _)| comparison.holds(left, right))
        };
        !left.is_empty()
            && !right.is_empty()
            && left.iter().all(|left| right.iter().all(|right| holds(left, right)))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("?(@")?;
        self.steps.iter().try_for_each(|step| step.fmt(f))?;
        if let Some((comparison, operand)) = &self.test {
            let sign = Comparison::ALL.iter().find(|(_, one)| one == comparison);
            f.write_str(sign.map_or("", |(sign, _)| sign))?;
            match operand {
                Operand::Literal(Value::String(text)) => Quoted(text).fmt(f)?,
                Operand::Literal(other) => other.fmt(f)?,
                Operand::Steps(steps) => {
                    f.write_str("@")?;
                    steps.iter().try_for_each(|step| step.fmt(f))?;
                }
            }
        }
        f.write_str(")")
    }
}
