//! Checks for meaningless names, unfinished work, lints that are disabled without a reason, and paths of a machine.

use crate::finding::Finding;
use crate::source::{Source, tokens};
use crate::tree::Tree;

/// Modules are named after their subject.
const NAMES: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];

/// Texts by others.
const OTHERS: [&str; 3] = ["LICENSE", "Cargo.lock", "fuzz/Cargo.lock"];

// Split, so that this file does not contain them.
const UNFINISHED: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
const MACHINE: [&str; 5] = [
    concat!("/wo", "rk"),
    concat!("/ro", "ot"),
    concat!("/ho", "me"),
    concat!("/Us", "ers"),
    concat!("/mn", "t"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.files() {
        findings.extend(name(file));
        if !OTHERS.contains(&file) {
            findings.extend(words_of_text(file, text));
        }
    }
    for (file, text) in tree.with_end(".rs") {
        findings.extend(words_of_code(file, text));
        // Tests in a separate file document the module beside them.
        if !text.starts_with("//!") && !file.ends_with("/tests.rs") {
            let message = "begins without a line `//! …` that says what is in it: write one";
            findings.push(Finding::new(file, 1, message));
        }
    }
    findings
}

fn name(file: &str) -> Option<Finding> {
    let parts = file.trim_end_matches(".rs").split('/');
    if let Some(part) = parts.into_iter().find(|part| NAMES.contains(part)) {
        let message = format!("`{part}` says nothing: name it after what is in it");
        return Some(Finding::new(file, 0, message));
    }
    file.ends_with("/mod.rs").then(|| {
        let message = "modules are `foo.rs` beside `foo/`, not `foo/mod.rs`: move it; what tests \
                       or examples share is in `shared/`, and named with `#[path]`";
        Finding::new(file, 0, message)
    })
}

fn words_of_code(file: &str, text: &str) -> Vec<Finding> {
    let code = Source::of(text).code;
    let tokens = tokens(&code);
    let mut findings = Vec::new();
    for (at, &(line, token)) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| tokens[before].1);
        let message = match token {
            "unsafe" => "there is no `unsafe` here: find a crate that has a safe way".to_owned(),
            "allow" | "expect" if before == "[" && !has_reason(&tokens[at..]) => {
                format!("`{token}` without `reason = \"…\"`: say why, or do what the lint asks for")
            }
            name if before == "mod" && NAMES.contains(&name) => {
                format!("`{name}` says nothing: name it after what is in it")
            }
            _ => continue,
        };
        findings.push(Finding::new(file, line, message));
    }
    findings
}

/// Returns whether an attribute, up to its closing bracket, has a reason.
fn has_reason(attribute: &[(usize, &str)]) -> bool {
    let mut inside = attribute.iter().take_while(|(_, token)| *token != "]");
    inside.any(|(_, token)| *token == "reason")
}

fn words_of_text(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in UNFINISHED {
            if has_word(line, word) {
                let message = format!("{word}: do it, or write an issue");
                findings.push(Finding::new(file, number + 1, message));
            }
        }
        for path in MACHINE {
            if has_path(line, path) {
                let message = format!("{path} is a place on somebody's machine: take it out");
                findings.push(Finding::new(file, number + 1, message));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(word).any(|(at, _)| {
        edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next())
    })
}

/// Returns whether a line contains a path that starts there and continues: `api/v1/namespaces/home/pods` and
/// `/rooted` do not.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"./_-}*".contains(c))
            && line[at + path.len()..].starts_with('/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(file: &str, text: &str) -> Vec<String> {
        // Arguments with a mark are used as they are.
        let whole = text.strip_prefix('!').map(str::to_owned);
        let text = whole.unwrap_or_else(|| format!("//! It. {text}"));
        check(&Tree::of([(file, &*text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_fine() {
        for (file, text) in [
            ("src/a.rs", "unsafe is a word here\nfn f() { patch_unsafe(\"unsafe\") }"),
            ("docs/a.md", "/api/v1/namespaces/home/configmaps and the /rooted path"),
            ("crates/kube-informer/examples/shared/cluster.rs", ""),
            ("src/a/tests.rs", "!use super::*;"),
            ("src/a.rs", "\n#[allow(dead_code, reason = \"kept\")]\nfn f() { g.expect(\"x\") }"),
            ("src/common_name.rs", ""),
        ] {
            assert_eq!(findings(file, text), [""; 0], "{file}");
        }
    }

    #[test]
    fn what_is_not() {
        let unfinished = format!("\n// {}: later", UNFINISHED[0]);
        let machine = format!("see {}/someone/notes", MACHINE[2]);
        for (file, text, message) in [
            ("src/utils.rs", "", "src/utils.rs: `utils` says nothing"),
            ("src/common/a.rs", "", "src/common/a.rs: `common` says nothing"),
            ("src/a.rs", "\nmod helpers { }", "src/a.rs:2: `helpers` says nothing"),
            ("src/new/mod.rs", "", "src/new/mod.rs: modules are"),
            ("tests/new/mod.rs", "", "tests/new/mod.rs: modules are"),
            ("src/a.rs", "!fn f() {}", "src/a.rs:1: begins without"),
            ("src/a.rs", "\nfn f() {\n    unsafe { g() }\n}", "src/a.rs:3: there is no `unsafe`"),
            ("src/a.rs", "\n#![allow(dead_code)]", "src/a.rs:2: `allow` without"),
            ("src/a.rs", "\n#[expect(dead_code)] // reason", "src/a.rs:2: `expect` without"),
            ("src/a.rs", &unfinished, "src/a.rs:2: "),
            (".ci/run", &unfinished, ".ci/run:2: "),
            ("docs/a.md", &machine, "docs/a.md:1: "),
        ] {
            let found = findings(file, text);
            assert!(found.len() == 1 && found[0].starts_with(message), "{file}: {found:?}");
        }
    }
}
