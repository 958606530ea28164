//! Checks that links in documents lead to existing files and headings, and parses documents for other checks.

use crate::finding::Finding;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.with_end(".md") {
        for (line, link) in links(text) {
            if let Some(problem) = problem(tree, file, text, &link) {
                findings.push(Finding::new(file, line, format!("({link}): {problem}")));
            }
        }
    }
    findings
}

fn problem(tree: &Tree, file: &str, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) =
        link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { Some(file.to_owned()) } else { resolve(file, path) };
    let Some(target) = target.filter(|target| tree.has(target)) else {
        return Some("there is no such file".to_owned());
    };
    let anchor = anchor?;
    let text = if path.is_empty() { text } else { tree.get(&target)? };
    let anchors = anchors(text);
    if anchors.iter().any(|known| known == anchor) {
        return None;
    }
    Some(format!("{target} has no heading #{anchor}; it has {}", anchors.join(", ")))
}

/// Resolves a path relative to a file; returns `None` if it leaves the repository.
fn resolve(file: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines outside of code blocks, numbered from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => return Some((number + 1, line)),
            _ => {}
        }
        None
    })
}

/// Returns the content of code blocks in a language, with the number of their first line.
pub(crate) fn blocks<'a>(text: &'a str, language: &str) -> Vec<(usize, Vec<&'a str>)> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let inside: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.trim_start().starts_with("```"))
            .collect();
        if info.trim() == language {
            found.push((number + 2, inside));
        }
    }
    found
}

/// Returns the texts between single backticks.
pub(crate) fn inline_code(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Returns the cells of a table row.
pub(crate) fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        for (open, close) in [("](", ")"), ("src=\"", "\""), ("href=\"", "\""), ("srcset=\"", "\"")]
        {
            let targets = line.split(open).skip(1).filter_map(|rest| rest.split_once(close));
            // A link may have a title after its target.
            let targets = targets.filter_map(|(target, _)| target.split_whitespace().next());
            found.extend(targets.map(|target| (number, target.to_owned())));
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            found.push((number, target.trim().to_owned()));
        }
    }
    found
}

/// Returns the anchors of the headings, as GitHub generates them.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let Some(title) = line[level..].strip_prefix(' ').filter(|_| (1..=6).contains(&level))
        else {
            continue;
        };
        let kept = title.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let earlier = found.iter().filter(|known| **known == slug).count();
        found.push(if earlier == 0 { slug } else { format!("{slug}-{earlier}") });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(readme: &str) -> Vec<String> {
        let guide =
            "# The guide\n\n## What: it `does`\n\n```sh\n# no heading\n```\n\n## What: it `does`\n";
        let tree =
            Tree::of([("README.md", readme), ("docs/guide.md", guide), ("docs/picture.svg", "")]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere() {
        let text = "# Top\n[a](docs/guide.md) ![b](docs/picture.svg) [c](docs/guide.md#what-it-does-1 \"title\")\n\
            [d](#top) [e](https://example.com/none) <img src=\"docs/picture.svg\">\n[f]: docs\n\
            `[g](nowhere.md)`\n```\n[h](nowhere.md)\n```\n";
        assert_eq!(findings(text), [""; 0]);
    }

    #[test]
    fn links_that_do_not() {
        for (text, message) in [
            ("\n[a](docs/gone.md)", "README.md:2: (docs/gone.md): there is no such file"),
            ("![a](picture.svg)", "README.md:1: (picture.svg): there is no such file"),
            ("<img alt=\"x\" src=\"gone.svg\">", "README.md:1: (gone.svg): there is no such file"),
            ("[a]: gone.md", "README.md:1: (gone.md): there is no such file"),
            ("[a](../outside.md)", "README.md:1: (../outside.md): there is no such file"),
            ("[a](#none)", "README.md:1: (#none): README.md has no heading #none"),
            (
                "[a](docs/guide.md#no-heading)",
                "README.md:1: (docs/guide.md#no-heading): docs/guide.md has no",
            ),
        ] {
            let found = findings(text);
            assert!(found.len() == 1 && found[0].starts_with(message), "{text}: {found:?}");
        }
    }

    #[test]
    fn links_are_seen_from_their_file() {
        let tree = Tree::of([
            ("docs/a.md", "[b](b.md) [r](../README.md) [c](docs/b.md)"),
            ("docs/b.md", ""),
            ("README.md", ""),
        ]);
        let found = check(&tree);
        assert!(found.len() == 1 && found[0].message.starts_with("(docs/b.md)"), "{found:?}");
    }
}
