//! Values in Kubernetes' messages: strings as Go's `%q` quotes them, and Go's names for JSON types.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the text in double quotes, with non-printable characters escaped as in Go.
///
/// Rust's `{:?}` differs: for example, it writes `\u{7f}` where Go writes `\x7f`.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if prints(c) => out.push(c),
            c => push_code(&mut out, u32::from(c)),
        }
    }
    out.push('"');
    out
}

/// Returns Go's name for a JSON value's type.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn push_code(out: &mut String, code: u32) {
    let written = match code {
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    debug_assert!(written.is_ok(), "writing to a String cannot fail");
}

fn prints(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // The standard library exposes what is printable only by escaping. A combining mark is escaped
    // only at the start of a string, hence the letter before it.
    let mut pair = String::from("a");
    pair.push(c);
    pair.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        for (text, want) in [
            ("", r#""""#),
            ("plain text", r#""plain text""#),
            ("it's", r#""it's""#),
            ("say \"hi\"\\", r#""say \"hi\"\\""#),
            ("\x00\x07\x08\t\n\x0b\x0c\r\x1f\x7f", r#""\x00\a\b\t\n\v\f\r\x1f\x7f""#),
            ("é 世界 😀 e\u{301}", "\"é 世界 😀 e\u{301}\""),
            ("\u{85}\u{a0}\u{200b}\u{feff}", r#""\u0085\u00a0\u200b\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quoted(text), want);
        }
    }
}
