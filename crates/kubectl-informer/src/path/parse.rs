//! Parses paths.

use serde_json::Value;

use super::filter::{Comparison, Filter, Operand};
use super::{Path, Step};
use crate::syntax::SyntaxError;

/// Limits on the length and depth of a path, beyond any sensible use.
const MAX_LENGTH: usize = 4096;
const MAX_STEPS: usize = 100;
/// The maximum number of steps in one pair of brackets.
const MAX_UNION: usize = 16;

const EXAMPLES: &str = "a path is written as status.phase, spec.containers[0].image, \
    status.conditions[Ready].status or metadata.labels['app.kubernetes.io/name']";

/// Parses a text that is one path.
pub(super) fn whole(text: &str) -> Result<Path, SyntaxError> {
    let start = text.len() - text.trim_start().len();
    let (path, end) = path(text, start)?;
    let rest = text[end..].trim_start();
    match rest.chars().next() {
        None => Ok(path),
        Some(next) => {
            let at = text.len() - rest.len();
            let problem = format!("{next:?} does not belong in a path");
            Err(SyntaxError::new(text, at, problem)
                .hint("put names with such characters into brackets and quotes: data['a b=c']"))
        }
    }
}

/// Parses the path that starts at a byte of the text. Also returns its end.
pub(super) fn path(text: &str, from: usize) -> Result<(Path, usize), SyntaxError> {
    let mut reader = Reader { text, at: from, in_filter: false, template: false };
    if text.len() > MAX_LENGTH {
        return Err(reader.error(format!("an expression may have at most {MAX_LENGTH} bytes")));
    }
    let braces = reader.take("{");
    reader.take("$");
    let bare = reader.peek() == Some('.')
        && reader
            .second()
            .is_none_or(|next| next == '}' || ends_name(next) && next != '.' && next != '[');
    let steps = if bare {
        // A single dot is the object itself.
        reader.at += 1;
        Vec::new()
    } else {
        reader.steps(true)?
    };
    if braces && !reader.take("}") {
        return Err(reader.error("the brace at the beginning is not closed").hint(EXAMPLES));
    }
    if steps.is_empty() && !bare {
        return Err(reader.error("a path is missing").hint(EXAMPLES));
    }
    Ok((Path::new(steps), reader.at))
}

/// Parses the steps that start at a byte of a template. Also returns their end.
pub(super) fn steps(text: &str, from: usize) -> Result<(Vec<Step>, usize), SyntaxError> {
    let mut reader = Reader { text, at: from, in_filter: false, template: true };
    let _ = reader.take("$") || reader.take("@");
    // A single dot is the value itself.
    if reader.peek() == Some('.') && reader.second().is_none_or(|c| c == '}' || c.is_whitespace()) {
        return Ok((Vec::new(), reader.at + 1));
    }
    let steps = reader.steps(false)?;
    Ok((steps, reader.at))
}

fn ends_name(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '.' | '[' | ']' | '{' | '}' | '(' | ')' | '=' | '!' | '<' | '>' | ',' | '&' | '|'
        )
        || matches!(c, '\'' | '"')
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    in_filter: bool,
    /// Whether the full syntax of templates is allowed.
    template: bool,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn error(&self, problem: impl Into<String>) -> SyntaxError {
        self.error_at(self.at, problem)
    }

    fn error_at(&self, at: usize, problem: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.text, at, problem)
    }

    /// Parses as many steps as follow. The first may lack its dot.
    fn steps(&mut self, dot_may_lack: bool) -> Result<Vec<Step>, SyntaxError> {
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                Some('[') => steps.push(self.brackets()?),
                Some('.') if self.template && self.take("..") => {
                    steps.push(Step::Descend);
                    if self.peek().is_some_and(|next| !ends_name(next)) {
                        let step = self.field(&[])?;
                        steps.push(step);
                    }
                }
                Some('.') => {
                    self.next();
                    // `.['a']` is valid in other dialects.
                    if self.peek() != Some('[') {
                        let step = self.field(&steps)?;
                        steps.push(step);
                    }
                }
                Some(next) if dot_may_lack && steps.is_empty() && !ends_name(next) => {
                    let step = self.field(&steps)?;
                    steps.push(step);
                }
                _ => return Ok(steps),
            }
            if steps.len() > MAX_STEPS {
                return Err(self.error(format!("a path may have at most {MAX_STEPS} steps")));
            }
        }
    }

    fn field(&mut self, before: &[Step]) -> Result<Step, SyntaxError> {
        // Labels and annotations have no subfields, and dots are common in their names.
        let dots = matches!(before, [.., Step::Field(parent), Step::Field(last)]
            if parent == "metadata" && (last == "labels" || last == "annotations"));
        let start = self.at;
        let mut name = String::new();
        while let Some(next) = self.peek().filter(|next| !ends_name(*next) || dots && *next == '.')
        {
            self.next();
            if next == '\\' {
                let Some(escaped) = self.next() else {
                    return Err(self.error_at(start, "a path does not end in a backslash"));
                };
                name.push(escaped);
            } else {
                name.push(next);
            }
        }
        match name.as_str() {
            "" if self.peek() == Some('.') => Err(self
                .error("two dots in a row: recursive descent is not supported here")
                .hint("write the whole path, with [*] for all elements of a list")),
            "" => Err(self.error("the name of a field is missing after the dot").hint(EXAMPLES)),
            "*" => Ok(Step::Each),
            _ => Ok(Step::Field(name)),
        }
    }

    fn brackets(&mut self) -> Result<Step, SyntaxError> {
        let start = self.at;
        self.next();
        self.skip_spaces();
        if self.peek() == Some('?') {
            return self.filter(start);
        }
        let mut steps = vec![self.in_brackets(start)?];
        self.skip_spaces();
        while self.template && self.take(",") {
            if steps.len() == MAX_UNION {
                return Err(self.error(format!("more than {MAX_UNION} in one bracket")));
            }
            self.skip_spaces();
            steps.push(self.in_brackets(start)?);
            self.skip_spaces();
        }
        if !self.take("]") {
            return Err(self.error("expected the end of the bracket, ]").hint(EXAMPLES));
        }
        match <[Step; 1]>::try_from(steps) {
            Ok([step]) => Ok(step),
            Err(steps) => Ok(Step::Union(steps)),
        }
    }

    fn in_brackets(&mut self, start: usize) -> Result<Step, SyntaxError> {
        match self.peek() {
            Some(quote @ ('\'' | '"')) => {
                self.next();
                Ok(Step::Named(self.quoted(quote)?))
            }
            _ => self.bare(start),
        }
    }

    /// Parses the unquoted content of brackets.
    fn bare(&mut self, start: usize) -> Result<Step, SyntaxError> {
        let ends: &[char] = if self.template { &[']', ','] } else { &[']'] };
        let Some(length) = self.rest().find(ends) else {
            return Err(self.error_at(start, "this bracket is not closed").hint(EXAMPLES));
        };
        let inside = self.rest()[..length].trim_end().to_owned();
        let numbers = inside.bytes().all(|byte| b"0123456789-:, ".contains(&byte));
        let step = match inside.as_str() {
            "" | "*" => Step::Each,
            _ => match inside.parse() {
                Ok(index) => Step::Index(index),
                Err(_) if self.template && numbers => self.slice(&inside)?,
                Err(_) if inside.contains([':', ',']) && numbers => {
                    return Err(self
                        .error("slices and several indexes are not supported here")
                        .hint("write one index, [0], or [*] for all elements"));
                }
                Err(_) if inside.contains(['\'', '"', '[', '{', '}']) => {
                    return Err(self.error(format!("{inside:?} is no index and no name")).hint(
                        "names with such characters have quotes around them as a whole: ['a[b']",
                    ));
                }
                Err(_) => Step::Named(inside),
            },
        };
        self.at += length;
        Ok(step)
    }

    fn slice(&self, inside: &str) -> Result<Step, SyntaxError> {
        let wrong = || {
            self.error(format!("{inside} is no slice")).hint("write it as [0:2], [-2:] or [::2]")
        };
        let mut places = [None; 3];
        for (at, part) in inside.split(':').map(str::trim).enumerate() {
            let place = places.get_mut(at).ok_or_else(wrong)?;
            if !part.is_empty() {
                *place = Some(part.parse().map_err(|_| wrong())?);
            }
        }
        if places[2].is_some_and(|step| step <= 0) {
            return Err(wrong());
        }
        Ok(Step::Slice(places))
    }

    /// Parses a string after its opening quote, up to the closing one.
    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let start = self.at - 1;
        let mut text = String::new();
        loop {
            match self.next() {
                Some('\\') => text.extend(self.next()),
                Some(next) if next == quote => return Ok(text),
                Some(next) => text.push(next),
                None => return Err(self.error_at(start, "this quote is not closed")),
            }
        }
    }

    /// Parses a filter, starting at its question mark.
    fn filter(&mut self, start: usize) -> Result<Step, SyntaxError> {
        const HINT: &str = "a filter is written as conditions[?(@.type==\"Ready\")]";
        if self.in_filter {
            return Err(self.error("a filter within a filter is not supported"));
        }
        if !self.take("?(") {
            return Err(self.error("expected ?(").hint(HINT));
        }
        self.in_filter = true;
        self.skip_spaces();
        if !self.take("@") {
            return Err(self.error("expected @, the element").hint(HINT));
        }
        let steps = self.steps(false)?;
        self.skip_spaces();
        let comparison = Comparison::ALL.iter().find(|(sign, _)| self.take(sign));
        let test = match comparison {
            Some((_, comparison)) => Some((*comparison, self.compared_to()?)),
            None => None,
        };
        self.skip_spaces();
        let parenthesis = self.take(")");
        self.skip_spaces();
        if !parenthesis || !self.take("]") {
            let at = if self.rest().is_empty() { start } else { self.at };
            return Err(self.error_at(at, "the filter does not end here in )]").hint(HINT));
        }
        self.in_filter = false;
        Ok(Step::Where(Filter { steps, test }))
    }

    fn compared_to(&mut self) -> Result<Operand, SyntaxError> {
        self.skip_spaces();
        if self.take("@") {
            return Ok(Operand::Steps(self.steps(false)?));
        }
        self.literal().map(Operand::Literal)
    }

    fn literal(&mut self) -> Result<Value, SyntaxError> {
        self.skip_spaces();
        if let Some(quote @ ('\'' | '"')) = self.peek() {
            self.next();
            return Ok(Value::String(self.quoted(quote)?));
        }
        let length = self.rest().find([')', ' ', ']']).unwrap_or(self.rest().len());
        let word = self.rest()[..length].to_owned();
        let Ok(value @ (Value::Bool(_) | Value::Number(_))) = serde_json::from_str(&word) else {
            return Err(self.error(format!(
                "expected a text in quotes, a number, true or false, not {word:?}"
            )));
        };
        self.at += length;
        Ok(value)
    }
}
