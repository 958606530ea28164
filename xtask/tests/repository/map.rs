//! The code maps of ARCHITECTURE.md: the modules of a crate, and the order in which they build on each other.
//!
//! A map is a table whose first column names modules, below a line with their directory: "`crates/kube-informer/src`:
//! a module uses only those **above** it." Exceptions may follow it: "- `server` → `pods`: …".

use crate::finding::Finding;
use crate::markdown::{cells, inline_code};
use crate::tree::Tree;

pub(crate) const DOCUMENT: &str = "ARCHITECTURE.md";

#[derive(Debug, Default)]
pub(crate) struct Map {
    /// The directory of the modules.
    pub(crate) sources: String,
    /// The line in the document.
    pub(crate) line: usize,
    /// A module may use those of its own row and of the rows above.
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) exceptions: Vec<Exception>,
}

#[derive(Debug)]
pub(crate) struct Exception {
    pub(crate) line: usize,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Map {
    pub(crate) fn row(&self, module: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.iter().any(|name| name == module))
    }

    /// Returns whether one module may use another, ignoring exceptions. A module that is not in the map is a separate
    /// finding.
    pub(crate) fn allows(&self, from: &str, to: &str) -> bool {
        let (Some(from), Some(to)) = (self.row(from), self.row(to)) else { return true };
        to <= from
    }

    pub(crate) fn excepts(&self, from: &str, to: &str) -> bool {
        self.exceptions.iter().any(|exception| exception.from == from && exception.to == to)
    }
}

/// Returns all maps of the document, and findings about their format.
pub(crate) fn maps(tree: &Tree) -> (Vec<Map>, Vec<Finding>) {
    let Some(document) = tree.get(DOCUMENT) else {
        return (Vec::new(), vec![Finding::new(DOCUMENT, 0, "is not there: it has the code maps")]);
    };
    let (mut maps, mut findings) = (Vec::<Map>::new(), Vec::new());
    let mut open = false;
    for (number, line) in document.lines().enumerate().map(|(number, line)| (number + 1, line)) {
        if line.starts_with('#') {
            open = false;
        }
        if let Some(map) = introduced(line, number) {
            if !line.contains("**above**") {
                let message = "all maps read one way: \"a module uses only those **above** it\"";
                findings.push(Finding::new(DOCUMENT, number, message));
            }
            maps.push(map);
            open = true;
        }
        if let Some(map) = maps.last_mut().filter(|_| open) {
            read(map, line, number);
        }
    }
    (maps, findings)
}

fn introduced(line: &str, number: usize) -> Option<Map> {
    let (sources, _) = line.strip_prefix('`')?.split_once("`: a module uses only")?;
    Some(Map { sources: sources.to_owned(), line: number, ..Map::default() })
}

fn read(map: &mut Map, line: &str, number: usize) {
    if let Some(exception) = line.strip_prefix("- `").and_then(exception) {
        let (from, to) = exception;
        map.exceptions.push(Exception { line: number, from: from.to_owned(), to: to.to_owned() });
    }
    let Some(first) = cells(line).and_then(|cells| cells.into_iter().next()) else { return };
    let modules: Vec<String> = inline_code(&first).into_iter().map(str::to_owned).collect();
    if !modules.is_empty() {
        map.rows.push(modules);
    }
}

fn exception(item: &str) -> Option<(&str, &str)> {
    let (from, rest) = item.split_once("` → `")?;
    let (to, _) = rest.split_once('`')?;
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Code\n\n### Map\n\n`crates/a/src`: a module uses only those **above** it.\n\n\
        | module | what |\n| --- | --- |\n| `one`, `two` | `not` this |\n| `top` | x |\n\n\
        - `two` → `top`: because\n\n## Other\n\n| `far` | y |\n";

    #[test]
    fn a_map_is_read_as_it_is_written() {
        let (maps, findings) = maps(&Tree::of([(DOCUMENT, TEXT)]));
        assert_eq!(findings, []);
        let [map] = &*maps else { panic!("one map: {maps:?}") };
        assert_eq!((&*map.sources, map.line), ("crates/a/src", 5));
        assert_eq!(map.rows, [vec!["one", "two"], vec!["top"]]);
        assert!(map.allows("top", "one") && map.allows("one", "two") && !map.allows("one", "top"));
        assert!(map.excepts("two", "top") && !map.excepts("one", "top"));
    }

    #[test]
    fn a_map_that_reads_another_way_is_a_finding() {
        for other in ["above", "**below**"] {
            let text = TEXT.replace("**above**", other);
            assert_eq!(maps(&Tree::of([(DOCUMENT, &*text)])).1[0].line, 5, "{other}");
        }
        assert_eq!(maps(&Tree::default()).1.len(), 1);
    }
}
