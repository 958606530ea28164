//! Tables as text.

use super::programs::OURS_METADATA;
use super::table::{Row, Table, spread};

/// Formats a table as Markdown that also reads well in a terminal. Each value of a peer is followed by how many times
/// better ours is.
pub(super) fn markdown(table: &Table) -> String {
    let mut lines = vec![vec!["program".to_owned()]];
    lines[0].extend(table.metrics.iter().map(|metric| metric.name.clone()));
    for row in &table.rows {
        let mut cells = vec![row.program.clone()];
        for (metric, values) in table.metrics.iter().zip(&row.values) {
            let ours = ours_beside(table, row);
            let ratio = table.ratio(ours, &row.program, &metric.name);
            let ratio = ratio.filter(|_| row.program != ours);
            let ratio = ratio.map_or_else(String::new, |ratio| format!(" · {ratio:.1} ×"));
            cells.push(format!("{}{ratio}", spread(values, metric.unit)));
        }
        lines.push(cells);
    }
    format!("{}:\n\n{}", table.title, aligned(&lines))
}

/// Returns the variant of ours that a program is compared with.
pub(super) fn ours_beside(table: &Table, row: &Row) -> &'static str {
    if row.is_metadata() { OURS_METADATA } else { table.ours() }
}

/// Aligns columns, with the first line as the heading.
pub(super) fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|cells| cells.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, cells) in lines.iter().enumerate() {
        for (cell, width) in cells.iter().zip(&widths) {
            text.push_str(&format!("| {cell:<width$} "));
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                text.push_str(&format!("| {} ", "-".repeat(*width)));
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::programs::OURS;
    use super::super::table::Unit;
    use super::*;

    #[test]
    fn peers_are_shown_with_how_many_times_better_ours_is() {
        let mut table = Table::new("x", "Sync", "", &[("CPU", Unit::Seconds)]);
        table.add(OURS, &[1.0]);
        table.add("kube-rs, default", &[7.0]);
        let text = markdown(&table);
        assert!(text.starts_with("Sync:\n\n| program "), "{text}");
        assert!(text.contains("| ours, packed     | 1.00 s         |"), "{text}");
        assert!(text.contains("| kube-rs, default | 7.00 s · 7.0 × |"), "{text}");
    }
}
