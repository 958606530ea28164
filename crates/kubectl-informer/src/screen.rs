//! The screen: events on standard output and, on a terminal, a status line below them.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use crate::cells::{keep_start, lines, one_line, width as columns_of};
use crate::color::{Style, paint};
use crate::outcome::Outcome;

/// A line of text in pieces, each with its own style.
pub(crate) type Pieces = Vec<(String, Option<Style>)>;

/// Standard output, and the status line on standard error, which is always the last line.
pub(crate) struct Screen {
    out: BufWriter<Stdout>,
    line: Option<Line>,
}

struct Line {
    pieces: Pieces,
    colour: bool,
    drawn: bool,
}

impl Screen {
    /// Creates a screen. It has a status line if `status` is true and standard error is a terminal.
    pub(crate) fn new(status: bool, colour: bool) -> Self {
        let capable = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let line = (status && capable && io::stderr().is_terminal() && !is_piped()).then(|| Line {
            pieces: Vec::new(),
            colour,
            drawn: false,
        });
        Self { out: BufWriter::with_capacity(64 * 1024, io::stdout()), line }
    }

    /// Returns whether there is a status line.
    pub(crate) fn has_status(&self) -> bool {
        self.line.is_some()
    }

    /// Writes to standard output. Call `flush` to show it.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.clear();
        self.out.write_all(text.as_bytes())
    }

    /// Shows the printed text, with the status line below it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.draw();
        Ok(())
    }

    /// Sets the text of the status line.
    pub(crate) fn status(&mut self, pieces: Pieces) {
        let Some(line) = &mut self.line else { return };
        if line.drawn && line.pieces == pieces {
            return;
        }
        line.pieces = pieces;
        self.draw();
    }

    /// Writes a line to standard error.
    pub(crate) fn note(&mut self, text: &str) {
        self.clear();
        // If standard error is closed, the message cannot be delivered.
        let _ = writeln!(io::stderr(), "{}", lines(text));
        self.draw();
    }

    /// Removes the status line.
    pub(crate) fn end(&mut self) {
        self.clear();
        self.line = None;
    }

    /// Returns the width of the status line.
    pub(crate) fn columns() -> usize {
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
        usize::from(width)
    }

    /// Erases the status line until it is drawn again.
    pub(crate) fn clear(&mut self) {
        if let Some(line) = self.line.as_mut().filter(|line| line.drawn) {
            line.drawn = false;
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn draw(&mut self) {
        let width = Self::columns();
        let Some(line) = &mut self.line else { return };
        if line.pieces.is_empty() {
            return;
        }
        let text = fit(&line.pieces, width, line.colour);
        line.drawn = true;
        // A single write, so that no other output comes between.
        let _ = io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns whether another program reads standard output. That program probably writes to the same
/// terminal, and knows nothing of a status line.
#[cfg(unix)]
fn is_piped() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;
    let Ok(out) = io::stdout().as_fd().try_clone_to_owned() else { return false };
    let Ok(metadata) = std::fs::File::from(out).metadata() else { return false };
    metadata.file_type().is_fifo() || metadata.file_type().is_socket()
}

/// Waits until standard output is closed by its reader, such as `| head`. Never completes if that
/// cannot be detected.
#[cfg(unix)]
pub(crate) async fn unread() {
    use std::os::fd::AsFd as _;

    use tokio::io::Interest;
    use tokio::net::unix::pipe::Sender;

    let out = io::stdout().as_fd().try_clone_to_owned().ok().filter(|_| is_piped());
    // Nothing is written through this descriptor, so that it need not be non-blocking.
    let watched = out.and_then(|out| Sender::from_owned_fd_unchecked(out).ok());
    if let Some(watched) = watched
        && watched.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

#[cfg(not(unix))]
pub(crate) async fn unread() {
    std::future::pending::<()>().await;
}

#[cfg(not(unix))]
fn is_piped() -> bool {
    !io::stdout().is_terminal()
}

/// Returns the part of the line that fits. A longer line would wrap, and could not be erased.
fn fit(pieces: &Pieces, width: usize, colour: bool) -> String {
    let mut left = width.saturating_sub(1);
    let mut text = String::new();
    for (piece, style) in pieces {
        let shown = keep_start(&one_line(piece), left);
        left -= columns_of(&shown);
        text.push_str(&style.map_or_else(|| shown.clone(), |style| paint(&shown, style, colour)));
    }
    text
}

/// Converts the result of writing to a command's outcome. A reader that closes the pipe is not an
/// error.
pub(crate) fn written(result: io::Result<()>) -> Result<Outcome, String> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(Outcome::Met),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::{GREEN, RED};

    fn pieces() -> Pieces {
        vec![("● ".into(), Some(GREEN)), ("live".into(), None), (" · oh".into(), Some(RED))]
    }

    #[test]
    fn a_line_is_as_wide_as_the_terminal_at_most() {
        assert_eq!(fit(&pieces(), 80, false), "● live · oh");
        assert_eq!(fit(&pieces(), 12, false), "● live · oh");
        assert_eq!(fit(&pieces(), 11, false), "● live · …");
        assert_eq!(fit(&pieces(), 8, false), "● live…");
        assert_eq!(fit(&pieces(), 1, false), "");
        assert_eq!(fit(&pieces(), 0, false), "");
        assert_eq!(fit(&vec![("日本語".into(), None)], 6, false), "日本…");
        assert_eq!(fit(&pieces(), 8, true), "\x1b[32m● \x1b[0mlive\x1b[31m…\x1b[0m");
    }
}
