//! Fixtures for the tests of the printers.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{NameRule, PrinterColumn, Resource};

/// Returns the current time of every test.
pub(super) fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub(super) fn builtin(group: &str, plural: &str) -> Resource {
    Resource {
        group: Cow::Owned(group.to_owned()),
        version: Cow::Borrowed("v1"),
        kind: Cow::Borrowed("Thing"),
        list_kind: Cow::Borrowed("ThingList"),
        plural: Cow::Owned(plural.to_owned()),
        singular: Cow::Borrowed("thing"),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        status: true,
        scale: None,
        generation: true,
        unconditional_update: true,
        name_rule: NameRule::Subdomain,
        selectable: Vec::new().into(),
        columns: Vec::new(),
        custom: false,
        stored: true,
        schema: None,
        table: "things".into(),
    }
}

pub(super) fn custom(columns: Vec<PrinterColumn>) -> Resource {
    Resource { columns, custom: true, ..builtin("example.com", "things") }
}

pub(super) fn printer_column(name: &str, kind: &str, json_path: &str) -> PrinterColumn {
    PrinterColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: json_path.to_owned(),
    }
}

/// Asserts that objects print as these rows. Each case is a behaviour, an object and its cells.
pub(super) fn assert_rows<const N: usize>(
    group: &str,
    plural: &str,
    cases: [(&str, Value, Value); N],
) {
    let resource = builtin(group, plural);
    for (behaviour, object, expected) in cases {
        let cells = super::cells(&resource, &object, now());
        assert_eq!(Value::from(cells), expected, "{behaviour}");
    }
}

/// Asserts the names, types and priorities of a resource's columns.
pub(super) fn assert_columns(group: &str, plural: &str, expected: &[(&str, &str, i32)]) {
    let columns = super::columns(&builtin(group, plural));
    let actual: Vec<_> = columns.iter().map(|c| (&*c.name, &*c.kind, c.priority)).collect();
    assert_eq!(actual, expected);
    for column in &columns {
        assert_eq!(column.format, if column.name == "Name" { "name" } else { "" });
        assert!(!column.description.is_empty(), "{} has no description", column.name);
    }
}
