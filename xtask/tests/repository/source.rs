//! Parses Rust as far as the checks need it: code without comments and strings, line by line.

use std::collections::BTreeSet;

use crate::tree::Tree;

/// A file in two layers of the same shape: characters of the other layer are spaces.
#[derive(Debug)]
pub(crate) struct Source {
    /// Without comments, and with strings empty.
    pub(crate) code: String,
    /// The comments alone.
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        let mut scan =
            Scan { rest: text, before: ' ', code: String::new(), comments: String::new() };
        while !scan.rest.is_empty() {
            scan.step();
        }
        Self { code: scan.code, comments: scan.comments }
    }

    /// Returns the code without test modules, with lines in their original places.
    pub(crate) fn without_tests(&self) -> String {
        let mut code = self.code.clone();
        while let Some(start) = code.find(TEST) {
            let end = item_end(&code, start);
            let blank: String = code[start..end].chars().map(blank).collect();
            code.replace_range(start..end, &blank);
        }
        code
    }
}

const TEST: &str = "#[cfg(test)]";

/// Returns the end of the item that starts here: its block or its semicolon.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return start + at + 1;
                }
            }
            ';' if depth == 0 => return start + at + 1,
            _ => {}
        }
    }
    code.len()
}

fn blank(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

/// Returns the files of a crate that are compiled only for tests, according to their declarations.
pub(crate) fn test_files(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in tree.with_end(".rs").filter(|(_, text)| text.contains(TEST)) {
        let source = Source::of(text);
        let mut rest = &*source.code;
        while let Some(start) = rest.find(TEST) {
            let end = item_end(rest, start);
            let item = rest[start + TEST.len()..end].trim();
            if let Some(name) = item.strip_prefix("mod ").and_then(|item| item.strip_suffix(';')) {
                found.extend(
                    tree.files()
                        .map(|(file, _)| file)
                        .filter(|file| {
                            let inside = format!("{}{name}", children(path));
                            file.strip_prefix(&inside)
                                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
                        })
                        .map(str::to_owned),
                );
            }
            rest = &rest[end..];
        }
    }
    found
}

/// Returns the directory of the modules that a file declares.
fn children(path: &str) -> String {
    let stem = path.trim_end_matches(".rs");
    match stem.rsplit_once('/') {
        Some((directory, "lib" | "main")) => format!("{directory}/"),
        _ => format!("{stem}/"),
    }
}

struct Scan<'a> {
    rest: &'a str,
    /// The last character of code, to distinguish a raw string from a name that ends with r.
    before: char,
    code: String,
    comments: String,
}

impl Scan<'_> {
    fn step(&mut self) {
        let named = self.before.is_alphanumeric() || self.before == '_';
        let c = self.rest.chars().next().unwrap_or_default();
        if self.rest.starts_with("//") {
            self.comment(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.comment(block_end(self.rest));
        } else if let Some(end) = raw_end(self.rest).filter(|_| !named) {
            self.string(end);
        } else if c == '"' {
            self.string(string_end(self.rest));
        } else if let Some(end) = char_end(self.rest) {
            self.string(end);
        } else {
            self.code.push(c);
            self.comments.push(blank(c));
            self.before = c;
            self.rest = &self.rest[c.len_utf8()..];
        }
    }

    fn comment(&mut self, end: usize) {
        self.comments.push_str(&self.rest[..end]);
        self.code.extend(self.rest[..end].chars().map(blank));
        self.rest = &self.rest[end..];
    }

    /// Keeps the quotes, so that an expression remains.
    fn string(&mut self, end: usize) {
        let text = &self.rest[..end];
        self.code.push('"');
        self.code.extend(text.chars().skip(1).map(blank));
        self.comments.extend(text.chars().map(blank));
        self.before = '"';
        self.rest = &self.rest[end..];
    }
}

fn block_end(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the end of `r"…"`, `br#"…"#` and the like.
fn raw_end(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let hashes = text[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let open = prefix.len() + hashes + 1;
    if text.as_bytes().get(open - 1) != Some(&b'"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    Some(text[open..].find(&close).map_or(text.len(), |at| open + at + close.len()))
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the end of `'c'`; a lifetime has none.
fn char_end(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let c = inner.chars().next()?;
    if c == '\\' {
        let end = inner.get(2..)?.find('\'')?;
        return Some(end + 4);
    }
    inner[c.len_utf8()..].starts_with('\'').then(|| c.len_utf8() + 2)
}

/// Returns the names and symbols of code, each with its line from 1.
pub(crate) fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next() {
            let name = |c: char| c.is_alphanumeric() || c == '_';
            let end = match c {
                _ if name(c) => rest.find(|c| !name(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            found.push((number + 1, &rest[..end]));
            rest = rest[end..].trim_start();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let text = "let a = \"crate::b // no\"; // yes: it's\nlet c = '\"'; /* x /* y */ z */ d('\\'', 'e');";
        let source = Source::of(text);
        assert_eq!(source.code.lines().count(), 2);
        let words: Vec<&str> = tokens(&source.code).into_iter().map(|(_, token)| token).collect();
        assert_eq!(words.join(" "), "let a = \" ; let c = \" ; d ( \" , \" ) ;");
        assert!(source.comments.contains("// yes: it's"));
        assert!(source.comments.contains("/* x /* y */ z */"));
        assert!(!source.comments.contains("// no"));
    }

    #[test]
    fn raw_strings_and_lifetimes() {
        let source =
            Source::of("fn f<'a>(x: &'a str) { g(r#\"a \" b\"#, br\"//\", bar\"c\", 'a') }");
        assert!(source.code.starts_with("fn f<'a>(x: &'a str) { g(\""));
        assert!(!source.code.contains('b') || source.code.contains("bar"));
        assert_eq!(source.comments.trim(), "");
    }

    #[test]
    fn code_of_tests_is_left_out() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { c() }\n}\nfn d() {}\n#[cfg(test)]\nuse e;\n";
        let code = Source::of(text).without_tests();
        assert!(code.contains("fn a") && code.contains("fn d"));
        assert!(!code.contains("fn b") && !code.contains("use e"));
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn files_of_tests_are_known_by_who_declares_them() {
        let tree = Tree::of([
            ("c/src/lib.rs", "mod a;\n#[cfg(test)]\nmod fixtures;"),
            ("c/src/a.rs", "#[cfg(test)]\nmod tests;"),
            ("c/src/a/tests.rs", ""),
            ("c/src/a/tests/more.rs", ""),
            ("c/src/fixtures.rs", ""),
        ]);
        let files: Vec<String> = test_files(&tree).into_iter().collect();
        assert_eq!(files, ["c/src/a/tests.rs", "c/src/a/tests/more.rs", "c/src/fixtures.rs"]);
    }
}
