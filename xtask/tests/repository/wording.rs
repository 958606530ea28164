//! Turns of phrase that make prose hard to read: comments that start with a question word, and sentences without an actor.
//!
//! Directories that still have some are listed with their number. The numbers may only shrink.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

/// A doc comment that starts like this describes the item in a roundabout way.
const STARTS: [&str; 4] = ["What ", "Who ", "All that ", "Whoever "];

/// Words that hide who acts.
// In halves, so that this file has none of them.
const ACTORS: [&str; 3] = [concat!("who", "ever"), concat!("some", "body"), concat!("no", "body")];

/// Paths that are not clean yet, and how many findings each may have. This list must shrink: lower a number after cleaning up, and
/// remove the entry when it reaches zero. Add nothing.
const NOT_CLEAN_YET: [(&str, usize); 1] = [("crates/kubectl-informer", 2)];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_except(tree, &NOT_CLEAN_YET)
}

fn check_except(tree: &Tree, allowed: &[(&str, usize)]) -> Vec<Finding> {
    let mut found: Vec<Finding> = tree.with_end(".rs").flat_map(comments).collect();
    found.extend(tree.with_end(".md").flat_map(prose));
    let mut findings = Vec::new();
    for &(path, most) in allowed {
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|finding| is_in(&finding.file, path));
        found = elsewhere;
        if here.is_empty() {
            let message = "its wording is clean: remove it from `NOT_CLEAN_YET` in \
                           xtask/tests/repository/wording.rs";
            findings.push(Finding::new(path, 0, message));
        } else if here.len() > most {
            findings.extend(here);
        }
    }
    findings.extend(found);
    findings
}

/// Returns whether a file is this path or in it. `src/a` includes `src/a.rs`, as modules do.
fn is_in(file: &str, path: &str) -> bool {
    file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
}

fn comments((file, text): (&str, &str)) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut follows = false;
    for (number, line) in Source::of(text).comments.lines().enumerate() {
        let line = line.trim();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(start) = doc.filter(|_| !follows).and_then(start) {
            let message = format!(
                "a doc comment starts with `{}`: start with a verb for a function (`Returns …`), or \
                 with a noun for a type or field (`The number of …`)",
                start.trim_end()
            );
            findings.push(Finding::new(file, number + 1, message));
        }
        follows = doc.is_some();
        findings.extend(actor(file, number + 1, line));
    }
    findings
}

fn start(doc: &str) -> Option<&'static str> {
    STARTS.into_iter().find(|start| doc.trim_start().starts_with(start))
}

/// Checks a Markdown file, except for its code.
fn prose((file, text): (&str, &str)) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if !code {
            let outside: String = line.split('`').step_by(2).collect();
            findings.extend(actor(file, number + 1, &outside));
        }
    }
    findings
}

fn actor(file: &str, line: usize, text: &str) -> Option<Finding> {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let word = words.find(|word| ACTORS.contains(word))?;
    let message = format!("`{word}`: name the actor (`the caller`, `no handler`, `the server`)");
    Some(Finding::new(file, line, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str, allowed: &[(&str, usize)]) -> Vec<String> {
        let findings = check_except(&Tree::of([(file, text)]), allowed);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn plain_prose_passes() {
        for (file, text) in [
            ("src/a.rs", "/// Returns the labels.\n/// What follows is a second line.\nfn f() {}"),
            ("src/a.rs", "// What a plain comment asks is left alone.\n"),
            ("src/a.rs", &format!("const A: &str = \"{}\";", ACTORS[0])),
            ("docs/a.md", &format!("`{}` and\n```\n{}\n```\n", ACTORS[1], ACTORS[2])),
        ] {
            assert_eq!(found(file, text, &[]), [""; 0], "{text}");
        }
    }

    #[test]
    fn bad_prose_is_found_with_its_line() {
        for (file, text, message) in [
            ("src/a.rs", "\n/// What is kept.\nfn f() {}".to_owned(), "src/a.rs:2: a doc comment"),
            ("src/a.rs", "//! Who calls it.\n".to_owned(), "src/a.rs:1: a doc comment"),
            ("src/a.rs", format!("\n// For {} else.", ACTORS[1]), "src/a.rs:2: `some"),
            ("docs/a.md", format!("a\n\nIt delays {}.", ACTORS[2]), "docs/a.md:3: `no"),
        ] {
            let found = found(file, &text, &[]);
            assert!(found.len() == 1 && found[0].starts_with(message), "{found:?}");
        }
    }

    #[test]
    fn the_list_of_exceptions_can_only_shrink() {
        let text = "/// What a.\nfn a() {}\n/// Who b.\nfn b() {}";
        assert_eq!(found("src/a.rs", text, &[("src/a", 2)]), [""; 0]);
        assert_eq!(found("src/a.rs", text, &[("src/a", 1)]).len(), 2);
        assert_eq!(found("src/ab.rs", text, &[("src/ab", 2), ("src/a", 1)]).len(), 1);
        let clean = found("src/a.rs", "", &[("src/a", 2)]);
        assert!(clean[0].starts_with("src/a: its wording is clean: remove it"), "{clean:?}");
    }
}
