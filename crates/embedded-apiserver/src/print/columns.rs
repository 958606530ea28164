//! kubectl's columns, for clients that have objects instead of a table.

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::{ColumnDefinition, Printer, custom, printer};
use crate::kinds::{PrinterColumn, crd};

/// The columns of `kubectl get`, computed from objects.
///
/// kubectl requests a table from the server. A client that already has the object, such as from a
/// watch, can compute the same cells without another request:
///
/// ```
/// use embedded_apiserver::Columns;
/// use serde_json::json;
///
/// let columns = Columns::built_in("", "pods");
/// let names: Vec<_> = columns.definitions().filter(|c| !c.wide).map(|c| c.name).collect();
/// assert_eq!(names, ["Name", "Ready", "Status", "Restarts", "Age"]);
///
/// let pod = json!({
///     "metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:00:00Z"},
///     "spec": {"containers": [{"name": "web"}]}, "status": {"phase": "Pending"},
/// });
/// let now = "2026-01-01T00:00:45Z".parse().unwrap();
/// assert_eq!(columns.cells(&pod, now)[..5], ["web", "0/1", "Pending", "0", "45s"]);
/// ```
#[derive(Clone)]
pub struct Columns {
    definitions: Vec<ColumnDefinition>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    BuiltIn(&'static Printer),
    Custom(Vec<PrinterColumn>),
}

/// A column of [`Columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column<'a> {
    /// The name, such as `Nominated Node`. kubectl prints it in capital letters.
    pub name: &'a str,
    /// Whether kubectl shows it only with `-o wide`.
    pub wide: bool,
}

/// The error of [`Columns::custom`]: the value is not a definition, or lacks the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoColumns(String);

impl fmt::Display for NoColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoColumns {}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.definitions()).finish()
    }
}

impl Columns {
    /// Returns the columns of a built-in resource, such as `("apps", "deployments")`. Unknown
    /// resources have a name and an age.
    pub fn built_in(group: &str, plural: &str) -> Self {
        let printer = printer(group, plural);
        Self { definitions: printer.columns.to_vec(), source: Source::BuiltIn(printer) }
    }

    /// Returns the columns of a version of a `CustomResourceDefinition`: the name and its
    /// `additionalPrinterColumns`, or the age if there are none. A column with an invalid path is
    /// empty.
    pub fn custom(definition: &Value, version: &str) -> Result<Self, NoColumns> {
        let versions = definition["spec"]["versions"].as_array().ok_or_else(|| {
            NoColumns(
                "this is no CustomResourceDefinition: it has no list spec.versions".to_owned(),
            )
        })?;
        let Some(found) = versions.iter().find(|found| found["name"] == version) else {
            let names: Vec<_> =
                versions.iter().filter_map(|found| found["name"].as_str()).collect();
            return Err(NoColumns(format!(
                "the CustomResourceDefinition has no version {version:?}; it has: {}",
                names.join(", ")
            )));
        };
        let columns = crd::columns(found);
        Ok(Self { definitions: custom::columns(&columns), source: Source::Custom(columns) })
    }

    /// Returns the columns in order.
    pub fn definitions(&self) -> impl Iterator<Item = Column<'_>> {
        self.definitions.iter().map(|it| Column { name: &it.name, wide: it.priority != 0 })
    }

    /// Returns the cells of an object at a point in time, one for each column, as kubectl prints
    /// them. Missing values are empty, and only the first of several lines is shown. Cells contain
    /// no control characters.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<String> {
        let cells = match &self.source {
            Source::BuiltIn(printer) => (printer.cells)(object, now),
            Source::Custom(columns) => custom::cells(columns, object, now),
        };
        cells.iter().map(shown).collect()
    }
}

fn shown(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => match text.find(['\n', '\r', '\u{c}']) {
            Some(end) => format!("{}...", printable(&text[..end])),
            None => printable(text),
        },
        other => custom::text(other),
    }
}

/// Escapes characters that would move the cursor or change the colours of a terminal.
fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => out.push(' '),
            '\0'..='\u{1f}' => out.extend(['^', char::from(character as u8 + b'@')]),
            '\u{7f}'..='\u{9f}' => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::fixtures::now;
    use super::*;

    fn definition() -> Value {
        json!({"spec": {"versions": [
            {"name": "v1", "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
                {"name": "Half", "type": "number", "jsonPath": ".spec.half"},
                {"name": "Broken", "type": "string", "jsonPath": ".spec["},
            ]},
            {"name": "v2"},
        ]}})
    }

    fn names(columns: &Columns) -> Vec<(&str, bool)> {
        columns.definitions().map(|column| (column.name, column.wide)).collect()
    }

    #[test]
    fn a_resource_without_a_printer_has_a_name_and_an_age() {
        let columns = Columns::built_in("example.com", "things");
        assert_eq!(names(&columns), [("Name", false), ("Age", false)]);
        let object =
            json!({"metadata": {"name": "one", "creationTimestamp": "2025-12-31T23:00:00Z"}});
        assert_eq!(columns.cells(&object, now()), ["one", "60m"]);
        assert_eq!(columns.cells(&json!(7), now()), ["", "<unknown>"]);
    }

    #[test]
    fn custom_columns_are_those_of_the_version() {
        let columns = Columns::custom(&definition(), "v1").unwrap();
        let expected =
            [("Name", false), ("Size", false), ("Note", true), ("Half", false), ("Broken", false)];
        assert_eq!(names(&columns), expected);
        let object =
            json!({"metadata": {"name": "one"}, "spec": {"size": 3, "note": "a\nb", "half": 0.5}});
        assert_eq!(columns.cells(&object, now()), ["one", "3", "a...", "0.5", ""]);
        assert_eq!(columns.cells(&json!({}), now()), ["", "", "", "", ""]);

        let columns = Columns::custom(&definition(), "v2").unwrap();
        assert_eq!(names(&columns), [("Name", false), ("Age", false)]);
    }

    #[test]
    fn what_is_no_definition_of_the_version_is_named() {
        let problem = Columns::custom(&definition(), "v3").unwrap_err().to_string();
        assert!(problem.contains("\"v3\"") && problem.contains("v1, v2"), "{problem}");
        let problem = Columns::custom(&json!([]), "v1").unwrap_err().to_string();
        assert!(problem.contains("spec.versions"), "{problem}");
    }

    #[test]
    fn nothing_in_a_cell_reaches_the_terminal_as_a_command() {
        let cells = [
            (json!("\u{1b}[31mred"), "^[[31mred"),
            (json!("a\tb\u{9b}c"), "a b\u{fffd}c"),
            (json!("one\r\ntwo"), "one..."),
            (json!(true), "true"),
            (json!(1e21), "1e+21"),
            (json!(null), ""),
        ];
        for (cell, expected) in cells {
            assert_eq!(shown(&cell), expected, "{cell}");
        }
    }

    proptest! {
        #[test]
        fn cells_are_printable_whatever_the_text(text in any::<String>()) {
            prop_assert!(!shown(&text.into()).contains(char::is_control));
        }
    }
}
