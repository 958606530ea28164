use super::super::style::Colour;
use super::*;

fn screen(text: &str) -> Vec<String> {
    let mut terminal = Terminal::new((10, 4));
    terminal.write(text.as_bytes());
    terminal.rows.iter().map(Row::text).collect()
}

#[test]
fn text_lines_and_returns() {
    assert_eq!(screen("one\r\ntwo\rT"), ["one", "Two", "", ""]);
    assert_eq!(screen("a\tb\x08c\x07"), ["a       c", "", "", ""]);
    assert_eq!(screen("down\nhere"), ["down", "    here", "", ""]);
}

#[test]
fn long_lines_wrap_once_there_is_more() {
    assert_eq!(screen("0123456789"), ["0123456789", "", "", ""]);
    assert_eq!(screen("0123456789\r\nnext"), ["0123456789", "next", "", ""]);
    assert_eq!(screen("0123456789ab"), ["0123456789", "ab", "", ""]);
    assert_eq!(screen("\x1b[?7l0123456789ab\x1b[?7h"), ["012345678b", "", "", ""]);
}

#[test]
fn what_is_full_scrolls() {
    assert_eq!(screen("1\r\n2\r\n3\r\n4\r\n5"), ["2", "3", "4", "5"]);
}

#[test]
fn rows_and_screens_are_erased() {
    assert_eq!(screen("status\r\x1b[K"), ["", "", "", ""]);
    assert_eq!(screen("abcdef\x1b[3D\x1b[K"), ["abc", "", "", ""]);
    assert_eq!(screen("abcdef\x1b[3D\x1b[1K"), ["    ef", "", "", ""]);
    assert_eq!(screen("abcdef\x1b[2Kg"), ["      g", "", "", ""]);
    assert_eq!(screen("a\r\nb\r\nc\x1b[2A\x1b[J"), ["a", "", "", ""]);
    assert_eq!(screen("a\r\nb\r\nc\x1b[2J\x1b[HX"), ["X", "", "", ""]);
}

#[test]
fn the_cursor_moves_and_stays_inside() {
    assert_eq!(screen("\x1b[2;3Hx\x1b[Ay\x1b[2Dz"), ["  zy", "  x", "", ""]);
    assert_eq!(screen("\x1b[99;99Hx\x1b[99A\x1b[99Dy"), ["y", "", "", "         x"]);
    assert_eq!(screen("a\x1b7b\x1b[3Bc\x1b8d"), ["ad", "", "", "  c"]);
    assert_eq!(screen("abc\x1b[1Gx\x1b[5Cy\x1b[1Ez\x1b[1Fw"), ["wbc   y", "z", "", ""]);
}

#[test]
fn what_is_not_known_is_not_shown() {
    assert_eq!(
        screen("a\x1b]0;title\x07b\x1b]8;;x\x1b\\c\x1b(Bd\x1b[?2004he\x1b[>4;1mf\x1b=g"),
        ["abcdefg", "", "", ""]
    );
    assert_eq!(screen(&format!("\x1b[{}", "1;".repeat(100))).len(), 4);
}

#[test]
fn characters_and_sequences_may_be_cut_anywhere() {
    let text = "\x1b[1;31mé→\x1b[0m x\x1b[1G\x1b[2C!";
    let mut whole = Terminal::new((10, 4));
    whole.write(text.as_bytes());
    let mut cut = Terminal::new((10, 4));
    text.as_bytes().iter().for_each(|byte| cut.write(&[*byte]));
    assert_eq!(whole.rows, cut.rows);
    assert_eq!(whole.rows[0].text(), "é→!x");
    let mut broken = Terminal::new((10, 4));
    broken.write(b"a\xff\xfeb\xc3");
    assert_eq!(broken.rows[0].text(), "a\u{fffd}\u{fffd}b");
}

#[test]
fn looks_are_kept_with_the_characters() {
    let mut terminal = Terminal::new((10, 1));
    terminal.write(b"a\x1b[31mb\x1b[41m\x1b[K\x1b[mc");
    let look = |column: usize| {
        (terminal.rows[0].0[column].style.front, terminal.rows[0].0[column].style.back)
    };
    assert_eq!(look(0), (Colour::Default, Colour::Default));
    assert_eq!(look(1), (Colour::Named(1), Colour::Default));
    assert_eq!(look(2), (Colour::Default, Colour::Default));
    assert_eq!(look(3), (Colour::Default, Colour::Named(1)), "erasing paints");
}

#[test]
fn the_cursor_can_be_hidden() {
    let mut terminal = Terminal::new((10, 1));
    terminal.write(b"0123456789\x1b[?25l");
    assert_eq!((terminal.cursor_shown, terminal.cursor()), (false, (0, 9)));
    terminal.write(b"\x1b[?25h");
    assert!(terminal.cursor_shown);
}
