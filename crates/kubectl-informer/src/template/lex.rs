//! Splits a template into text and the tokens of its actions.

use serde_json::Value;

use super::literal;
use crate::syntax::SyntaxError;

/// The limit on the length of a template, beyond any sensible use.
const MAX_LENGTH: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: Kind,
    /// Whether white space precedes the token: `.a .b` are two values, `.a.b` is one.
    pub(super) apart: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Text outside of actions.
    Text(String),
    /// `{{` and `}}`.
    Open,
    Close,
    /// A keyword or the name of a function.
    Word(String),
    /// `.name`.
    Field(String),
    Dot,
    /// `$` or `$name`.
    Variable(String),
    Literal(Value),
    /// `:=`, `=`, `|`, `,`, `(` and `)`.
    Sign(&'static str),
}

pub(super) fn tokens(source: &str) -> Result<Vec<Token>, SyntaxError> {
    if source.len() > MAX_LENGTH {
        let problem = format!("a template may have at most {MAX_LENGTH} bytes");
        return Err(SyntaxError::new(source, 0, problem));
    }
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new() };
    // Whether white space after the last action is trimmed.
    let mut trim = false;
    loop {
        let rest = lexer.rest();
        let length = rest.find("{{").unwrap_or(rest.len());
        let (text, action) = rest.split_at(length);
        let text = if trim { text.trim_start_matches(BLANK) } else { text };
        let text = if trims_before(action) { text.trim_end_matches(BLANK) } else { text };
        if !text.is_empty() {
            lexer.push(Kind::Text(text.to_owned()), false);
        }
        lexer.at += length;
        if action.is_empty() {
            return Ok(lexer.tokens);
        }
        trim = lexer.action(trims_before(action))?;
    }
}

/// The characters that Go trims as white space.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

fn trims_before(action: &str) -> bool {
    action.strip_prefix("{{-").is_some_and(|rest| rest.starts_with(BLANK))
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn push(&mut self, kind: Kind, apart: bool) {
        self.tokens.push(Token { at: self.at, kind, apart });
    }

    fn error(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.source, self.at, problem)
    }

    /// Reads an action. Returns whether it trims the text after it.
    fn action(&mut self, trims_before: bool) -> Result<bool, SyntaxError> {
        let start = self.at;
        let open = if trims_before { "{{-".len() } else { "{{".len() };
        if self.rest()[open..].trim_start_matches(BLANK).starts_with("/*") {
            return self.comment(open);
        }
        self.push(Kind::Open, false);
        self.at += open;
        loop {
            let before = self.rest();
            let rest = before.trim_start_matches(BLANK);
            let apart = rest.len() < before.len();
            self.at += before.len() - rest.len();
            let trims_after = apart && rest.starts_with("-}}");
            if trims_after || rest.starts_with("}}") {
                self.push(Kind::Close, apart);
                self.at += if trims_after { "-}}".len() } else { "}}".len() };
                return Ok(trims_after);
            }
            if rest.is_empty() {
                return Err(SyntaxError::new(self.source, start, "this {{ is not closed with }}"));
            }
            let (kind, length) = self.token(rest)?;
            self.push(kind, apart);
            self.at += length;
        }
    }

    fn comment(&mut self, open: usize) -> Result<bool, SyntaxError> {
        // The closing mark must not overlap with the opening one.
        let inside = open + self.rest()[open..].find("/*").unwrap_or(0) + "/*".len();
        let Some(length) = self.rest()[inside..].find("*/") else {
            return Err(self.error("this comment is not closed with */}}"));
        };
        self.at += inside + length + "*/".len();
        for (end, trims) in [("}}", false), (" -}}", true), ("\t-}}", true), ("\n-}}", true)] {
            if self.rest().starts_with(end) {
                self.at += end.len();
                return Ok(trims);
            }
        }
        Err(self.error("a comment ends with */}}, or with */ -}}"))
    }

    /// Reads one token. Also returns its length.
    fn token(&self, rest: &str) -> Result<(Kind, usize), SyntaxError> {
        for sign in [":=", "=", "|", ",", "(", ")"] {
            if rest.starts_with(sign) {
                return Ok((Kind::Sign(sign), sign.len()));
            }
        }
        let mut chars = rest.chars();
        let (first, second) = (chars.next().unwrap_or(' '), chars.next().unwrap_or(' '));
        let word = |from: usize| &rest[from..from + word_length(&rest[from..])];
        match first {
            '"' | '`' | '\'' => {
                let read = literal::quoted(rest, first);
                let (value, length) = read.map_err(|(at, problem)| {
                    SyntaxError::new(self.source, self.at + at, problem)
                })?;
                Ok((Kind::Literal(value), length))
            }
            '0'..='9' => self.number(rest),
            '.' | '+' | '-' if second.is_ascii_digit() => self.number(rest),
            '.' => match word(1) {
                "" => Ok((Kind::Dot, 1)),
                name => Ok((Kind::Field(name.to_owned()), 1 + name.len())),
            },
            '$' => {
                let length = 1 + word(1).len();
                Ok((Kind::Variable(rest[..length].to_owned()), length))
            }
            _ if is_word(first) => match word(0) {
                "true" => Ok((Kind::Literal(Value::Bool(true)), 4)),
                "false" => Ok((Kind::Literal(Value::Bool(false)), 5)),
                "nil" => Ok((Kind::Literal(Value::Null), 3)),
                name => Ok((Kind::Word(name.to_owned()), name.len())),
            },
            '-' | '/' => Err(self.error(format!("{first:?} cannot stand here")).hint(
                "a name with such characters is read with index: {{index .metadata.labels \"app-name\"}}",
            )),
            '[' | ']' => Err(self.error(format!("{first:?} cannot stand here")).hint(
                "an element of a list is read with index: {{index .spec.containers 0}}",
            )),
            _ => Err(self.error(format!("{first:?} cannot stand here"))),
        }
    }

    fn number(&self, rest: &str) -> Result<(Kind, usize), SyntaxError> {
        let hexadecimal = rest.trim_start_matches(['+', '-']).starts_with("0x");
        let part = |(at, c): &(usize, char)| {
            let exponent = !hexadecimal && rest[..*at].ends_with(['e', 'E']);
            is_word(*c) || *c == '.' || matches!(c, '+' | '-') && (*at == 0 || exponent)
        };
        let length = rest.char_indices().take_while(part).map(|(_, c)| c.len_utf8()).sum();
        match literal::number(&rest[..length]) {
            Some(value) => Ok((Kind::Literal(value), length)),
            None => Err(self.error(format!("{} is no number", &rest[..length]))),
        }
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}
