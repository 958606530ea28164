//! Measurements on disk: an aborted or partial run adds to the existing ones.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::table::Table;
use crate::real_kubernetes::root;

fn directory() -> PathBuf {
    root().join("target/bench/results")
}

/// Stores a table, replacing the previous one.
pub(super) fn keep(table: &Table) -> Result<(), String> {
    let directory = directory();
    let file = directory.join(format!("{}.json", table.id));
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&file, table.to_json().to_string()))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Returns all stored tables, in the order of the report.
pub(super) fn kept() -> Result<Vec<Table>, String> {
    let entries = fs::read_dir(directory()).map_err(|error| {
        format!("nothing has been measured yet: {error}; run `cargo xtask bench`")
    })?;
    let mut tables = Vec::new();
    for entry in entries.flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let table = serde_json::from_str::<Value>(&text).ok().as_ref().and_then(Table::from_json);
        tables.push(table.ok_or_else(|| format!("{} is no table", entry.path().display()))?);
    }
    tables.sort_by_key(|table| order(&table.id));
    Ok(tables)
}

/// Orders the real server before the embedded one; measures by importance, then by size.
fn order(id: &str) -> (usize, usize, usize) {
    let places = ["real", "embedded", "alone"];
    let measures = [
        "sync", "slope", "fetch", "warm", "relist", "events", "latency", "handlers", "reads",
        "idle", "queue",
    ];
    let mut parts = id.split('-');
    let place = parts.next().and_then(|place| places.iter().position(|known| *known == place));
    let name = parts.next().unwrap_or_default();
    let measure = measures.iter().position(|known| *known == name).unwrap_or(measures.len());
    (
        place.unwrap_or(places.len()),
        measure,
        parts.next().and_then(|size| size.parse().ok()).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_and_the_real_server_comes_first() {
        let mut ids = ["embedded-idle", "embedded-sync-10000", "embedded-sync-3000", "real-events"];
        ids.sort_by_key(|id| order(id));
        assert_eq!(
            ids,
            ["real-events", "embedded-sync-3000", "embedded-sync-10000", "embedded-idle"]
        );
    }
}
