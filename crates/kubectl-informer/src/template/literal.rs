//! Strings and numbers in Go's notation.

use serde_json::{Number, Value};

/// A position in the literal, and the problem there.
pub(crate) type Problem = (usize, String);

/// Parses a quoted literal. One in single quotes is the number of its character.
pub(super) fn quoted(source: &str, quote: char) -> Result<(Value, usize), Problem> {
    let (text, length) = text(source, quote)?;
    if quote != '\'' {
        return Ok((Value::String(text), length));
    }
    let mut chars = text.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Ok((Value::from(u32::from(c)), length));
    }
    Err((0, "single quotes are around one character; texts have double quotes".to_owned()))
}

/// Parses a quoted string. Also returns its length in the source.
pub(crate) fn text(source: &str, quote: char) -> Result<(String, usize), Problem> {
    let unclosed = || (0, format!("this {quote} is not closed"));
    if quote == '`' {
        let length = source[1..].find('`').ok_or_else(unclosed)?;
        // As in Go, raw strings lose their carriage returns.
        return Ok((source[1..=length].replace('\r', ""), length + 2));
    }
    let mut text = String::new();
    let mut at = 1;
    loop {
        let next = source[at..].chars().next().filter(|c| *c != '\n').ok_or_else(unclosed)?;
        match next {
            '\\' => {
                let (c, length) = escape(&source[at..], quote).ok_or_else(|| {
                    let problem = "this escape is not known: write \\n, \\t, \\\", \\\\ or \\u00e4";
                    (at, problem.to_owned())
                })?;
                text.push(c);
                at += length;
            }
            _ if next == quote => return Ok((text, at + 1)),
            _ => {
                text.push(next);
                at += next.len_utf8();
            }
        }
    }
}

/// Returns the character that an escape stands for, and the length of the escape.
fn escape(source: &str, quote: char) -> Option<(char, usize)> {
    let code = |digits: std::ops::Range<usize>, radix: u32| {
        let code = source.get(digits.clone())?;
        let code = u32::from_str_radix(code, radix).ok().filter(|_| !code.starts_with('+'))?;
        Some((char::from_u32(code)?, digits.end))
    };
    let simple = |c: char| Some((c, 2));
    match source.chars().nth(1)? {
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\u{b}'),
        '\\' => simple('\\'),
        c @ ('"' | '\'') if c == quote => simple(c),
        // Single bytes; those that are not characters by themselves are not supported.
        'x' => code(2..4, 16).filter(|(c, _)| c.is_ascii()),
        '0'..='7' => code(1..4, 8).filter(|(c, _)| c.is_ascii()),
        'u' => code(2..6, 16),
        'U' => code(2..10, 16),
        _ => None,
    }
}

pub(super) fn number(text: &str) -> Option<Value> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let digits = digits.replace('_', "");
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some(start) if start.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) => {
            (8, &lower[1..])
        }
        _ => (10, lower.as_str()),
    };
    if let Ok(integer) = i64::from_str_radix(digits, radix) {
        return (!digits.starts_with(['+', '-'])).then(|| Value::from(sign * integer));
    }
    let plain = radix == 10 && digits.bytes().all(|b| b.is_ascii_digit() || b".e+-".contains(&b));
    let fraction = digits.parse::<f64>().ok().filter(|_| plain)?;
    Number::from_f64(fraction * sign as f64).map(Value::Number)
}
