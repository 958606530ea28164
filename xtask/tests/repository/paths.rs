//! Checks that files named in backticks exist.

use crate::finding::Finding;
use crate::markdown::{inline_code, prose};
use crate::tree::Tree;

const DOCUMENTS: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "BENCHMARKS.md"];
const ENDS: [&str; 7] = [".rs", ".md", ".toml", ".svg", ".sh", ".yaml", ".lock"];
const PLACES: [&str; 9] =
    [".ci/", ".cargo/", "benches/", "crates/", "docs/", "examples/", "fuzz/", "tests/", "xtask/"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in DOCUMENTS {
        for (line, text) in prose(tree.get(document).unwrap_or_default()) {
            for path in inline_code(text).into_iter().filter(|code| looks_like_a_file(code)) {
                if !exists(tree, path) {
                    let message =
                        format!("`{path}` is named, but not there: write where it is now");
                    findings.push(Finding::new(document, line, message));
                }
            }
        }
    }
    findings
}

fn looks_like_a_file(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    code.chars().all(plain)
        && !code.starts_with('/')
        && (ENDS.iter().any(|end| code.ends_with(end))
            || PLACES.iter().any(|place| code.starts_with(place)))
}

/// Accepts paths from the root, or from inside of a crate: `reflector/state.rs`.
fn exists(tree: &Tree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let (file, directory) = (format!("/{path}"), format!("/{path}/"));
    tree.has(path)
        || tree.files().any(|(known, _)| known.ends_with(&file) || known.contains(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_must_be_there() {
        let readme = "`crates/a/src/b/c.rs`, `b/c.rs`, `c.rs`, `crates/a`, `docs/`, `fn f`, `spec.nodeName`,\n\
            `c/b.rs`, `docs/gone.md`,\n```\n`docs/also-gone.md`\n```\n";
        let tree =
            Tree::of([("README.md", readme), ("crates/a/src/b/c.rs", ""), ("docs/x.md", "")]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("README.md:2: `c/b.rs` is named"));
        assert!(found[1].starts_with("README.md:2: `docs/gone.md` is named"));
    }
}
