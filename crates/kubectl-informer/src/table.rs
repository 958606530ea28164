//! A table in kubectl's layout.

use std::io::{self, Write};

use embedded_apiserver::Columns;
use jiff::Timestamp;
use kube_informer::{Object, Untyped};
use serde_json::Value;

use crate::cells::{one_line, width};
use crate::labels;

/// The space between columns.
pub(crate) const GAP: usize = 3;

/// The minimum width of a column, including the space after it.
const WIDTH_MIN: usize = 6;

/// A table whose columns are as wide as their contents.
pub(crate) struct Table {
    titles: Vec<String>,
    /// The positions of an object's cells that are shown.
    shown: Vec<usize>,
    namespaces: bool,
    labels: labels::Options,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(
        columns: &Columns,
        labels: &labels::Options,
        wide: bool,
        namespaces: bool,
    ) -> Self {
        let shown: Vec<_> =
            columns.definitions().enumerate().filter(|(_, column)| wide || !column.wide).collect();
        let namespace = namespaces.then(|| "NAMESPACE".to_owned());
        let titles = shown.iter().map(|(_, column)| column.name.to_uppercase());
        Self {
            titles: namespace.into_iter().chain(titles).chain(labels.titles()).collect(),
            shown: shown.iter().map(|(place, _)| *place).collect(),
            namespaces,
            labels: labels.clone(),
            rows: Vec::new(),
        }
    }

    /// Creates a table of plain rows.
    pub(crate) fn plain(titles: &[&str]) -> Self {
        let titles = titles.iter().map(ToString::to_string).collect();
        Self {
            titles,
            shown: Vec::new(),
            namespaces: false,
            labels: labels::Options::default(),
            rows: Vec::new(),
        }
    }

    /// Adds a row as it is.
    pub(crate) fn push(&mut self, cells: &[String]) {
        self.rows.push(cells.iter().map(|cell| one_line(cell)).collect());
    }

    /// Adds an object. The kind, if given, precedes its name.
    pub(crate) fn row(
        &mut self,
        columns: &Columns,
        object: &Object<Untyped>,
        kind: Option<&str>,
        value: &Value,
        now: Timestamp,
    ) {
        let mut cells = columns.cells(value, now);
        if let (Some(kind), Some(name)) = (kind, cells.first_mut()) {
            *name = format!("{kind}/{name}");
        }
        let namespace = self.namespaces.then(|| object.namespace().unwrap_or_default().to_owned());
        let shown = self.shown.iter();
        let cells =
            shown.map(|&place| cells.get_mut(place).map(std::mem::take).unwrap_or_default());
        let cells = namespace.into_iter().chain(cells).chain(self.labels.cells(value));
        let row = cells.map(|cell| one_line(&cell)).collect();
        self.rows.push(row);
    }

    /// Drops columns with these titles, in this order, until rows fit the width.
    pub(crate) fn fit(mut self, columns: Option<usize>, without: &[&str]) -> Self {
        for title in without {
            let needed: usize = self.widths(true).iter().sum();
            if columns.is_none_or(|columns| needed <= columns + GAP) {
                break;
            }
            if let Some(place) = self.titles.iter().position(|each| each == title) {
                self.titles.remove(place);
                self.rows.iter_mut().filter(|row| place < row.len()).for_each(|row| {
                    row.remove(place);
                });
            }
        }
        self
    }

    /// Returns the width of each column, including the space after it.
    fn widths(&self, headers: bool) -> Vec<usize> {
        let titles = headers.then_some(&self.titles);
        let mut widths = vec![WIDTH_MIN; self.titles.len()];
        for row in titles.into_iter().chain(&self.rows) {
            for (room, cell) in widths.iter_mut().zip(row) {
                *room = (*room).max(width(cell) + GAP);
            }
        }
        widths
    }

    pub(crate) fn has(&self, title: &str) -> bool {
        self.titles.iter().any(|each| each == title)
    }

    pub(crate) fn write(&self, out: &mut impl Write, headers: bool) -> io::Result<()> {
        let titles = headers.then_some(&self.titles);
        let widths = self.widths(headers);
        for row in titles.into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (place, (room, cell)) in widths.iter().zip(row).enumerate() {
                line.push_str(cell);
                if place + 1 < row.len() {
                    let room = room.saturating_sub(width(cell));
                    line.extend(std::iter::repeat_n(' ', room));
                }
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table, headers: bool) -> String {
        let mut out = Vec::new();
        table.write(&mut out, headers).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_left_out_until_the_rest_fits() {
        let table = || {
            let mut table = Table::plain(&["NAME", "MUCH", "MORE", "LAST"]);
            table.push(&["a".into(), "b".into(), "c".into(), "last".into()]);
            table
        };
        let titles = |columns, without: &[&str]| table().fit(columns, without).titles.join(" ");
        assert_eq!(titles(None, &["MUCH"]), "NAME MUCH MORE LAST");
        assert_eq!(titles(Some(25), &["MUCH"]), "NAME MUCH MORE LAST");
        assert_eq!(titles(Some(24), &["MUCH", "MORE"]), "NAME MORE LAST");
        assert_eq!(titles(Some(0), &["MUCH", "MORE", "NONE"]), "NAME LAST");
        let fitted = text(&table().fit(Some(11), &["MUCH", "MORE"]), true);
        assert_eq!(fitted, "NAME   LAST\na      last\n");
    }

    #[test]
    fn columns_are_as_wide_as_kubectl_makes_them() {
        let mut table = Table::plain(&["NAME", "A", "AGE"]);
        table.push(&["grün".into(), "x".into(), "5m".into()]);
        table.push(&["longer-name".into(), String::new(), "1\x1b[2J".into()]);
        assert_eq!(
            text(&table, true),
            "NAME          A     AGE\n\
             grün          x     5m\n\
             longer-name         1\\u{1b}[2J\n"
        );
        assert_eq!(text(&table, false).lines().count(), 2);
        assert_eq!(text(&Table::plain(&["NAME"]), true), "NAME\n");
    }
}
