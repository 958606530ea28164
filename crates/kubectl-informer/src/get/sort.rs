//! `--sort-by`: the order of the objects, as in kubectl.

use std::cmp::Ordering;
use std::str::FromStr;

use serde_json::Value;

use crate::path::{self, Path, Step};
use crate::syntax::SyntaxError;
use crate::until::quantity;

const EXAMPLE: &str = "a field is written as .metadata.name, {.status.startTime} or \
    .status.containerStatuses[0].restartCount";

/// The field to sort by.
#[derive(Clone, Debug)]
pub(super) struct SortBy {
    /// The path in kubectl's notation, for messages: `{.metadata.name}`.
    shown: String,
    steps: Vec<Step>,
}

impl FromStr for SortBy {
    type Err = SyntaxError;

    /// Parses the path of a field. As in kubectl, the braces and the leading dot are optional.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let inside = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let inside = inside.unwrap_or(text);
        let dot = if inside.starts_with(['.', '[']) { "" } else { "." };
        let shown = format!("{{{dot}{inside}}}");
        let (steps, end) = Path::parse_steps(&shown, 1)?;
        if steps.is_empty() || shown[end..] != *"}" {
            return Err(SyntaxError::new(&shown, end, "expected the path of a field").hint(EXAMPLE));
        }
        Ok(Self { shown, steps })
    }
}

/// The value that an object is sorted by. The variants are in ascending order.
#[derive(Clone, PartialEq, Debug)]
enum Key {
    /// An object without the field comes first.
    Missing,
    Null,
    Number(f64),
    Text(String),
}

impl SortBy {
    /// Sorts items by their values in the field. Items with equal values keep their order. It is an
    /// error if no item has the field, or if its values cannot be compared.
    pub(super) fn sort<T>(
        &self,
        items: Vec<T>,
        value: impl Fn(&T) -> Result<Value, String>,
    ) -> Result<Vec<T>, String> {
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            keyed.push((self.key(&value(&item)?)?, item));
        }
        if !keyed.is_empty() && keyed.iter().all(|(key, _)| *key == Key::Missing) {
            let shown = &self.shown;
            return Err(format!(
                "couldn't find any field with path {shown:?} in the list of objects"
            ));
        }
        let has = |wanted: fn(&Key) -> bool| keyed.iter().any(|(key, _)| wanted(key));
        if has(|key| matches!(key, Key::Number(_))) && has(|key| matches!(key, Key::Text(_))) {
            let shown = &self.shown;
            return Err(format!(
                "--sort-by {shown}: it is a number in some objects and a text in others, which \
                 cannot be compared"
            ));
        }
        // kubectl decides for each pair, which is no order if only some texts are quantities.
        let text = |key: &Key| if let Key::Text(text) = key { Some(text.clone()) } else { None };
        let quantities = keyed.iter().filter_map(|(key, _)| text(key));
        let quantities = quantities.into_iter().all(|text| quantity::parse(&text).is_some());
        keyed.sort_by(|(a, _), (b, _)| a.compare(b, quantities));
        Ok(keyed.into_iter().map(|(_, item)| item).collect())
    }

    /// Returns the first value in the field.
    fn key(&self, object: &Value) -> Result<Key, String> {
        let unsortable = |what: &str| {
            let shown = &self.shown;
            Err(format!("--sort-by {shown}: {what} cannot be sorted: name a string or a number"))
        };
        match path::find(&self.steps, object).first() {
            None => Ok(Key::Missing),
            Some(Value::Null) => Ok(Key::Null),
            Some(Value::String(text)) => Ok(Key::Text(text.clone())),
            Some(Value::Number(number)) => Ok(Key::Number(number.as_f64().unwrap_or_default())),
            Some(Value::Bool(_)) => unsortable("true and false"),
            Some(Value::Array(_)) => unsortable("a list"),
            Some(Value::Object(_)) => unsortable("an object"),
        }
    }
}

impl Key {
    fn compare(&self, other: &Self, quantities: bool) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) if quantities => {
                let number = |text| quantity::parse(text).unwrap_or_default();
                // Beyond the precision of a float, digits still differ.
                number(a).total_cmp(&number(b)).then_with(|| natural(a, b))
            }
            (Self::Text(a), Self::Text(b)) => natural(a, b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::Null => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

/// Compares texts such that `web-2` comes before `web-10`: digits as numbers, the rest by bytes. Of
/// equal numbers, the one with fewer leading zeros comes first. A digit comes before anything else.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, _) | (_, None) => return a.len().cmp(&b.len()),
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let ((x, of_a), (y, of_b)) = (digits(a), digits(b));
                let (whole, other) = (a.len() - of_a.len(), b.len() - of_b.len());
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                let order = order.then_with(|| whole.cmp(&other));
                if order.is_ne() {
                    return order;
                }
                (a, b) = (of_a, of_b);
            }
            (Some(x), Some(y)) if x == y => (a, b) = (&a[1..], &b[1..]),
            (Some(x), Some(y)) => {
                return y.is_ascii_digit().cmp(&x.is_ascii_digit()).then_with(|| x.cmp(y));
            }
        }
    }
}

/// Splits a text into the digits at its start, without leading zeros, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sorted(field: &str, values: Value) -> Result<Value, String> {
        let by: SortBy = field.parse().map_err(|error: SyntaxError| error.to_string())?;
        let Value::Array(values) = values else { return Err("no list".to_owned()) };
        by.sort(values, |value| Ok(value.clone())).map(Value::Array)
    }

    #[test]
    fn values_are_sorted_as_in_kubectl() {
        for (values, expected) in [
            (json!(["web-10", "web-2", "web-02"]), json!(["web-2", "web-02", "web-10"])),
            (json!(["1Gi", "500Mi", "2k"]), json!(["2k", "500Mi", "1Gi"])),
            (json!([10, 9, 1.5]), json!([1.5, 9, 10])),
            (json!(["b", null, "a"]), json!([null, "a", "b"])),
            (json!(["2026-10-01T", "2026-09-30T"]), json!(["2026-09-30T", "2026-10-01T"])),
            (
                json!(["9007199254740993", "9007199254740992"]),
                json!(["9007199254740992", "9007199254740993"]),
            ),
        ] {
            let list = |values: &Value| -> Value {
                values.as_array().unwrap().iter().map(|value| json!({"x": value})).collect()
            };
            assert_eq!(sorted(".x", list(&values)).unwrap(), list(&expected));
        }
    }

    #[test]
    fn objects_without_the_field_come_first_in_order() {
        let list =
            json!([{"x": 2, "n": 1}, {"n": 2}, {"x": 1, "n": 3}, {"n": 4}, {"x": 2, "n": 5}]);
        let names = sorted("x", list).unwrap();
        let names: Vec<_> = names.as_array().unwrap().iter().map(|it| it["n"].clone()).collect();
        assert_eq!(names, [2, 4, 3, 1, 5]);
        assert_eq!(sorted("x", json!([])).unwrap(), json!([]));
        let none = sorted("{.a.b}", json!([{"x": 1}])).unwrap_err();
        assert_eq!(none, r#"couldn't find any field with path "{.a.b}" in the list of objects"#);
    }

    #[test]
    fn values_that_cannot_be_compared_are_errors() {
        for (list, problem) in [
            (json!([{"x": true}]), "true and false cannot be sorted"),
            (json!([{"x": [1]}]), "a list cannot be sorted"),
            (json!([{"x": {}}]), "an object cannot be sorted"),
            (json!([{"x": 1}, {"x": "a"}]), "a number in some objects and a text in others"),
        ] {
            let error = sorted(".x", list).unwrap_err();
            assert!(error.contains("{.x}") && error.contains(problem), "{error}");
        }
        for wrong in ["", "{}", ".", ".x[", "{.x", ".x}", "{.x} {.y}"] {
            assert!(wrong.parse::<SortBy>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn natural_order_is_total(texts in prop::collection::vec("[0-9a-c]{0,6}", 3)) {
            let [a, b, c] = [&texts[0], &texts[1], &texts[2]];
            prop_assert_eq!(natural(a, b), natural(b, a).reverse());
            prop_assert_eq!(natural(a, b).is_eq(), a == b);
            prop_assert!(natural(a, b).is_gt() || natural(b, c).is_gt() || natural(a, c).is_le());
        }
    }
}
