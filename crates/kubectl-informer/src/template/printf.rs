//! Go's `printf`. As in Go, mismatches between format and values appear in the output.

use serde_json::Value;

use super::print::{self, Text};

/// The limit on width and precision, beyond any sensible use.
const MAX_WIDTH: usize = 1000;

/// Formats values according to a format string.
pub(super) fn printf(format: &str, values: &[&Value]) -> Text {
    let mut out = Text::default();
    let mut values = values.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push(&rest[..at]);
        let (spec, verb, length) = Spec::parse(&rest[at + 1..], &mut values);
        rest = &rest[at + 1 + length..];
        match verb {
            None => out.push("%!(NOVERB)"),
            Some('%') => out.push("%"),
            Some(verb) => match values.next() {
                Some(value) => spec.value(value, verb, &mut out, false),
                None => out.push(&format!("%!{verb}(MISSING)")),
            },
        }
    }
    out.push(rest);
    extra(values.copied(), &mut out);
    out
}

/// Appends the values that the format does not use.
fn extra<'a>(values: impl Iterator<Item = &'a Value>, out: &mut Text) {
    let mut separator = "%!(EXTRA ";
    for value in values {
        out.push(separator);
        typed(value, out);
        separator = ", ";
    }
    if separator == ", " {
        out.push(")");
    }
}

/// Appends a value with its type: `int=3`.
fn typed(value: &Value, out: &mut Text) {
    out.push(type_name(value));
    if !value.is_null() {
        out.push("=");
        out.show(value);
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The part between `%` and the verb.
#[derive(Debug, Default, Clone)]
struct Spec {
    flags: String,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Spec {
    /// Parses a spec, with its verb if there is one. Also returns the length in bytes.
    fn parse<'a>(
        text: &str,
        values: &mut impl Iterator<Item = &'a &'a Value>,
    ) -> (Self, Option<char>, usize) {
        let mut spec = Self::default();
        let mut at = 0;
        let peek = |at: usize| text[at..].chars().next();
        while let Some(flag) = peek(at).filter(|c| "-+# 0".contains(*c)) {
            at += 1;
            spec.flags.push(flag);
        }
        let mut number = |at: &mut usize| {
            if peek(*at) == Some('*') {
                *at += 1;
                let given = values.next().and_then(|value| value.as_i64()).unwrap_or_default();
                return Some(given);
            }
            let digits = text[*at..].bytes().take_while(u8::is_ascii_digit).count();
            let number = text[*at..*at + digits].parse().ok();
            *at += digits;
            number
        };
        if let Some(width) = number(&mut at) {
            spec.flags.push_str(if width < 0 { "-" } else { "" });
            spec.width = Some((width.unsigned_abs() as usize).min(MAX_WIDTH));
        }
        if peek(at) == Some('.') {
            at += 1;
            let precision = number(&mut at).unwrap_or(0);
            spec.precision = usize::try_from(precision).ok().map(|p| p.min(MAX_WIDTH));
        }
        let verb = peek(at);
        if verb == Some('v') {
            // For `%v`, the plus flag has a different meaning, which makes no difference for the
            // values in a template.
            spec.flags.retain(|flag| flag != '+');
        }
        (spec, verb, at + verb.map_or(0, char::len_utf8))
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// Appends a value in the format of a verb.
    fn value(&self, value: &Value, verb: char, out: &mut Text, inner: bool) {
        if out.is_full() {
            return;
        }
        let formatted = match (value, verb) {
            (_, 'T') if !inner => Some(self.pad(type_name(value))),
            (Value::Array(list), _) => {
                return self.parts("[", list.iter().map(|value| (None, value)), verb, out);
            }
            (Value::Object(fields), _) => {
                let parts = print::sorted(fields).into_iter();
                return self.parts(
                    "map[",
                    parts.map(|(name, value)| (Some(name), value)),
                    verb,
                    out,
                );
            }
            (Value::Null, _) if inner => Some("<nil>".to_owned()),
            (Value::Null, 'v') => Some(self.pad("<nil>")),
            (Value::Bool(value), 'v' | 't') => {
                Some(self.pad(if *value { "true" } else { "false" }))
            }
            (Value::Number(number), _) if number.is_f64() => {
                self.float(number.as_f64().unwrap_or_default(), verb)
            }
            (Value::Number(number), _) => {
                let value =
                    number.as_i64().map_or(i128::from(number.as_u64().unwrap_or(0)), i128::from);
                self.integer(value, verb)
            }
            (Value::String(text), _) => self.text(text, verb).map(|text| self.pad_text(&text)),
            _ => None,
        };
        if let Some(text) = formatted {
            out.push(&text);
        } else {
            out.push(&format!("%!{verb}({}", type_name(value)));
            if !value.is_null() {
                out.push("=");
                self.value(value, 'v', out, true);
            }
            out.push(")");
        }
    }

    /// Appends the parts of a list or an object, each formatted by itself.
    fn parts<'a>(
        &self,
        open: &str,
        parts: impl Iterator<Item = (Option<&'a String>, &'a Value)>,
        verb: char,
        out: &mut Text,
    ) {
        out.push(open);
        for (at, (name, value)) in parts.enumerate() {
            out.push(if at > 0 { " " } else { "" });
            if let Some(name) = name {
                self.value(&Value::String(name.clone()), verb, out, true);
                out.push(":");
            }
            self.value(value, verb, out, true);
        }
        out.push("]");
    }

    fn pad(&self, text: &str) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        let padding = " ".repeat(missing);
        if self.has('-') { format!("{text}{padding}") } else { format!("{padding}{text}") }
    }

    /// Pads a string. As in Go, the zero flag applies to strings too.
    fn pad_text(&self, text: &str) -> String {
        let padded = self.pad(text);
        if !self.has('0') || self.has('-') {
            return padded;
        }
        let spaces = padded.len() - text.len();
        format!("{}{text}", "0".repeat(spaces))
    }

    /// Formats a number with its sign. If `zeros` is set, the zero flag pads it to the width.
    fn pad_number(&self, negative: bool, digits: &str, zeros: bool) -> String {
        let sign = match (negative, self.has('+'), self.has(' ')) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        if zeros && self.has('0') && !self.has('-') {
            let width = self.width.unwrap_or(0).saturating_sub(sign.len());
            return format!("{sign}{digits:0>width$}");
        }
        self.pad(&format!("{sign}{digits}"))
    }

    fn integer(&self, value: i128, verb: char) -> Option<String> {
        let size = value.unsigned_abs();
        let (prefix, digits) = match verb {
            'd' | 'v' => ("", size.to_string()),
            'b' => ("0b", format!("{size:b}")),
            'o' => ("0", format!("{size:o}")),
            'x' => ("0x", format!("{size:x}")),
            'X' => ("0X", format!("{size:X}")),
            'c' | 'q' | 'U' => {
                let c = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
                return Some(self.pad(&match verb {
                    'c' => c.to_string(),
                    'q' => quote(&c.to_string(), '\''),
                    _ => format!("U+{:04X}", u32::from(c)),
                }));
            }
            _ => return None,
        };
        let digits = match self.precision {
            Some(0) if value == 0 => String::new(),
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        };
        let digits = if self.has('#') { format!("{prefix}{digits}") } else { digits };
        Some(self.pad_number(value < 0, &digits, self.precision.is_none()))
    }

    fn float(&self, value: f64, verb: char) -> Option<String> {
        let format = match verb {
            'v' | 'g' | 'G' => 'g',
            'e' | 'E' => 'e',
            'f' | 'F' => 'f',
            _ => return None,
        };
        let precision = self.precision.or((format != 'g').then_some(6));
        let text = print::float(value.abs(), format, precision);
        let text = if verb.is_ascii_uppercase() { text.to_uppercase() } else { text };
        Some(self.pad_number(value.is_sign_negative(), &text, true))
    }

    fn text(&self, text: &str, verb: char) -> Option<String> {
        let kept = match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        };
        let hexadecimal = |upper: bool| -> String {
            let kept = text.bytes().take(self.precision.unwrap_or(usize::MAX));
            let separator = if self.has(' ') { " " } else { "" };
            let hex: Vec<_> = kept
                .map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") })
                .collect();
            hex.join(separator)
        };
        Some(match verb {
            'v' | 's' => kept,
            'q' if self.has('#') && !kept.contains('`') => format!("`{kept}`"),
            'q' => quote(&kept, '"'),
            'x' => hexadecimal(false),
            'X' => hexadecimal(true),
            _ => return None,
        })
    }
}

/// Quotes a string, and escapes the characters that are not printable.
pub(super) fn quote(text: &str, quote: char) -> String {
    let inside: String = text.chars().map(|c| escaped(c, quote)).collect();
    format!("{quote}{inside}{quote}")
}

fn escaped(c: char, quote: char) -> String {
    match c {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\\' => "\\\\".to_owned(),
        _ if c == quote => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        '\0'..='\u{7f}' => format!("\\x{:02x}", u32::from(c)),
        // Characters that Rust escapes are not printable, except for combining ones.
        _ if c.escape_debug().len() == 1 => c.to_string(),
        _ if u32::from(c) < 0x1_0000 => format!("\\u{:04x}", u32::from(c)),
        _ => format!("\\U{:08x}", u32::from(c)),
    }
}
