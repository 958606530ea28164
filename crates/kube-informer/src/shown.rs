//! Escapes and shortens foreign text for logs and terminals.

use std::borrow::Cow;

/// Escapes every character that could break a line, control a terminal or change the writing direction, and
/// truncates the text after `chars_max` characters. Text that is harmless and short is returned as it is.
pub(crate) fn shown(text: &str, chars_max: usize) -> Cow<'_, str> {
    if text.len() <= chars_max && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into();
    }
    let mut line = String::new();
    for (nth, c) in text.chars().enumerate() {
        if nth == chars_max {
            line.push('…');
            break;
        }
        match c {
            // Includes quotes and backslashes, which `escape_debug` would escape.
            ' '..='~' => line.push(c),
            // Escapes unprintable characters, and combining marks.
            _ => line.extend(c.escape_debug()),
        }
    }
    line.into()
}

/// Returns the longest prefix of whole characters that fits into `bytes_max` bytes.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let fits = |at: &usize| text.is_char_boundary(*at);
    let end = (0..=text.len().min(bytes_max)).rev().find(fits).unwrap_or_default();
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        for text in ["", "shop/web-0", "system:node \"a\" \\ 'b'", "Größe 名前 …"] {
            assert_eq!(shown(text, 100), text);
        }
        assert!(matches!(shown("shop/web-0", 10), Cow::Borrowed(_)));
    }

    #[test]
    fn what_would_steer_a_terminal_is_escaped() {
        let hostile =
            "a\nb\r\x1b[2J\u{9b}31m\u{202e}gpj.\u{2066}\u{200b}\u{feff}\u{0}\u{7f}\u{2028}\t";
        let safe = shown(hostile, 1000);
        assert!(safe.starts_with(r"a\nb\r\u{1b}[2J\u{9b}31m\u{202e}gpj.\u{2066}"), "{safe}");
        assert!(safe.chars().all(|c| matches!(c, ' '..='~')), "{safe}");
        assert_eq!(shown(&safe, 1000), safe, "what is safe stays");
    }

    #[test]
    fn a_beginning_ends_between_characters() {
        assert_eq!(beginning("aü", 2), "a");
        assert_eq!(beginning("aü", 3), "aü");
        assert_eq!(beginning("名", 2), "");
        assert_eq!(beginning("", 0), "");
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(shown(&"ü".repeat(1 << 20), 3), "üüü…");
        assert_eq!(shown("abcd", 3), "abc…");
        assert_eq!(shown("abc", 3), "abc");
    }
}
