//! The public API of the published crates is listed in `docs/api`, one line per item, so that a change of it is a line
//! in a diff.
//!
//!     UPDATE_API=1 cargo test -p xtask --test api
//!
//! The list is made from the sources, without a compiler: it works on stable Rust. Types are listed under the path from
//! which users import them, with their public fields, variants and methods, the traits that they implement or derive, and the features that
//! they need. Not listed: auto traits (`Send`), implementations for types of other crates, and what macros expand to.

mod crates;
mod list;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 4] =
    ["embedded-apiserver", "kube-informer", "kube-informer-debug", "kube-schema"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn public_api_is_the_listed_one() {
    let mut stale = Vec::new();
    for name in CRATES {
        let source = crates::Crate::read(&root().join("crates").join(name));
        let list = list::lines(&source).join("\n") + "\n";
        let file = root().join(format!("docs/api/{name}.txt"));
        if std::env::var_os("UPDATE_API").is_some() {
            fs::write(&file, &list).unwrap();
        }
        let listed = fs::read_to_string(&file).unwrap_or_default();
        stale.extend(changes(&listed, &list));
    }
    assert!(
        stale.is_empty(),
        "the public API has changed. If that is intended: UPDATE_API=1 cargo test -p xtask --test api, and a line in \
         CHANGELOG.md\n{}",
        stale.join("\n")
    );
}

/// Returns the lines of one list that the other lacks.
fn changes(old: &str, new: &str) -> Vec<String> {
    let without = |mark, list: &str, other: &str| -> Vec<String> {
        let missing = list.lines().filter(|line| !other.lines().any(|each| each == *line));
        missing.map(|line| format!("{mark} {line}")).collect()
    };
    let mut changes = without('-', old, new);
    changes.extend(without('+', new, old));
    if changes.is_empty() && old != new {
        changes.push("the order of lines".to_owned());
    }
    changes
}

#[test]
fn changes_are_seen() {
    assert_eq!(changes("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
    assert_eq!(changes("a\nb\n", "b\na\n"), ["the order of lines"]);
    assert_eq!(changes("a\n", "a\n"), [""; 0]);
}
