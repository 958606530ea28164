//! The text of JSON strings.

use std::borrow::Cow;

/// Returns the text between the quotes of a string, or `None` if it is invalid: not UTF-8, or an escape for
/// half a surrogate pair.
pub(crate) fn text(quoted: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', quoted).is_none() {
        return std::str::from_utf8(quoted).ok().map(Cow::Borrowed);
    }
    // Escapes are rare where text is read, so `serde_json` handles them.
    let string = [b"\"", quoted, b"\""].concat();
    serde_json::from_slice(&string).ok().map(Cow::Owned)
}

/// Returns whether a key, as written between its quotes, is this one.
pub(crate) fn is_key(quoted: &[u8], key: &str) -> bool {
    quoted == key.as_bytes()
        || memchr::memchr(b'\\', quoted).is_some() && text(quoted).is_some_and(|text| text == key)
}
