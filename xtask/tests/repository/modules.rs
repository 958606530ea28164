//! Checks that modules use only those above them in the code maps.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::map::{DOCUMENT, Map, maps};
use crate::source::{Source, test_files, tokens};
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (maps, mut findings) = maps(tree);
    let tests = test_files(tree);
    for (path, _) in tree.files() {
        let Some(sources) = path.strip_suffix("/lib.rs").or(path.strip_suffix("/main.rs")) else {
            continue;
        };
        let crate_of_ours = sources.starts_with("crates/") && sources.ends_with("/src");
        if crate_of_ours && !maps.iter().any(|map| map.sources == sources) {
            let message = format!(
                "{DOCUMENT} has no code map that begins \"`{sources}`: a module uses only\""
            );
            findings.push(Finding::new(path, 0, message));
        }
    }
    for map in &maps {
        match Root::of(tree, map) {
            Some(root) => {
                findings.extend(root.complete(map));
                findings.extend(root.order(map));
                findings.extend(root.uses(tree, &tests, map));
            }
            None => findings.push(Finding::new(
                DOCUMENT,
                map.line,
                format!("there is neither lib.rs nor main.rs in {}", map.sources),
            )),
        }
    }
    findings
}

/// The declarations of lib.rs or main.rs.
struct Root<'a> {
    file: String,
    /// Modules with their line, in groups: an empty line or a comment starts a new group; rustfmt sorts within
    /// groups.
    groups: Vec<Vec<(usize, &'a str)>>,
    /// Re-exported names, with their modules.
    names: BTreeMap<String, String>,
}

impl<'a> Root<'a> {
    fn of(tree: &'a Tree, map: &Map) -> Option<Self> {
        let files = ["lib.rs", "main.rs"].map(|name| format!("{}/{name}", map.sources));
        let file = files.into_iter().find(|file| tree.get(file).is_some())?;
        let text = tree.get(&file)?;
        let mut groups = vec![Vec::new()];
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let declared = line.strip_prefix("pub ").unwrap_or(line);
            if let Some(name) =
                declared.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'))
            {
                groups.last_mut()?.push((number + 1, name));
            } else if line.is_empty() || line.starts_with("//") {
                groups.push(Vec::new());
            }
        }
        groups.retain(|group| !group.is_empty());
        let mut root = Self { file, groups, names: BTreeMap::new() };
        root.names = root.re_exports(&Source::of(text).code);
        Some(root)
    }

    fn modules(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.groups.iter().flatten().copied()
    }

    fn declares(&self, name: &str) -> bool {
        self.modules().any(|(_, module)| module == name)
    }

    fn re_exports(&self, code: &str) -> BTreeMap<String, String> {
        let tokens = tokens(code);
        let mut names = BTreeMap::new();
        for at in 0..tokens.len() {
            let after_use = at > 0 && tokens[at - 1].1 == "use";
            if after_use && self.declares(tokens[at].1) {
                for (_, path) in paths(&tokens, at) {
                    if let [module, .., name] = &*path {
                        names.insert((*name).to_owned(), (*module).to_owned());
                    }
                }
            }
        }
        names
    }

    /// Checks that the map has exactly the modules of the crate.
    fn complete(&self, map: &Map) -> Vec<Finding> {
        let missing = self.modules().filter(|(_, module)| map.row(module).is_none());
        let missing = missing.map(|(line, module)| {
            let message = format!(
                "`{module}` is in no row of the code map in {DOCUMENT}: add it where it belongs"
            );
            Finding::new(&self.file, line, message)
        });
        let gone = map.rows.iter().flatten().filter(|module| !self.declares(module));
        let gone = gone.map(|module| {
            let message =
                format!("the code map has `{module}`, which {} does not declare", self.file);
            Finding::new(DOCUMENT, map.line, message)
        });
        missing.chain(gone).collect()
    }

    /// Checks that declarations are in the order of the map, as far as rustfmt allows.
    fn order(&self, map: &Map) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut reached = 0;
        for group in &self.groups {
            for (line, module) in group {
                if map.row(module).is_some_and(|row| row < reached) {
                    let message = format!(
                        "`{module}` is declared later than the code map in {DOCUMENT} has it"
                    );
                    findings.push(Finding::new(&self.file, *line, message));
                }
            }
            let last = group.iter().filter_map(|(_, module)| map.row(module)).max();
            reached = reached.max(last.unwrap_or_default());
        }
        findings
    }

    fn uses(&self, tree: &Tree, tests: &BTreeSet<String>, map: &Map) -> Vec<Finding> {
        let (mut findings, mut needed) = (Vec::new(), Vec::new());
        for (file, text) in tree.with_end(".rs") {
            let Some(inside) = file.strip_prefix(&format!("{}/", map.sources)) else { continue };
            if file == self.file || tests.contains(file) {
                continue;
            }
            let here = module_path(inside);
            for (line, to) in self.used(&here, &Source::of(text).without_tests()) {
                if map.allows(here[0], &to) {
                    continue;
                }
                if map.excepts(here[0], &to) {
                    needed.push((here[0].to_owned(), to));
                    continue;
                }
                let message = format!(
                    "`{}` uses `{to}`, which is not above it in the code map of {DOCUMENT}: move what is shared",
                    here[0]
                );
                findings.push(Finding::new(file, line, message));
            }
        }
        findings.dedup();
        for exception in &map.exceptions {
            if !needed.contains(&(exception.from.clone(), exception.to.clone())) {
                let message = "nothing needs this exception any more: take it out";
                findings.push(Finding::new(DOCUMENT, exception.line, message));
            }
        }
        findings
    }

    /// Returns the other modules that a file names, with the lines.
    fn used(&self, here: &[&str], code: &str) -> Vec<(usize, String)> {
        let tokens = tokens(code);
        let mut used = Vec::new();
        for at in 0..tokens.len() {
            let inside = at > 0 && tokens[at - 1].1 == "::";
            if inside || !matches!(tokens[at].1, "crate" | "super") {
                continue;
            }
            for (line, path) in paths(&tokens, at) {
                let Some(name) = from_root(here, &path) else { continue };
                let module = if self.declares(name) {
                    Some(name)
                } else {
                    self.names.get(name).map(|name| &**name)
                };
                if let Some(module) = module.filter(|module| *module != here[0]) {
                    used.push((line, module.to_owned()));
                }
            }
        }
        used
    }
}

/// Converts `reflector/state.rs` to `reflector::state`.
fn module_path(file: &str) -> Vec<&str> {
    file.trim_end_matches(".rs").split('/').collect()
}

/// Returns the first name of a path below the crate's root, if it leads there.
fn from_root<'a>(here: &[&str], path: &[&'a str]) -> Option<&'a str> {
    if path.first() == Some(&"crate") {
        return path.get(1).copied();
    }
    let up = path.iter().take_while(|part| **part == "super").count();
    if up == here.len() { path.get(up).copied() } else { None }
}

/// Returns all paths of the use tree that starts here: `a::{b, c::d}` has two.
fn paths<'a>(tokens: &[(usize, &'a str)], at: usize) -> Vec<(usize, Vec<&'a str>)> {
    let mut found = Vec::new();
    tree_of(tokens, at, &mut Vec::new(), &mut found);
    found
}

fn tree_of<'a>(
    tokens: &[(usize, &'a str)],
    mut at: usize,
    prefix: &mut Vec<&'a str>,
    found: &mut Vec<(usize, Vec<&'a str>)>,
) -> usize {
    let depth = prefix.len();
    while let Some((line, token)) = tokens.get(at).copied() {
        if token == "{" && depth > 0 && prefix.len() == depth {
            at += 1;
            while tokens.get(at).is_some_and(|(_, token)| *token != "}") {
                at = tree_of(tokens, at, prefix, found).max(at + 1);
            }
            return at + 1;
        }
        if !token.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            break;
        }
        prefix.push(token);
        at += 1;
        if tokens.get(at).is_none_or(|(_, token)| *token != "::") {
            found.push((line, prefix.clone()));
            break;
        }
        at += 1;
        if tokens.get(at).is_some_and(|(_, token)| *token == "{") {
            at = tree_of(tokens, at, prefix, found);
            break;
        }
    }
    prefix.truncate(depth);
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "`crates/a/src`: a module uses only those **above** it.\n\n\
        | module |\n| --- |\n| `words` |\n| `low` |\n| `high` |\n";
    const ROOT: &str = "mod words;\n\nmod low;\n\n#[allow(x)]\nmod high;\n\npub use high::{Top, Other};\npub use low::Low;\n";

    fn findings(map: &str, root: &str, files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![(DOCUMENT, map), ("crates/a/src/lib.rs", root)];
        all.extend(files);
        check(&Tree::of(all)).iter().map(ToString::to_string).collect()
    }

    fn one(findings: &[String], begin: &str) {
        let [finding] = findings else { panic!("one finding: {findings:#?}") };
        assert!(finding.starts_with(begin), "{finding}");
    }

    #[test]
    fn looking_up_is_allowed() {
        let high =
            "use crate::low::x;\nuse crate::{Low, words::{self, Word}};\nfn f(_: super::Low) {}";
        assert_eq!(findings(MAP, ROOT, &[("crates/a/src/high.rs", high)]), [""; 0]);
        let inside = "use super::other;\nuse crate::high::more;";
        assert_eq!(findings(MAP, ROOT, &[("crates/a/src/high/part.rs", inside)]), [""; 0]);
    }

    #[test]
    fn looking_down_is_found_however_it_is_written() {
        for (file, text, line) in [
            ("low.rs", "\nuse crate::high::Top;", 2),
            ("low.rs", "use std::x;\nuse crate::{\n    Low,\n    Top,\n};", 4),
            ("low.rs", "fn f() { crate::high::run(); }", 1),
            ("low.rs", "use super::high;", 1),
            ("low/part.rs", "use super::super::Other;", 1),
            ("words.rs", "use crate::words::{self};\nuse crate::{words, low};", 2),
        ] {
            let file = format!("crates/a/src/{file}");
            one(&findings(MAP, ROOT, &[(&file, text)]), &format!("{file}:{line}: `"));
        }
    }

    #[test]
    fn tests_comments_and_strings_may_look_anywhere() {
        let low = "// crate::high\nfn f() { g(\"crate::high\") }\n#[cfg(test)]\nmod tests { use crate::high; }\n#[cfg(test)]\nmod more;";
        let more = ("crates/a/src/low/more.rs", "use crate::high::Top;");
        assert_eq!(findings(MAP, ROOT, &[("crates/a/src/low.rs", low), more]), [""; 0]);
    }

    #[test]
    fn exceptions_count_and_go_when_they_are_not_needed() {
        let map = format!("{MAP}\n- `low` → `high`: because\n");
        let low = ("crates/a/src/low.rs", "use crate::high::Top;");
        assert_eq!(findings(&map, ROOT, &[low]), [""; 0]);
        one(&findings(&map, ROOT, &[]), "ARCHITECTURE.md:9: nothing needs this exception");
    }

    #[test]
    fn map_and_declarations_are_the_same() {
        let root = ROOT.replace("mod low;", "mod low;\nmod new;");
        one(&findings(MAP, &root, &[]), "crates/a/src/lib.rs:4: `new` is in no row");
        let map = format!("{MAP}| `gone` |\n");
        one(&findings(&map, ROOT, &[]), "ARCHITECTURE.md:1: the code map has `gone`");
        let root = "mod high;\n\nmod words;\nmod low;";
        let found = findings(MAP, root, &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/lib.rs:3: `words` is declared later"));
    }

    #[test]
    fn every_crate_has_a_map_and_every_map_a_crate() {
        let other = ("crates/b/src/main.rs", "");
        one(
            &findings(MAP, ROOT, &[other]),
            "crates/b/src/main.rs: ARCHITECTURE.md has no code map",
        );
        let map = MAP.replace("crates/a", "crates/c");
        assert_eq!(findings(&map, ROOT, &[]).len(), 2);
    }
}
