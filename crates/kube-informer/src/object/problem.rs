//! Decode errors: the field that is wrong, and never its value.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use super::position;

/// Enough for every path in the types of Kubernetes itself. Names can be arbitrary.
const PATH_CHARS_MAX: usize = 300;

/// serde's names of JSON types, in messages that quote the value after them.
const VALUES: [&str; 7] =
    ["null", "boolean", "integer", "floating point", "string", "sequence", "map"];

/// Explains why JSON could not be decoded as `T`: the path of the field, and what was expected there. `base`
/// is the path of `json` itself, empty for a whole object.
///
/// The path is found by decoding once more, so that successful decoding has no extra cost.
pub(crate) fn problem<T>(json: &[u8], base: &str, error: &serde_json::Error) -> String
where
    T: DeserializeOwned,
{
    let mut decoder = serde_json::Deserializer::from_slice(json);
    let (path, reason) = match serde_path_to_error::deserialize::<_, T>(&mut decoder) {
        Err(error) if error.inner().classify() == Category::Data => {
            (joined(base, error.path()), reason(error.inner()))
        }
        // Invalid JSON has no fields.
        _ => (base.to_owned(), position(error)),
    };
    if path.is_empty() { reason } else { format!("{path}: {reason}") }
}

/// Formats a path in the syntax of [`FieldPath`](crate::FieldPath).
fn joined(base: &str, path: &Path) -> String {
    let mut text = base.to_owned();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            Segment::Map { key } | Segment::Enum { variant: key } if is_plain(key) => {
                text.push_str(if text.is_empty() { "" } else { "." });
                text.push_str(key);
            }
            Segment::Map { key } | Segment::Enum { variant: key } => {
                text.push_str(&format!("['{}']", key.escape_debug()));
            }
            Segment::Unknown => text.push_str("[?]"),
        }
    }
    if let Some((cut, _)) = text.char_indices().nth(PATH_CHARS_MAX) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// Returns serde's message without the value that it quotes. A message of any other form comes from a type's
/// own code, which may quote anything, and is omitted.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    known(text).unwrap_or_else(|| "the value is not one that its type accepts".to_owned())
}

fn known(text: &str) -> Option<String> {
    for names_field in ["missing field `", "duplicate field `"] {
        if let Some(field) = text.strip_prefix(names_field) {
            return is_plain(field.strip_suffix('`')?).then(|| text.to_owned());
        }
    }
    // A value may contain ", expected" as well, but serde's own comes last.
    let (before, expected) = text.rsplit_once(", expected ")?;
    for what in ["invalid type", "invalid value"] {
        let found = before.strip_prefix(what).and_then(|rest| rest.strip_prefix(": "));
        if let Some(found) = found {
            let value = VALUES.iter().find(|value| found.starts_with(**value));
            let value = value.map_or_else(String::new, |value| format!(": {value}"));
            return Some(format!("{what}{value}, expected {expected}"));
        }
    }
    let other = ["invalid length", "unknown variant", "unknown field"];
    let what = other.iter().find(|what| before.starts_with(**what))?;
    Some(format!("{what}, expected {expected}"))
}

/// Returns whether a name needs no quotes in a path.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.bytes().all(plain)
}

#[cfg(test)]
mod tests;
