//! Checks that CONTRIBUTING.md has a reason for every dependency, and for nothing else.

use crate::finding::Finding;
use crate::markdown::{cells, inline_code};
use crate::tree::Tree;

const DOCUMENT: &str = "CONTRIBUTING.md";
const WORKSPACE: &str = "Cargo.toml";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let reasons = reasons(tree.get(DOCUMENT).unwrap_or_default());
    let known = dependencies(tree.get(WORKSPACE).unwrap_or_default(), "[workspace.dependencies]");
    let mut findings = Vec::new();
    for (line, name, _) in &known {
        if !reasons.iter().any(|(_, reason)| reason == name) {
            let message =
                format!("`{name}` is not in the tables of {DOCUMENT}: say there what it is for");
            findings.push(Finding::new(WORKSPACE, *line, message));
        }
    }
    for (line, reason) in &reasons {
        if !known.iter().any(|(_, name, _)| name == reason) {
            let message = format!("`{reason}` is no dependency of the workspace: take it out");
            findings.push(Finding::new(DOCUMENT, *line, message));
        }
    }
    let manifests: Vec<_> =
        tree.with_end("/Cargo.toml").filter(|(file, _)| !file.starts_with("fuzz/")).collect();
    for (file, text) in &manifests {
        for section in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
            for (line, name, of_workspace) in dependencies(text, section) {
                if !of_workspace {
                    let message =
                        format!("`{name}` is not the workspace's: write `{name}.workspace = true`");
                    findings.push(Finding::new(file, line, message));
                }
            }
        }
    }
    for (line, name, _) in known {
        let used = |text: &&str| text.lines().any(|line| key(line) == Some(&*name));
        if !manifests.iter().any(|(_, text)| used(text)) {
            let message = format!("no crate uses `{name}`: take it out");
            findings.push(Finding::new(WORKSPACE, line, message));
        }
    }
    findings
}

/// Returns the first columns of the tables below the heading.
fn reasons(document: &str) -> Vec<(usize, String)> {
    let section =
        document.lines().enumerate().skip_while(|(_, line)| *line != "## Dependencies").skip(1);
    let section = section.take_while(|(_, line)| !line.starts_with("## "));
    section
        .filter_map(|(number, line)| Some((number + 1, cells(line)?.into_iter().next()?)))
        .flat_map(|(number, cell)| {
            inline_code(&cell).into_iter().map(|name| (number, name.to_owned())).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the names in a section, with their lines, and whether each is inherited from the workspace. Our own crates
/// are not dependencies.
fn dependencies(manifest: &str, section: &str) -> Vec<(usize, String, bool)> {
    let lines = manifest.lines().enumerate().skip_while(|(_, line)| line.trim() != section).skip(1);
    let lines = lines.take_while(|(_, line)| !line.starts_with('['));
    let named = lines.filter_map(|(number, line)| Some((number + 1, key(line)?, line)));
    let others = named.filter(|(_, _, line)| !line.contains("path = "));
    others
        .map(|(number, name, line)| (number, name.to_owned(), line.contains("workspace = true")))
        .collect()
}

fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim().split('.').next()?;
    (!key.starts_with('#')).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "## Dependencies\n\n| crate | for |\n| --- | --- |\n| `one`, `two` | `this` |\n\n## Other\n\n| `three` |\n";
    const MANIFEST: &str = "[workspace.dependencies]\nours = { path = \"crates/ours\" }\n# Tests.\none = \"1\"\ntwo = { version = \"2\" }\n\n[profile.release]\nx = 1\n";
    const CRATE: &str = "[dependencies]\nours.workspace = true\none.workspace = true\n\n[dev-dependencies]\ntwo = { workspace = true }\n";

    fn findings(table: &str, manifest: &str, member: &str) -> Vec<String> {
        let tree =
            Tree::of([(DOCUMENT, table), (WORKSPACE, manifest), ("crates/a/Cargo.toml", member)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tables_and_manifests_agree() {
        assert_eq!(findings(TABLE, MANIFEST, CRATE), [""; 0]);
    }

    #[test]
    fn what_one_lacks_is_found() {
        let found = findings(&TABLE.replace(", `two`", ""), MANIFEST, CRATE);
        assert!(
            found.len() == 1 && found[0].starts_with("Cargo.toml:5: `two` is not in the tables"),
            "{found:?}"
        );
        let found = findings(&TABLE.replace("`two`", "`two`, `four`"), MANIFEST, CRATE);
        assert!(
            found.len() == 1 && found[0].starts_with("CONTRIBUTING.md:5: `four` is no dependency"),
            "{found:?}"
        );
        let found = findings(TABLE, MANIFEST, &format!("{CRATE}five = \"5\"\n"));
        assert!(
            found.len() == 1 && found[0].starts_with("crates/a/Cargo.toml:7: `five` is not"),
            "{found:?}"
        );
        let found = findings(TABLE, MANIFEST, &CRATE.replace("two = { workspace = true }\n", ""));
        assert!(
            found.len() == 1 && found[0].starts_with("Cargo.toml:5: no crate uses `two`"),
            "{found:?}"
        );
    }
}
