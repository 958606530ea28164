//! Custom resources, whose definitions have columns with JSON paths.

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::jsonpath::JsonPath;
use super::{ColumnDefinition, NAME, age, read};
use crate::kinds::PrinterColumn;

pub(super) fn columns(columns: &[PrinterColumn]) -> Vec<ColumnDefinition> {
    let own = columns.iter().map(|column| ColumnDefinition {
        name: column.name.clone().into(),
        kind: column.kind.clone().into(),
        format: column.format.clone().into(),
        description: if column.description.is_empty() {
            format!("The value at {}.", column.json_path).into()
        } else {
            column.description.clone().into()
        },
        priority: column.priority,
    });
    let mut all = vec![NAME];
    all.extend(own);
    if columns.is_empty() {
        all.push(ColumnDefinition { kind: "date".into(), ..super::AGE });
    }
    all
}

pub(super) fn cells(columns: &[PrinterColumn], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![read::name(object).into()];
    cells.extend(columns.iter().map(|column| cell(column, object, now)));
    if columns.is_empty() {
        cells.push(date(&object["metadata"]["creationTimestamp"], now));
    }
    cells
}

/// Returns the cell, which is null if the path finds nothing or a value that does not match the
/// column's type.
fn cell(column: &PrinterColumn, object: &Value, now: Timestamp) -> Value {
    // The definition of an invalid path should have been rejected.
    let Ok(path) = JsonPath::parse(&column.json_path) else { return Value::Null };
    let Some(value) = path.find(object).into_iter().next() else { return Value::Null };
    match column.kind.as_str() {
        "string" => text(value).into(),
        "integer" => integer(value),
        "number" => number(value),
        "boolean" => value.as_bool().into(),
        "date" => date(value, now),
        _ => Value::Null,
    }
}

fn date(value: &Value, now: Timestamp) -> Value {
    let Some(text) = value.as_str() else { return Value::Null };
    match age::parse(text) {
        Some(instant) => age::since(Some(instant), now).into(),
        None if age::is_unset(text) => "<unknown>".into(),
        None => "<invalid>".into(),
    }
}

fn integer(value: &Value) -> Value {
    let truncated = value.as_f64().map(|fraction| fraction as i64);
    value.as_i64().or(truncated).into()
}

/// Formats whole numbers without a decimal point, however the object spells them.
fn number(value: &Value) -> Value {
    match value.as_f64() {
        Some(fraction) if value.is_f64() && is_whole(fraction) => (fraction as i64).into(),
        Some(_) => value.clone(),
        None => Value::Null,
    }
}

/// Returns whether the number is an integer that a float represents exactly.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0
}

/// Returns a value as the text of a cell. Lists and objects are JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number_text(number),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(_) | Value::Object(_) => json_text(value),
    }
}

/// Returns JSON in which `<`, `>` and `&` are escaped for use in HTML, as on a real server. These
/// characters occur only within strings.
fn json_text(value: &Value) -> String {
    let mut json = value.to_string();
    for special in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        json = json.replace(special, &format!("\\u{:04x}", u32::from(special)));
    }
    json
}

/// Formats a number as digits, or with an exponent of at least two digits if it is very large or
/// very small.
fn number_text(number: &Number) -> String {
    let Some(fraction) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let scientific = format!("{fraction:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        fraction.to_string()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{custom, now, printer_column};
    use super::super::{cells, columns};
    use super::*;

    fn row(kind: &str, value: &Value) -> Value {
        let resource = custom(vec![printer_column("Value", kind, ".spec.value")]);
        let object = json!({"metadata": {"name": "one"}, "spec": {"value": value}});
        Value::from(cells(&resource, &object, now()))
    }

    #[test]
    fn values_print_as_the_type_of_their_column() {
        let cases = [
            ("string", json!("text"), json!("text")),
            ("string", json!(7), json!("7")),
            ("string", json!(1.0), json!("1")),
            ("string", json!(0.5), json!("0.5")),
            ("string", json!(1e21), json!("1e+21")),
            ("string", json!(1e20), json!("100000000000000000000")),
            ("string", json!(1.5e-7), json!("1.5e-07")),
            ("string", json!(true), json!("true")),
            ("string", json!(null), json!("<no value>")),
            ("string", json!(["a", 1]), json!(r#"["a",1]"#)),
            ("string", json!({"a": "<b>"}), json!(r#"{"a":"\u003cb\u003e"}"#)),
            ("integer", json!(7), json!(7)),
            ("integer", json!(7.9), json!(7)),
            ("integer", json!("7"), json!(null)),
            ("number", json!(7), json!(7)),
            ("number", json!(7.0), json!(7)),
            ("number", json!(0.5), json!(0.5)),
            ("number", json!("7"), json!(null)),
            ("boolean", json!(false), json!(false)),
            ("boolean", json!("false"), json!(null)),
            ("date", json!("2025-12-31T23:00:00Z"), json!("60m")),
            ("date", json!("yesterday"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!("2026-01-01T01:00:00Z"), json!("<invalid>")),
            ("date", json!(5), json!(null)),
            ("integer", json!(null), json!(null)),
            ("other", json!(1), json!(null)),
        ];
        for (kind, value, expected) in cases {
            assert_eq!(row(kind, &value), json!(["one", expected]), "{value} as {kind}");
        }
    }

    #[test]
    fn a_column_whose_path_finds_nothing_is_null() {
        let columns = ["string", "integer", "number", "boolean", "date"]
            .map(|kind| printer_column(kind, kind, ".spec.missing"));
        let object = json!({"metadata": {"name": "one"}});
        assert_eq!(
            Value::from(cells(&custom(columns.to_vec()), &object, now())),
            json!(["one", null, null, null, null, null])
        );
    }

    #[test]
    fn the_first_of_several_values_is_shown() {
        let resource = custom(vec![printer_column("Host", "string", ".spec.hosts[*].name")]);
        let object =
            json!({"metadata": {"name": "one"}, "spec": {"hosts": [{"name": "a"}, {"name": "b"}]}});
        assert_eq!(Value::from(cells(&resource, &object, now())), json!(["one", "a"]));
    }

    #[test]
    fn a_definition_without_columns_shows_the_age() {
        let resource = custom(Vec::new());
        let object =
            json!({"metadata": {"name": "one", "creationTimestamp": "2025-12-30T23:00:00Z"}});
        let columns = columns(&resource);
        let columns: Vec<_> = columns.iter().map(|c| (&*c.name, &*c.kind, &*c.format)).collect();
        assert_eq!(columns, [("Name", "string", "name"), ("Age", "date", "")]);
        assert_eq!(Value::from(cells(&resource, &object, now())), json!(["one", "25h"]));
        assert_eq!(Value::from(cells(&resource, &json!({}), now())), json!(["", null]));
    }

    #[test]
    fn columns_are_those_of_the_definition() {
        let own = PrinterColumn {
            format: "int32".into(),
            description: "How many.".into(),
            priority: 1,
            ..printer_column("Replicas", "integer", ".spec.replicas")
        };
        let columns = columns(&custom(vec![own, printer_column("Size", "string", ".spec.size")]));
        assert_eq!(columns.len(), 3);
        assert_eq!(columns[1].description, "How many.");
        assert_eq!((&*columns[1].format, columns[1].priority), ("int32", 1));
        assert_eq!(columns[2].description, "The value at .spec.size.");
    }
}
