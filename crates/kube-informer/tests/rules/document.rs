//! docs/client-go.md is complete, its counts are right, and the tests that it names exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rules of each part: the first and the last of each run of numbers.
const RULES: [(&str, &[(u32, u32)]); 21] = [
    ("K", &[(1, 7)]),
    ("S", &[(1, 28)]),
    ("D", &[(1, 20)]),
    ("F", &[(1, 16), (20, 27), (30, 36)]),
    ("R", &[(1, 5), (10, 16), (20, 33), (40, 58), (60, 62)]),
    ("W", &[(1, 17)]),
    ("C", &[(1, 7), (10, 27)]),
    ("H", &[(1, 19)]),
    ("I", &[(1, 8), (10, 11), (20, 29), (40, 45), (50, 53), (60, 62)]),
    ("T", &[(1, 9)]),
    ("E", &[(1, 3)]),
    ("FA", &[(1, 12)]),
    ("L", &[(1, 7)]),
    ("WQ", &[(1, 13), (20, 28), (30, 36), (40, 42)]),
    ("PQ", &[(1, 6)]),
    ("M", &[(1, 1), (10, 15)]),
    ("LE", &[(1, 12)]),
    ("CS", &[(1, 6)]),
    ("EV", &[(1, 12)]),
    ("SV", &[(1, 14)]),
    ("B", &[(1, 28)]),
];
const INVARIANTS: [(&str, u32); 2] = [("I", 22), ("L", 5)];
const VERDICTS: [&str; 4] = ["same", "differs", "by type", "–"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn document() -> String {
    let path = root().join("../../docs/client-go.md");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of every row of every table.
fn rows(text: &str) -> Vec<Vec<String>> {
    let row = |line: &str| {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
    };
    text.lines().filter_map(row).collect()
}

/// `R-46` as its part and number.
fn rule(cell: &str) -> Option<(&str, u32)> {
    let (part, number) = cell.split_once('-')?;
    let known = RULES.iter().any(|(name, _)| *name == part);
    Some((part, number.parse().ok()?)).filter(|_| known)
}

struct Row {
    id: String,
    verdict: &'static str,
    ours: String,
    tests: Vec<String>,
}

fn rules(text: &str) -> Vec<Row> {
    let row = |cells: &Vec<String>| {
        rule(&cells[0])?;
        let [id, _, ours, tests] = &cells[..] else {
            panic!("{}: a row has four cells, is there a | in one of them?", cells[0])
        };
        let verdict =
            VERDICTS.into_iter().find(|verdict| ours.starts_with(&format!("**{verdict}**")));
        let verdict = verdict.unwrap_or_else(|| panic!("{id}: {ours:?} is none of {VERDICTS:?}"));
        Some(Row { id: id.clone(), verdict, ours: ours.clone(), tests: named(tests) })
    };
    rows(text).iter().filter_map(row).collect()
}

/// The tests that a cell names.
fn named(cell: &str) -> Vec<String> {
    let tests = cell.split("<br>").map(str::trim).filter(|test| !test.is_empty());
    tests.map(|test| test.trim_matches('`').to_owned()).collect()
}

fn invariants(text: &str) -> &str {
    text.split_once("\n## What always holds\n").expect("the section is there").1
}

fn expected() -> BTreeSet<(&'static str, u32)> {
    let runs = RULES.iter().flat_map(|(part, runs)| runs.iter().map(move |run| (*part, *run)));
    runs.flat_map(|(part, (first, last))| (first..=last).map(move |number| (part, number)))
        .collect()
}

#[test]
fn every_rule_is_there_once() {
    let text = document();
    let rows = rules(&text);
    let mut seen = BTreeMap::new();
    for row in &rows {
        *seen.entry(rule(&row.id).expect("a rule")).or_insert(0) += 1;
    }
    let expected = expected();
    assert_eq!(expected.len(), 376);
    let missing: Vec<_> = expected.iter().filter(|rule| !seen.contains_key(*rule)).collect();
    assert!(missing.is_empty(), "docs/client-go.md has no row for {missing:?}");
    let unknown: Vec<_> = seen.keys().filter(|rule| !expected.contains(*rule)).collect();
    assert!(unknown.is_empty(), "docs/client-go.md has rows for {unknown:?}, which are no rules");
    let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "docs/client-go.md has more than one row for {twice:?}");
}

#[test]
fn every_row_says_what_is_different_and_names_a_test() {
    for Row { id, verdict, ours, tests } in rules(&document()) {
        if matches!(verdict, "same" | "differs") {
            assert!(!tests.is_empty(), "{id}: {verdict}, and no test that shows it");
        }
        let said = ours.len() > verdict.len() + 6;
        assert!(verdict == "same" || said, "{id}: {verdict}, and not how or why");
    }
}

#[test]
fn every_invariant_is_there_and_names_a_test() {
    let text = document();
    let rows = rows(invariants(&text));
    for (part, count) in INVARIANTS {
        for number in 1..=count {
            let id = format!("{part}{number}");
            let found: Vec<_> = rows.iter().filter(|cells| cells[0] == id).collect();
            let [cells] = &found[..] else { panic!("{id}: {} rows", found.len()) };
            assert!(!named(&cells[2]).is_empty(), "{id}: no test shows it");
        }
    }
}

#[test]
fn the_counts_at_the_top_are_right() {
    let text = document();
    let mut counts = BTreeMap::<String, [usize; 4]>::new();
    for row in rules(&text) {
        let (part, _) = rule(&row.id).expect("a rule");
        let at = VERDICTS.iter().position(|verdict| *verdict == row.verdict).expect("a verdict");
        counts.entry(part.to_owned()).or_default()[at] += 1;
        counts.entry("all".to_owned()).or_default()[at] += 1;
    }
    // `[Keys (K)](#keys-k)` is about K.
    let part = |cell: &str| match cell {
        "**all**" => Some("all".to_owned()),
        _ => Some(cell.split_once(" (")?.1.split_once(")](#")?.0.to_owned()),
    };
    let mut seen = BTreeSet::new();
    for cells in rows(&text).iter().filter(|cells| cells.len() == 6) {
        let Some(part) = part(&cells[0]) else { continue };
        let said: Vec<usize> =
            cells[1..].iter().map(|cell| cell.parse().expect("a count")).collect();
        let right = counts.get(&part).unwrap_or_else(|| panic!("{part}: no such part"));
        let sum = right.iter().sum();
        let right: Vec<_> = std::iter::once(sum).chain(right.iter().copied()).collect();
        assert_eq!(said, right, "{part}: the table says {said:?}, the rows are {right:?}");
        seen.insert(part);
    }
    assert_eq!(seen.len(), RULES.len() + 1, "the table has only {seen:?}");
}

/// The files of a directory and below.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files = vec![];
    for path in entries.map(|entry| entry.expect("readable").path()) {
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns the files that may contain a test: `tests/rules: name` is in that directory or file,
/// `a::b::tests::name` in the file of that module or, if its tests are inline, of its parent.
fn places(test: &str) -> (Vec<PathBuf>, String) {
    if let Some((directory, name)) = test.split_once(": ") {
        let directory = root().join(directory);
        let files = if directory.is_dir() {
            sources(&directory)
        } else {
            vec![directory.with_extension("rs")]
        };
        return (files, name.to_owned());
    }
    let (module, name) = test.rsplit_once("::").unwrap_or(("", test));
    let file =
        |module: &str| root().join("src").join(module.replace("::", "/")).with_extension("rs");
    let above = module.strip_suffix("::tests").map(file);
    (std::iter::once(file(module)).chain(above).collect(), name.to_owned())
}

fn has_test(file: &Path, name: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {name}(")))
}

#[test]
fn every_test_that_is_named_exists() {
    let text = document();
    let mut tests: BTreeSet<_> = rules(&text).into_iter().flat_map(|row| row.tests).collect();
    tests.extend(rows(invariants(&text)).iter().skip(2).flat_map(|cells| named(&cells[2])));
    assert!(tests.len() > 100, "only {} tests are named", tests.len());
    let is_lost = |test: &&String| {
        let (files, name) = places(test);
        !files.iter().any(|file| has_test(file, &name))
    };
    let lost: Vec<_> = tests.iter().filter(is_lost).collect();
    assert!(lost.is_empty(), "docs/client-go.md names tests that do not exist: {lost:#?}");
}
