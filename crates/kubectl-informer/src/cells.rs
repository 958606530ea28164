//! Text for a terminal: measuring its width in columns, and shortening it.
//!
//! Anything that comes from a cluster may have been written by anyone. Control characters are
//! escaped, so that nothing in an object can move the cursor or reverse the direction of text.

use std::fmt::Write as _;

/// Returns the number of columns that a text occupies. An approximation without Unicode's width
/// tables, which is close enough for tables.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        // Combining accents, joiners and emoji variation selectors.
        0x300..=0x36F | 0x20D0..=0x20FF | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        // Chinese, Japanese and Korean characters; emoji.
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Escapes everything that would control the terminal, except for line breaks.
///
/// Every message passes through this on its way to a terminal: a server, a proxy or an object may
/// have contributed to any of them.
pub(crate) fn lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(one_line).collect();
    lines.join("\n")
}

/// Escapes everything that would break a line or control the terminal.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            // Includes the marks that change text direction: they can make one text look like
            // another.
            _ if c.is_control() || steers(c) => {
                let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
            }
            _ => line.push(c),
        }
    }
    line
}

fn steers(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Returns the beginning of a text in at most this many columns, with `…` in place of the rest.
pub(crate) fn keep_start(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = take(text.chars(), columns);
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// Returns the end of a text in at most this many columns.
pub(crate) fn keep_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let kept: String = take(text.chars().rev(), columns).chars().rev().collect();
    if columns > 0 { format!("…{kept}") } else { kept }
}

/// Returns both ends of a text in at most this many columns.
pub(crate) fn keep_ends(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let end = columns / 2;
    let kept = keep_start(text, columns - end);
    let end: String = take(text.chars().rev(), end + 1).chars().rev().collect();
    format!("{kept}{end}")
}

/// Takes characters until only one of the columns is left.
fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns.saturating_sub(1);
    chars
        .take_while(|c| {
            let fits = char_width(*c) <= left;
            left = left.saturating_sub(char_width(*c));
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_shortened_where_it_hurts_least() {
        assert_eq!(keep_start("abcdef", 6), "abcdef");
        assert_eq!(keep_start("abcdef", 4), "abc…");
        assert_eq!(keep_end("abcdef", 4), "…def");
        assert_eq!(keep_ends("abcdefgh", 5), "ab…gh");
        assert_eq!(keep_start("日本語", 4), "日…");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(one_line("a\nb\t\u{1b}[1m\u{202e}"), "a\\nb\\t\\u{1b}[1m\\u{202e}");
        assert_eq!(lines("a\nb\r\u{1b}]0;x\u{7}\u{9b}m\n"), "a\nb\\r\\u{1b}]0;x\\u{7}\\u{9b}m\n");
    }

    proptest! {
        #[test]
        fn a_shortened_text_fits(text in "\\PC*", columns in 0_usize..30) {
            prop_assert!(width(&keep_start(&text, columns)) <= columns);
            prop_assert!(width(&keep_end(&text, columns)) <= columns);
            prop_assert!(width(&keep_ends(&text, columns)) <= columns);
        }
    }
}
