//! The parser of label selectors.

use super::labels::{Bound, Requirement, Test, Values};
use crate::status::FieldError;
use crate::validate::names;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Word,
    In,
    NotIn,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

impl Token<'_> {
    /// Returns whether the token can be a key or value. `in` and `notin` can be, too.
    fn is_word(self) -> bool {
        matches!(self.kind, Kind::Word | Kind::In | Kind::NotIn)
    }

    fn starts_requirement(self) -> bool {
        self.is_word() || self.kind == Kind::Not
    }

    fn unexpected<T>(self, expected: &str) -> Result<T, String> {
        Err(format!("found '{}', expected: {expected}", self.text))
    }
}

/// Splits the text into tokens. All separators are ASCII, so slices are always on character
/// boundaries.
struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let mut bytes = self.rest.bytes();
        let (kind, len) = match (bytes.next(), bytes.next()) {
            (None | Some(0), _) => return Token { kind: Kind::End, text: "" },
            (Some(b'='), Some(b'=')) => (Kind::DoubleEquals, 2),
            (Some(b'='), _) => (Kind::Equals, 1),
            (Some(b'!'), Some(b'=')) => (Kind::NotEquals, 2),
            (Some(b'!'), _) => (Kind::Not, 1),
            (Some(b'('), _) => (Kind::Open, 1),
            (Some(b')'), _) => (Kind::Close, 1),
            (Some(b','), _) => (Kind::Comma, 1),
            (Some(b'>'), _) => (Kind::GreaterThan, 1),
            (Some(b'<'), _) => (Kind::LessThan, 1),
            _ => self.word(),
        };
        let (text, rest) = self.rest.split_at(len);
        // In Kubernetes, a NUL at the start of a token is the end of the selector. Directly after a
        // token it only ends the token.
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        Token { kind, text }
    }

    fn word(&self) -> (Kind, usize) {
        let end =
            |b: u8| matches!(b, b'\0' | b' ' | b'\t' | b'\r' | b'\n') || b"=!(),<>".contains(&b);
        let len = self.rest.bytes().position(end).unwrap_or(self.rest.len());
        let kind = match &self.rest[..len] {
            "in" => Kind::In,
            "notin" => Kind::NotIn,
            _ => Kind::Word,
        };
        (kind, len)
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Token<'a>,
}

/// Parses requirements, in the order in which they were written.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut lexer = Lexer { rest: text };
    let ahead = lexer.token();
    let mut parser = Parser { lexer, ahead };
    let mut requirements = Vec::new();
    if ahead.kind == Kind::End {
        return Ok(requirements);
    }
    if !ahead.starts_requirement() {
        return ahead.unexpected("!, identifier, or 'end of string'");
    }
    loop {
        let requirement = parser.requirement();
        requirements
            .push(requirement.map_err(|error| format!("unable to parse requirement: {error}"))?);
        let after = parser.take();
        match after.kind {
            Kind::End => return Ok(requirements),
            Kind::Comma if parser.ahead.starts_requirement() => {}
            Kind::Comma => return parser.ahead.unexpected("identifier after ','"),
            _ => return after.unexpected("',' or 'end of string'"),
        }
    }
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Token<'a> {
        let next = self.lexer.token();
        std::mem::replace(&mut self.ahead, next)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.take();
        let negated = token.kind == Kind::Not;
        if negated {
            token = self.take();
        }
        if !token.is_word() {
            return token.unexpected("identifier");
        }
        let key = token.text;
        check_key(key)?;
        let test = match self.ahead.kind {
            _ if negated => Test::DoesNotExist,
            Kind::End | Kind::Comma => Test::Exists,
            _ => self.test(key)?,
        };
        Ok(Requirement { key: key.into(), test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.take();
        Ok(match operator.kind {
            Kind::In => Test::In(self.values(key)?),
            Kind::NotIn => Test::NotIn(self.values(key)?),
            Kind::Equals => Test::Equals(self.value(key)?),
            Kind::DoubleEquals => Test::DoubleEquals(self.value(key)?),
            Kind::NotEquals => Test::NotEquals(self.value(key)?),
            Kind::GreaterThan => Test::GreaterThan(self.bound(key)?),
            Kind::LessThan => Test::LessThan(self.bound(key)?),
            _ => return operator.unexpected("in, notin, =, ==, !=, gt, lt"),
        })
    }

    fn value(&mut self, key: &str) -> Result<Box<str>, String> {
        let text = self.word_or_nothing()?;
        all_of(&check_values(key, &[text]))?;
        Ok(text.into())
    }

    fn bound(&mut self, key: &str) -> Result<Bound, String> {
        let text = self.word_or_nothing()?;
        let number = text.parse();
        let mut wrong = Vec::new();
        if number.is_err() {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            wrong.push(FieldError::invalid("values[0]", text, why).to_string());
        }
        wrong.extend(check_values(key, &[text]));
        all_of(&wrong)?;
        // Invalid numbers have been rejected above.
        Ok(Bound { number: number.unwrap_or_default(), text: text.into() })
    }

    /// Parses the value after an operator. It may be empty.
    fn word_or_nothing(&mut self) -> Result<&'a str, String> {
        if matches!(self.ahead.kind, Kind::End | Kind::Comma) {
            return Ok("");
        }
        let token = self.take();
        if token.is_word() { Ok(token.text) } else { token.unexpected("identifier") }
    }

    /// Parses the values in parentheses. Empty parentheses are a single empty value.
    fn values(&mut self, key: &str) -> Result<Values, String> {
        let open = self.take();
        if open.kind != Kind::Open {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let mut values = match self.ahead {
            Token { kind: Kind::Close, .. } => vec![""],
            ahead if ahead.is_word() || ahead.kind == Kind::Comma => self.value_list()?,
            ahead => return ahead.unexpected("',', ')' or identifier"),
        };
        self.take();
        values.sort_unstable();
        values.dedup();
        all_of(&check_values(key, &values))?;
        Ok(values.into_iter().map(Box::from).collect())
    }

    /// Parses values up to the closing parenthesis, which is not consumed.
    fn value_list(&mut self) -> Result<Vec<&'a str>, String> {
        let mut values = Vec::new();
        loop {
            let token = self.take();
            if token.is_word() {
                values.push(token.text);
                match self.ahead.kind {
                    Kind::Comma => {}
                    Kind::Close => return Ok(values),
                    _ => return self.ahead.unexpected("',' or ')'"),
                }
            } else if token.kind == Kind::Comma {
                // A missing value next to a comma is an empty value.
                let ends = matches!(self.ahead.kind, Kind::Comma | Kind::Close);
                if values.is_empty() || ends {
                    values.push("");
                }
                if self.ahead.kind == Kind::Close {
                    return Ok(values);
                }
            } else {
                return token.unexpected("',', or identifier");
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let wrong = names::qualified_name(key);
    if wrong.is_empty() {
        return Ok(());
    }
    // Kubernetes has no path for the key here, and prints nil.
    Err(FieldError::invalid("<nil>", key, wrong.join("; ")).to_string())
}

fn check_values(key: &str, values: &[&str]) -> Vec<String> {
    let check = |(at, value): (usize, &&str)| {
        let wrong = names::label_value(value);
        let error =
            || FieldError::invalid(format!("values[{at}][{key}]"), *value, wrong.join("; "));
        (!wrong.is_empty()).then(|| error().to_string())
    };
    values.iter().enumerate().filter_map(check).collect()
}

/// Joins several errors into one, in brackets.
fn all_of(wrong: &[String]) -> Result<(), String> {
    match wrong {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match parse(text) {
            Ok(requirements) => panic!("{text:?} parsed: {requirements:?}"),
            Err(error) => error,
        }
    }

    #[test]
    fn syntax_errors_say_what_was_found_and_expected() {
        for (text, want) in [
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            (")", "found ')', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a,=", "found '=', expected: identifier after ','"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!a in (b)", "found 'in', expected: ',' or 'end of string'"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a in (b)c", "found 'c', expected: ',' or 'end of string'"),
        ] {
            assert_eq!(refused(text), want, "{text:?}");
        }
    }

    #[test]
    fn errors_within_a_requirement_say_so() {
        for (text, want) in [
            ("!", "found '', expected: identifier"),
            ("!!a", "found '!', expected: identifier"),
            ("a,!", "found '', expected: identifier"),
            ("a===b", "found '=', expected: identifier"),
            ("a=!b", "found '!', expected: identifier"),
            ("a>=1", "found '=', expected: identifier"),
            ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a\0b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a!", "found '!', expected: in, notin, =, ==, !=, gt, lt"),
            ("a in", "found '' expected: '('"),
            ("a notin b", "found 'b' expected: '('"),
            ("a in (", "found '', expected: ',', ')' or identifier"),
            ("a in (=)", "found '=', expected: ',', ')' or identifier"),
            ("a in (b", "found '', expected: ',' or ')'"),
            ("a in (b c)", "found 'c', expected: ',' or ')'"),
            ("a in (b,", "found '', expected: ',', or identifier"),
            ("/a", "<nil>: Invalid value: \"/a\": prefix part must be non-empty"),
            (
                "a>x",
                "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an \
                 integer",
            ),
            (
                "a<99999999999999999999",
                "values[0]: Invalid value: \"99999999999999999999\": for 'Gt', 'Lt' operators, \
                 the value must be an integer",
            ),
        ] {
            assert_eq!(refused(text), format!("unable to parse requirement: {want}"), "{text:?}");
        }
    }

    #[test]
    fn bad_values_are_all_reported_in_their_order() {
        let why = names::label_value("~").concat();
        let prefix = "unable to parse requirement: ";
        let error = |at, value| format!("values[{at}][a]: Invalid value: {value}: {why}");
        assert_eq!(refused("a=~"), format!("{prefix}{}", error(0, "\"~\"")));
        let both = format!("{prefix}[{}, {}]", error(0, "\"^\""), error(2, "\"~\""));
        assert_eq!(refused("a in (~,^,a)"), both);
        let odd = format!("{prefix}{}", error(0, r#""é\u200b'\"\x01""#));
        assert_eq!(refused("a=é\u{200b}'\"\x01"), odd);
        let integer = "values[0]: Invalid value: \"1~\": for 'Gt', 'Lt' operators, the value must \
                       be an integer";
        assert_eq!(refused("a>1~"), format!("{prefix}[{integer}, {}]", error(0, "\"1~\"")));
        // It is an integer, but not a valid label value.
        assert_eq!(refused("a>-1"), format!("{prefix}{}", error(0, "\"-1\"")));
    }
}
