//! The parser of paths.

use super::Step;
use crate::{Error, Result};

/// Examples of paths and of a pointer, for errors.
const EXAMPLE: &str = "spec.containers[*].image and metadata.labels['example.com/tier'] are paths";
const EXAMPLE_POINTER: &str = "/metadata/labels/example.com~1tier is a pointer";

pub(super) fn steps(text: &str) -> Result<Vec<Step>> {
    let (steps, example) = match text.strip_prefix('/') {
        Some(_) => (pointer(text), EXAMPLE_POINTER),
        None => (Parser { text, at: 0 }.path(), EXAMPLE),
    };
    steps.map_err(|Wrong { what, at }| {
        let character = text.get(..at).map_or(at, |before| before.chars().count()) + 1;
        Error::invalid(format!(
            "{text:?} is not a path to a field: {what}, at character {character} ({example})"
        ))
    })
}

struct Wrong {
    what: &'static str,
    at: usize,
}

fn wrong<T>(what: &'static str, at: usize) -> Result<T, Wrong> {
    Err(Wrong { what, at })
}

/// Parses a JSON pointer, which starts with a slash.
fn pointer(text: &str) -> Result<Vec<Step>, Wrong> {
    for (at, _) in text.match_indices('~') {
        if !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')) {
            return wrong("in a JSON pointer a tilde is written ~0 and a slash ~1", at);
        }
    }
    Ok(text.split('/').skip(1).map(token).collect())
}

/// Parses one reference token of a JSON pointer.
fn token(text: &str) -> Step {
    let key: Box<str> = text.replace("~1", "/").replace("~0", "~").into();
    match index(text) {
        Some(index) => Step::Either(key, index),
        None => Step::Key(key),
    }
}

fn index(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = text == "0" || !text.starts_with('0');
    (digits && plain).then(|| text.parse().ok()).flatten()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn path(mut self) -> Result<Vec<Step>, Wrong> {
        let mut steps = Vec::new();
        if self.text.is_empty() {
            return wrong("it is empty", 0);
        }
        // kubectl writes a dot in front.
        if self.peek() == Some('.') {
            self.next();
        }
        if self.peek() != Some('[') {
            steps.push(self.name()?);
        }
        while let Some(next) = self.next() {
            match next {
                '[' => steps.push(self.bracket()?),
                '.' => steps.push(self.name()?),
                _ => return wrong("a dot or a bracket expected", self.at - next.len_utf8()),
            }
        }
        Ok(steps)
    }

    fn name(&mut self) -> Result<Step, Wrong> {
        let start = self.at;
        let mut name = String::new();
        let mut escaped = false;
        while let Some(next) = self.peek().filter(|next| !matches!(next, '.' | '[')) {
            self.next();
            match next {
                '\\' => {
                    escaped = true;
                    match self.next() {
                        Some(next) => name.push(next),
                        None => return wrong("a backslash at the end", self.at),
                    }
                }
                ']' => return wrong("a closing bracket that was not opened", self.at - 1),
                next => name.push(next),
            }
        }
        match name.as_str() {
            "" => wrong("a name expected", start),
            "*" if !escaped => Ok(Step::Every),
            _ => Ok(Step::Key(name.into())),
        }
    }

    /// Parses the content of brackets after the opening one, and the closing one.
    fn bracket(&mut self) -> Result<Step, Wrong> {
        let start = self.at;
        if let Some(quote) = self.peek().filter(|next| matches!(next, '\'' | '"')) {
            self.next();
            let key = self.quoted(quote)?;
            return match self.next() {
                Some(']') => Ok(Step::Key(key.into())),
                _ => wrong("a closing bracket expected behind the quote", start),
            };
        }
        let Some(length) = self.text[start..].find(']') else {
            return wrong("a bracket that is not closed", start - 1);
        };
        self.at += length + 1;
        match &self.text[start..start + length] {
            "*" => Ok(Step::Every),
            inside => match index(inside) {
                Some(index) => Ok(Step::Index(index)),
                None => wrong("[0], [*] or ['name'] expected", start - 1),
            },
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Wrong> {
        let (start, mut key) = (self.at, String::new());
        while let Some(next) = self.next() {
            match next {
                '\\' => key.extend(self.next()),
                next if next == quote => return Ok(key),
                next => key.push(next),
            }
        }
        wrong("a quote that is not closed", start - 1)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += next.map_or(0, char::len_utf8);
        next
    }
}
