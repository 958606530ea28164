//! Checks that files are short: about 400 lines of code, without comments and tests.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

const LINES_MAX: usize = 400;

/// Files that are longer, with their number of lines. The numbers may only decrease: split the file, or lower its
/// number.
const LONGER: [(&str, usize); 1] = [("crates/kube-informer/benches/informer.rs", 409)];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    judge(tree, &LONGER)
}

fn judge(tree: &Tree, longer: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.with_end(".rs") {
        let lines = code_lines(text);
        let known = longer.iter().find(|(path, _)| *path == file).map(|(_, lines)| *lines);
        let message = match known {
            None if lines > LINES_MAX => {
                format!(
                    "has {lines} lines of code, more than {LINES_MAX}: split it by what it does"
                )
            }
            Some(_) if lines <= LINES_MAX => {
                format!("has {lines} lines of code and is short enough: take it out of LONGER")
            }
            Some(known) if lines > known => {
                format!("has grown from {known} to {lines} lines of code: split it by what it does")
            }
            Some(known) if lines < known => {
                format!("has {lines} lines of code: write that into LONGER")
            }
            _ => continue,
        };
        findings.push(Finding::new(file, 0, message));
    }
    let gone = longer.iter().filter(|(file, _)| tree.get(file).is_none());
    findings.extend(gone.map(|(file, _)| Finding::new(file, 0, "is gone: take it out of LONGER")));
    findings
}

fn code_lines(text: &str) -> usize {
    Source::of(text).without_tests().lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_tests_and_empty_lines_are_not_counted() {
        let text =
            "//! Long\n\n/* story\n */\nfn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(code_lines(text), 2);
    }

    #[test]
    fn long_files_are_found_and_known_ones_may_only_shrink() {
        let text = "x();\n".repeat(500);
        let tree = Tree::of([("a.rs", &*text), ("b.rs", "x();"), ("c.md", &*text)]);
        let says = |longer: &[(&str, usize)]| -> Vec<String> {
            judge(&tree, longer).iter().map(ToString::to_string).collect()
        };
        assert!(says(&[])[0].starts_with("a.rs: has 500 lines of code, more than 400"));
        assert_eq!(says(&[("a.rs", 500)]), [""; 0]);
        assert!(says(&[("a.rs", 450)])[0].contains("has grown from 450 to 500"));
        assert!(says(&[("a.rs", 600)])[0].contains("write that into LONGER"));
        assert!(says(&[("a.rs", 500), ("b.rs", 450)])[0].contains("short enough"));
        assert!(says(&[("a.rs", 500), ("z.rs", 450)])[0].contains("is gone"));
    }
}
