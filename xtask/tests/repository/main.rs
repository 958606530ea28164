//! Checks the statements of ARCHITECTURE.md and CONTRIBUTING.md about the repository.
//!
//! Every check is a function of a [`Tree`], the files as text, so that each has tests with faulty trees.

mod commands;
mod dependencies;
mod finding;
mod invariants;
mod map;
mod markdown;
mod modules;
mod paths;
mod sizes;
mod source;
mod tree;
mod versions;
mod wording;
mod words;

use finding::Finding;
use tree::Tree;

/// Fails with all findings at once.
fn clean(findings: &[Finding]) {
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{} findings:\n{}", list.len(), list.join("\n"));
}

#[test]
fn modules_use_only_what_the_code_maps_allow() {
    clean(&modules::check(&Tree::repository()));
}

#[test]
fn what_the_invariants_forbid_is_not_there() {
    clean(&invariants::check(&Tree::repository()));
}

#[test]
fn files_are_short() {
    clean(&sizes::check(&Tree::repository()));
}

#[test]
fn names_and_words() {
    clean(&words::check(&Tree::repository()));
}

#[test]
fn prose_is_plain() {
    clean(&wording::check(&Tree::repository()));
}

#[test]
fn links_lead_somewhere() {
    clean(&markdown::check(&Tree::repository()));
}

#[test]
fn files_that_documents_name_exist() {
    clean(&paths::check(&Tree::repository()));
}

#[test]
fn commands_of_the_readme_are_run_before_a_change_lands() {
    clean(&commands::check(&Tree::repository()));
}

#[test]
fn dependencies_have_reasons() {
    clean(&dependencies::check(&Tree::repository()));
}

#[test]
fn second_versions_of_dependencies_have_reasons() {
    clean(&versions::check(&Tree::repository()));
}
