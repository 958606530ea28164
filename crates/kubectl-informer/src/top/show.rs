//! Renders the counts, for people and for programs.

use std::sync::Arc;
use std::time::Duration;

use regex_lite::Regex;
use serde_json::{Value, json};

use super::count::{Busy, Counts, rate};
use crate::discovery::Type;
use crate::plain;
use crate::status::{counted, grouped};
use crate::table::Table;

/// The maximum number of fields to show for an object.
const FIELDS_SHOWN: usize = 3;

/// The depth at which paths are cut for people. Programs get whole paths.
const DEPTH_SHOWN: usize = 3;

/// The state to show at one moment.
pub(super) struct View<'a> {
    pub(super) counts: &'a Counts,
    /// The types, and the current number of objects of each.
    pub(super) types: Vec<(Arc<Type>, usize)>,
    pub(super) time: Duration,
    pub(super) limit: usize,
    /// Only objects whose names match are shown.
    pub(super) filter: Option<&'a Regex>,
    /// The width of the terminal, if there is one.
    pub(super) width: Option<usize>,
}

impl View<'_> {
    pub(super) fn text(&self) -> Result<String, String> {
        let Self { counts, time, .. } = self;
        let bytes: u64 = counts.types.iter().map(|changes| changes.bytes).sum();
        let digits = usize::from(time.as_secs() < 10);
        let seconds = format!("{:.digits$} s", time.as_secs_f64());
        let mut text = if counts.all() == 0 {
            format!("nothing changed in {seconds}\n")
        } else {
            format!(
                "{} in {seconds}, {} a second, {}{}\n",
                counted(counts.all(), "change"),
                decimal(rate(counts.all(), *time)),
                per_second(bytes, *time),
                self.recently(),
            )
        };
        text.push('\n');
        push(&mut text, &self.types().fit(self.width, &["OBJECTS", "BYTES/S", "CHANGES/S"]))?;
        let busiest = self.busiest();
        if !busiest.is_empty() {
            text.push('\n');
            let without = ["PER SECOND", "LAST MIN/S"];
            push(&mut text, &self.objects(&busiest).fit(self.width, &without))?;
        } else if let Some(filter) = self.filter {
            text.push_str(&format!("\nno object that has changed matches {filter}\n"));
        }
        Ok(text)
    }

    fn busiest(&self) -> Vec<(usize, &str, &Busy)> {
        let passes = |name: &str| self.filter.is_none_or(|filter| filter.is_match(name));
        self.counts.busiest(self.limit, passes)
    }

    /// Describes the rate of the last minute, once there is more than that.
    fn recently(&self) -> String {
        const MINUTE: Duration = Duration::from_secs(60);
        if self.time <= MINUTE {
            return String::new();
        }
        let rates = self.counts.types.iter().map(|changes| changes.minute.rate(self.time));
        format!("; in the last minute {} a second", decimal(rates.sum()))
    }

    fn types(&self) -> Table {
        let mut table = Table::plain(&[
            "TYPE",
            "OBJECTS",
            "CHANGES/S",
            "LAST MIN/S",
            "ADDED",
            "UPDATED",
            "DELETED",
            "BYTES/S",
        ]);
        let mut rows: Vec<_> = self.types.iter().zip(&self.counts.types).collect();
        rows.sort_by_key(|(_, changes)| std::cmp::Reverse(changes.all()));
        for ((of, objects), changes) in rows {
            table.push(&[
                of.name(),
                grouped(*objects as u64),
                decimal(rate(changes.all(), self.time)),
                decimal(changes.minute.rate(self.time)),
                grouped(changes.added),
                grouped(changes.updated),
                grouped(changes.deleted),
                per_second(changes.bytes, self.time),
            ]);
        }
        table
    }

    fn objects(&self, busiest: &[(usize, &str, &Busy)]) -> Table {
        let mut table =
            Table::plain(&["CHANGES", "PER SECOND", "LAST MIN/S", "KIND", "NAME", "WHAT CHANGES"]);
        for (place, key, busy) in busiest {
            let all = busy.changes.all();
            table.push(&[
                grouped(all),
                decimal(rate(all, self.time)),
                decimal(busy.changes.minute.rate(self.time)),
                self.types[*place].0.kind.clone(),
                (*key).to_owned(),
                what(busy),
            ]);
        }
        table
    }

    pub(super) fn json(&self) -> Result<String, String> {
        let round = |number: f64| (number * 1000.0).round() / 1000.0;
        let types = self.types.iter().zip(&self.counts.types).map(|((of, objects), changes)| {
            json!({
                "type": of.name(),
                "objects": objects,
                "added": changes.added,
                "updated": changes.updated,
                "deleted": changes.deleted,
                "changesPerSecond": round(rate(changes.all(), self.time)),
                "changesPerSecondInLastMinute": round(changes.minute.rate(self.time)),
                "bytesPerSecond": round(rate(changes.bytes, self.time)),
            })
        });
        let busiest = self.busiest();
        let objects = busiest.iter().map(|(place, key, busy)| {
            let fields = busy.fields();
            let fields = fields.iter().map(|(path, n)| json!({"path": path, "changes": n}));
            json!({
                "type": self.types[*place].0.name(),
                "kind": self.types[*place].0.kind,
                "key": key,
                "changes": busy.changes.all(),
                "added": busy.changes.added,
                "updated": busy.changes.updated,
                "deleted": busy.changes.deleted,
                "changesPerSecond": round(rate(busy.changes.all(), self.time)),
                "changesPerSecondInLastMinute": round(busy.changes.minute.rate(self.time)),
                "fields": fields.collect::<Value>(),
            })
        });
        let view = json!({
            "seconds": round(self.time.as_secs_f64()),
            "changes": self.counts.all(),
            "types": types.collect::<Value>(),
            "objects": objects.collect::<Value>(),
        });
        let text = serde_json::to_string_pretty(&view).map_err(|error| error.to_string())?;
        Ok(format!("{text}\n"))
    }
}

/// Summarizes the changes of an object: `.status.phase 12, .spec.replicas 3`, and whether it was
/// added or deleted.
fn what(busy: &Busy) -> String {
    let mut fields: Vec<(&str, u64)> = Vec::new();
    for (path, n) in busy.fields() {
        // The most frequent path comes first. Its count is a lower bound of the changes under the
        // same beginning.
        if fields.iter().all(|(known, _)| *known != upper(path)) {
            fields.push((upper(path), n));
        }
    }
    let shown = fields.iter().take(FIELDS_SHOWN);
    let mut parts: Vec<_> = shown.map(|(path, n)| format!("{path} {}", grouped(*n))).collect();
    if fields.len() > FIELDS_SHOWN {
        parts.push("…".to_owned());
    }
    for (number, word) in [(busy.changes.added, "added"), (busy.changes.deleted, "deleted")] {
        match number {
            0 => {}
            1 => parts.push(word.to_owned()),
            more => parts.push(format!("{word} {}", grouped(more))),
        }
    }
    parts.join(", ")
}

/// Returns the beginning of a path, as deep as people see it.
fn upper(path: &str) -> &str {
    let mut brackets = 0_usize;
    let mut dots = 0;
    for (at, letter) in path.char_indices() {
        match letter {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            '.' if brackets == 0 => dots += 1,
            _ => {}
        }
        if dots > DEPTH_SHOWN {
            return &path[..at];
        }
    }
    path
}

fn push(text: &mut String, table: &Table) -> Result<(), String> {
    let mut out = Vec::new();
    table.write(&mut out, true).map_err(|error| error.to_string())?;
    text.push_str(&String::from_utf8_lossy(&out));
    Ok(())
}

/// Formats a number, with one decimal place if it is small.
fn decimal(number: f64) -> String {
    if number == 0.0 {
        "0".to_owned()
    } else if number < 9.95 {
        format!("{number:.1}")
    } else {
        grouped(number.round() as u64)
    }
}

fn per_second(bytes: u64, time: Duration) -> String {
    format!("{}/s", plain::bytes(rate(bytes, time).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_between_names() {
        for (path, expected) in [
            (".spec.replicas", ".spec.replicas"),
            (".status.conditions[Ready].status", ".status.conditions[Ready].status"),
            (
                ".status.containerStatuses[a.b].state.running",
                ".status.containerStatuses[a.b].state",
            ),
            (".metadata.labels['a.b/c'].d", ".metadata.labels['a.b/c'].d"),
            ("", ""),
        ] {
            assert_eq!(upper(path), expected);
        }
    }
}
