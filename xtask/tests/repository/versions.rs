//! Checks that `deny.toml` has a reason for every second version of a dependency, and for nothing else.
//!
//! cargo-deny does the same where it is installed; this runs everywhere.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::tree::Tree;

const LOCK: &str = "Cargo.lock";
const POLICY: &str = "deny.toml";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let older = older(tree.get(LOCK).unwrap_or_default());
    let skipped = skipped(tree.get(POLICY).unwrap_or_default());
    let matches = |skipped: &str, older: &str| {
        older.strip_prefix(skipped).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut findings = Vec::new();
    for (line, version) in &older {
        if !skipped.iter().any(|(_, skipped)| matches(skipped, version)) {
            let message = format!(
                "{version} is not the only version of this crate: update what needs it, or give the reason in {POLICY}"
            );
            findings.push(Finding::new(LOCK, *line, message));
        }
    }
    for (line, skipped) in &skipped {
        if !older.iter().any(|(_, version)| matches(skipped, version)) {
            let message = format!("{skipped} has no newer version in {LOCK}: take it out");
            findings.push(Finding::new(POLICY, *line, message));
        }
    }
    findings
}

/// A version: its parts, its line and its text.
type Version<'a> = (Vec<u64>, usize, &'a str);

/// Returns the versions, as `name@version`, of which there is a newer one, with their lines.
fn older(lock: &str) -> Vec<(usize, String)> {
    let mut crates: BTreeMap<&str, Vec<Version<'_>>> = BTreeMap::new();
    let mut lines = lock.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(name) = value(line, "name = ") else { continue };
        let Some((number, line)) = lines.next() else { break };
        let Some(version) = value(line, "version = ") else { continue };
        let parts = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or_default());
        crates.entry(name).or_default().push((parts.collect(), number + 1, version));
    }
    let mut older = Vec::new();
    for (name, mut versions) in crates {
        versions.sort();
        versions.pop();
        let named = |(_, line, version): (_, usize, &str)| (line, format!("{name}@{version}"));
        older.extend(versions.into_iter().map(named));
    }
    older
}

fn skipped(policy: &str) -> Vec<(usize, String)> {
    let lines = policy.lines().enumerate();
    let crates = lines.filter_map(|(number, line)| {
        let name = line.trim().strip_prefix("{ crate = \"")?.split('"').next()?;
        Some((number + 1, name.to_owned()))
    });
    crates.collect()
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.strip_prefix(key)?.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKED: &str = "[[package]]\nname = \"a\"\nversion = \"0.9.1\"\n\n[[package]]\nname = \"a\"\n\
        version = \"0.10.0\"\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";

    fn findings(policy: &str) -> Vec<String> {
        check(&Tree::of([(LOCK, LOCKED), (POLICY, policy)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn second_versions_have_reasons() {
        assert_eq!(findings("    { crate = \"a@0.9\", reason = \"c\" },\n"), [""; 0]);
        let found = findings("");
        assert!(
            found.len() == 1 && found[0].starts_with("Cargo.lock:3: a@0.9.1 is not"),
            "{found:?}"
        );
        let found = findings("    { crate = \"a@0.9\" },\n    { crate = \"b@1\" },\n");
        assert!(
            found.len() == 1 && found[0].starts_with("deny.toml:2: b@1 has no newer"),
            "{found:?}"
        );
        assert_eq!(findings("    { crate = \"a@0.91\" },\n").len(), 2);
    }
}
