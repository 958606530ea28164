//! Parses the text of a selector into requirements.

use super::{Requirement, Test, Values, values};
use crate::{Error, Result};

/// The API server's limits for a name or value, and for the prefix of a name.
const NAME_BYTES_MAX: usize = 63;
const PREFIX_BYTES_MAX: usize = 253;

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>> {
    Parser { text, at: 0 }.requirements().map_err(|Wrong { what, at }| {
        let character = text.get(..at).map_or(at, |before| before.chars().count()) + 1;
        let place = format_args!("at character {character}");
        Error::invalid(format!("{text:?} is not a label selector: {what} {place}"))
    })
}

struct Wrong {
    what: String,
    at: usize,
}

fn wrong<T>(what: impl Into<String>, at: usize) -> Result<T, Wrong> {
    Err(Wrong { what: what.into(), at })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn requirements(mut self) -> Result<Vec<Requirement>, Wrong> {
        let mut requirements = Vec::new();
        if self.peek().is_none() {
            return Ok(requirements);
        }
        loop {
            requirements.push(self.requirement()?);
            match self.peek() {
                None => return Ok(requirements),
                Some(',') => self.at += 1,
                Some(_) => return wrong("a comma expected", self.at),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Wrong> {
        let unwanted = self.take("!");
        let label = self.label()?.into();
        let test = match self.peek() {
            _ if unwanted => Test::Missing,
            None | Some(',') => Test::Exists,
            Some(_) => self.test()?,
        };
        Ok(Requirement { label, test })
    }

    fn test(&mut self) -> Result<Test, Wrong> {
        if self.take("!=") {
            return Ok(Test::NotIn(values([self.value()?])));
        }
        // The longer operator comes first.
        if self.take("==") || self.take("=") {
            return Ok(Test::In(values([self.value()?])));
        }
        if self.take(">") {
            return self.number().map(Test::Above);
        }
        if self.take("<") {
            return self.number().map(Test::Below);
        }
        match self.word() {
            (_, "in") => self.values().map(Test::In),
            (_, "notin") => self.values().map(Test::NotIn),
            (at, _) => wrong("one of = == != in notin < > or a comma expected", at),
        }
    }

    fn values(&mut self) -> Result<Values, Wrong> {
        if !self.take("(") {
            return wrong("'(' expected", self.at);
        }
        let mut all = Vec::new();
        loop {
            // No text at all is the empty value, which a label can have.
            all.push(self.value()?);
            if self.take(")") {
                return Ok(values(all));
            }
            if !self.take(",") {
                return wrong("',' or ')' expected", self.at);
            }
        }
    }

    fn number(&mut self) -> Result<i64, Wrong> {
        let (at, word) = self.word();
        check_value(word, at)?;
        word.parse().or_else(|_| wrong("a number of at most 64 bits expected", at))
    }

    fn value(&mut self) -> Result<&'a str, Wrong> {
        let (at, word) = self.word();
        check_value(word, at)?;
        Ok(word)
    }

    fn label(&mut self) -> Result<&'a str, Wrong> {
        let (at, word) = self.word();
        if word.is_empty() {
            return wrong("the name of a label expected", at);
        }
        let name = match word.split_once('/') {
            None => word,
            Some((prefix, _)) if !is_prefix(prefix) => {
                return wrong("the prefix of a label that is no DNS name", at);
            }
            Some((_, name)) => name,
        };
        if name.is_empty() || !is_name(name) {
            let what = "the name of a label that is not 1 to 63 letters, digits, '-', '_' and '.', \
                        with a letter or digit at both ends,";
            return wrong(what, at);
        }
        Ok(word)
    }

    /// Returns the text up to white space or a delimiter, and its offset.
    fn word(&mut self) -> (usize, &'a str) {
        self.peek();
        let (start, rest) = (self.at, &self.text[self.at..]);
        let end = |c: char| is_space(c) || "=!(),<>".contains(c);
        let word = &rest[..rest.find(end).unwrap_or(rest.len())];
        self.at += word.len();
        (start, word)
    }

    fn take(&mut self, token: &str) -> bool {
        self.peek();
        let is_next = self.text[self.at..].starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    /// Skips white space and returns the next character.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
        self.text[self.at..].chars().next()
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn check_value(value: &str, at: usize) -> Result<(), Wrong> {
    if is_name(value) {
        return Ok(());
    }
    let what = "the value of a label that is not at most 63 letters, digits, '-', '_' and '.', \
                with a letter or digit at both ends,";
    wrong(what, at)
}

/// Returns whether a text is `name` or `prefix/name`, as names of labels, annotations and
/// finalizers are.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, _)) if !is_prefix(prefix) => return false,
        Some((_, name)) => name,
    };
    !name.is_empty() && is_name(name)
}

/// Returns whether a text is a valid label value or, if it is not empty, a valid label name.
fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= NAME_BYTES_MAX
        && text.bytes().all(inside)
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

/// Returns whether a text is a DNS subdomain, as prefixes and most object names are.
pub(crate) fn is_prefix(text: &str) -> bool {
    let inside = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(inside)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= PREFIX_BYTES_MAX && text.split('.').all(part)
}
