//! Text on a terminal that the next text replaces.

use std::io::{self, Write as _};

use crate::cells::keep_start;

/// The text that is on the terminal now.
#[derive(Default)]
pub(crate) struct Live {
    lines: usize,
}

impl Live {
    /// Replaces the text that was drawn before with as much of this text as fits.
    pub(crate) fn draw(&mut self, text: &str) -> io::Result<()> {
        let size = terminal_size::terminal_size_of(io::stdout());
        let (width, height) = size.map_or((80, 24), |(width, height)| (width.0, height.0));
        let (width, height) = (usize::from(width), usize::from(height));
        let shown = fitting(text, width, height.saturating_sub(1));
        let before = self.erasure();
        self.lines = shown.matches('\n').count();
        Self::write(&format!("{before}{shown}"))
    }

    /// Replaces the text for the last time, with all of the lines of this one.
    pub(crate) fn end(&mut self, text: &str) -> io::Result<()> {
        let shown = fitting(text, Self::columns() + 1, usize::MAX);
        let before = self.erasure();
        self.lines = 0;
        Self::write(&format!("{before}{shown}"))
    }

    /// Returns the maximum length of a line.
    pub(crate) fn columns() -> usize {
        let width = terminal_size::terminal_size_of(io::stdout()).map_or(80, |(width, _)| width.0);
        usize::from(width).saturating_sub(1)
    }

    fn erasure(&self) -> String {
        match self.lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    /// Writes everything at once, so that no other output comes between.
    fn write(text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// Cuts a text to this size. Lines that wrap could not be erased.
fn fitting(text: &str, width: usize, height: usize) -> String {
    let mut shown = String::new();
    for line in text.lines().take(height) {
        shown.push_str(&keep_start(line, width.saturating_sub(1)));
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fits_is_drawn() {
        assert_eq!(fitting("abcdef\nb\nc\n", 5, 2), "abc…\nb\n");
        assert_eq!(fitting("abc\n", 0, 0), "");
    }
}
