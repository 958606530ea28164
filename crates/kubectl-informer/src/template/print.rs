//! Prints values as Go does.

use serde_json::{Number, Value};

/// The limit on the output of a template for one object.
pub(crate) const MAX_OUTPUT: usize = 16 * 1024 * 1024;

/// A text that does not grow beyond a limit.
#[derive(Default)]
pub(crate) struct Text {
    text: String,
    full: bool,
}

impl Text {
    pub(crate) fn push(&mut self, more: &str) {
        if self.text.len() + more.len() > MAX_OUTPUT {
            self.full = true;
        }
        if !self.full {
            self.text.push_str(more);
        }
    }

    /// Returns the text, unless it was too long.
    pub(crate) fn finish(self) -> Option<String> {
        (!self.full).then_some(self.text)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Appends a value. A missing value is `<nil>` here; a whole action without a value prints
    /// `<no value>`.
    pub(crate) fn show(&mut self, value: &Value) {
        match value {
            Value::Null => self.push("<nil>"),
            Value::Bool(value) => self.push(if *value { "true" } else { "false" }),
            Value::Number(number) => self.push(&self::number(number)),
            Value::String(text) => self.push(text),
            Value::Array(list) => {
                self.push("[");
                for (at, value) in list.iter().enumerate() {
                    self.push(if at > 0 { " " } else { "" });
                    self.show(value);
                }
                self.push("]");
            }
            Value::Object(fields) => {
                self.push("map[");
                for (at, (name, value)) in sorted(fields).into_iter().enumerate() {
                    self.push(if at > 0 { " " } else { "" });
                    self.push(name);
                    self.push(":");
                    self.show(value);
                }
                self.push("]");
            }
        }
    }
}

/// Returns the fields of an object in alphabetical order.
pub(super) fn sorted(fields: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    fields
}

pub(super) fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(fraction) if number.is_f64() => float(fraction, 'g', None),
        _ => number.to_string(),
    }
}

/// Formats a float in one of Go's formats (`e`, `f`, `g`), with this precision or as many digits as
/// necessary.
pub(super) fn float(value: f64, format: char, precision: Option<usize>) -> String {
    match (format, precision) {
        ('f', Some(precision)) => format!("{value:.precision$}"),
        ('f', None) => format!("{value}"),
        ('e', Some(precision)) => exponent(&format!("{value:.precision$e}")),
        ('e', None) => exponent(&format!("{value:e}")),
        _ => general(value, precision),
    }
}

/// Rewrites the exponent as in Go: a sign and at least two digits.
fn exponent(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Formats a float with an exponent if it is very large or small, and without one otherwise.
fn general(value: f64, precision: Option<usize>) -> String {
    let digits = precision.map(|precision| precision.max(1));
    let scientific = match digits {
        Some(digits) => format!("{value:.precision$e}", precision = digits - 1),
        None => format!("{value:e}"),
    };
    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or_default();
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let count = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let limit = match digits {
        Some(digits) if digits > count && count as i32 > power => count,
        Some(digits) => digits,
        None => 6,
    };
    if power < -4 || power >= limit as i32 {
        return exponent(&format!("{mantissa}e{power}"));
    }
    let decimals = usize::try_from(count as i32 - 1 - power).unwrap_or(0);
    format!("{value:.decimals$}")
}
