//! Parses conditions.

use super::{Literal, Order, Term, quantity};
use crate::path::Path;
use crate::syntax::SyntaxError;

/// Limits on the length of a condition and the number of its terms, beyond any sensible use.
const MAX_LENGTH: usize = 4096;
const MAX_TERMS: usize = 100;

const EXAMPLES: &str = "a condition is written as status.phase=Running, \
    status.readyReplicas>=3, condition=Ready, spec.nodeName, !spec.paused or deleted; \
    a comma or && means and, || means or";

/// Parses the groups of terms, one of which has to hold.
pub(super) fn until(text: &str) -> Result<Vec<Vec<Term>>, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    if text.len() > MAX_LENGTH {
        return Err(reader.error(format!("a condition may have at most {MAX_LENGTH} bytes")));
    }
    let mut any = vec![vec![reader.term()?]];
    loop {
        reader.skip_spaces();
        if reader.rest().is_empty() {
            return Ok(any);
        }
        let or = reader.take("||");
        if !or && !reader.take("&&") && !reader.take(",") {
            return Err(reader.error("expected a comma, && or ||, or the end").hint(
                "put values with spaces and such characters into quotes: reason=\"not ready\"",
            ));
        }
        let term = reader.term()?;
        match any.last_mut() {
            Some(all) if !or => all.push(term),
            _ => any.push(vec![term]),
        }
        if any.iter().map(Vec::len).sum::<usize>() > MAX_TERMS {
            return Err(reader.error(format!("more than {MAX_TERMS} conditions at once")));
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
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

    fn at_end_of_term(&self) -> bool {
        let rest = self.rest().trim_start();
        rest.is_empty() || [",", "&&", "||"].iter().any(|end| rest.starts_with(end))
    }

    fn error(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.text, self.at, problem)
    }

    /// Consumes one of these words, if it is at this position and is a whole term.
    fn word(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let end = self.rest().find(|c: char| !c.is_ascii_alphabetic());
        let word = &self.rest()[..end.unwrap_or(self.rest().len())];
        self.at += word.len();
        let found = words.contains(&word) && self.at_end_of_term();
        if !found {
            self.at = start;
        }
        found
    }

    fn term(&mut self) -> Result<Term, SyntaxError> {
        self.skip_spaces();
        if self.at_end_of_term() {
            return Err(self.error("a condition is missing").hint(EXAMPLES));
        }
        if self.word(&["delete", "deleted"]) {
            return Ok(Term::Deleted);
        }
        if self.word(&["create", "created"]) {
            return Ok(Term::Created);
        }
        if self.take("condition=") {
            return self.condition();
        }
        if self.take("jsonpath=") {
            let path = self.path()?;
            // Like kubectl, accept any value.
            return if self.at_end_of_term() { Ok(Term::Exists(path)) } else { self.test(path) };
        }
        if self.rest().starts_with('!') {
            return self.not();
        }
        let path = self.path()?;
        if self.at_end_of_term() { Ok(Term::True(path, true)) } else { self.test(path) }
    }

    fn not(&mut self) -> Result<Term, SyntaxError> {
        let start = self.at;
        self.take("!");
        self.skip_spaces();
        let text = self.text;
        let wrong = |problem: &str| SyntaxError::new(text, start, problem);
        if self.rest().starts_with("condition=") {
            return Err(wrong("! stands before a path only").hint("write condition=NAME=False"));
        }
        if self.word(&["delete", "deleted", "create", "created"]) {
            return Err(wrong("! stands before a path only").hint(EXAMPLES));
        }
        let path = self.path()?;
        if self.at_end_of_term() {
            return Ok(Term::True(path, false));
        }
        Err(wrong("! stands before a path alone, without a comparison").hint("write PATH!=VALUE"))
    }

    fn condition(&mut self) -> Result<Term, SyntaxError> {
        let start = self.at;
        let Literal { text, quoted } = self.value("=,&|")?;
        if text.is_empty() {
            return Err(SyntaxError::new(self.text, start, "the name of a condition is missing")
                .hint("write condition=Ready, or condition=Ready=False"));
        }
        if quoted && self.at_end_of_term() || !self.take("=") {
            return Ok(Term::Condition { name: text, status: "True".to_owned() });
        }
        self.take("=");
        let status = self.value(",&|")?.text;
        Ok(Term::Condition { name: text, status })
    }

    /// Parses a path, which may be quoted.
    fn path(&mut self) -> Result<Path, SyntaxError> {
        let quote = ["'", "\""].into_iter().find(|quote| self.take(quote));
        let (path, end) = Path::parse_start(self.text, self.at)?;
        self.at = end;
        match quote {
            Some(quote) if !self.take(quote) => Err(self
                .error(format!("expected {quote}, the end of the path"))
                .hint("quotes are around a path, or around a value: 'status.phase'=\"Running\"")),
            _ => Ok(path),
        }
    }

    /// Parses the test after a path.
    fn test(&mut self, path: Path) -> Result<Term, SyntaxError> {
        self.skip_spaces();
        for (word, wanted) in [("in", true), ("notin", false)] {
            if self.rest().strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with('('))
            {
                self.take(word);
                return Ok(Term::Equal(path, wanted, self.values()?));
            }
        }
        if self.take("==") || !self.rest().starts_with("=~") && self.take("=") {
            return Ok(Term::Equal(path, true, vec![self.literal()?]));
        }
        if self.take("!=") {
            return Ok(Term::Equal(path, false, vec![self.literal()?]));
        }
        for (sign, order) in [
            (">=", Order::GreaterOrEqual),
            ("<=", Order::LessOrEqual),
            (">", Order::Greater),
            ("<", Order::Less),
        ] {
            if self.take(sign) {
                return Ok(Term::Compare(path, order, self.number(sign)?));
            }
        }
        let problem = match self.rest().chars().next() {
            _ if self.rest().starts_with("=~") => {
                "regular expressions are not supported".to_owned()
            }
            Some(next) => {
                format!("expected a comparison (=, !=, <, <=, >, >=) or the end, not {next:?}")
            }
            None => "expected a comparison".to_owned(),
        };
        Err(self.error(problem).hint(EXAMPLES))
    }

    fn literal(&mut self) -> Result<Literal, SyntaxError> {
        self.skip_spaces();
        if let Some(sign @ ('=' | '<' | '>' | '~')) = self.rest().chars().next() {
            return Err(self.error(format!("{sign:?} does not belong here")).hint(
                "the comparisons are =, ==, !=, <, <=, >, >=; values that begin so have quotes",
            ));
        }
        self.value(",&|")
    }

    fn number(&mut self, sign: &str) -> Result<f64, SyntaxError> {
        self.skip_spaces();
        let start = self.at;
        let text = self.value(",&|")?.text;
        quantity::parse(&text).ok_or_else(|| {
            SyntaxError::new(self.text, start, format!("{sign} wants a number, not {text:?}")).hint(
                "write it as status.readyReplicas>=3, or with a unit of Kubernetes: 500m, 2Gi",
            )
        })
    }

    /// Parses a value: in quotes, or up to white space or one of these characters. `&` and `|` end
    /// it only if doubled.
    fn value(&mut self, ends: &str) -> Result<Literal, SyntaxError> {
        if let Some(quote @ ('"' | '\'')) = self.rest().chars().next() {
            return self.quoted(quote);
        }
        let rest = self.rest();
        let ends = |(at, c): &(usize, char)| {
            let twice = !matches!(c, '&' | '|') || rest[*at..].chars().nth(1) == Some(*c);
            c.is_whitespace() || ends.contains(*c) && twice
        };
        let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
        self.at += end;
        Ok(Literal { text: rest[..end].to_owned(), quoted: false })
    }

    fn quoted(&mut self, quote: char) -> Result<Literal, SyntaxError> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                _ if c == quote => {
                    self.at += at + 1;
                    return Ok(Literal { text, quoted: true });
                }
                _ => text.push(c),
            }
        }
        Err(self.error("this quote is not closed"))
    }

    /// Parses values in parentheses.
    fn values(&mut self) -> Result<Vec<Literal>, SyntaxError> {
        self.skip_spaces();
        self.take("(");
        let mut values = Vec::new();
        loop {
            self.skip_spaces();
            values.push(self.value(",)")?);
            self.skip_spaces();
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(self
                    .error("expected a comma, or the end of the values, )")
                    .hint("write it as status.phase in (Succeeded, Failed)"));
            }
        }
    }
}
