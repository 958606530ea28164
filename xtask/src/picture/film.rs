//! Converts the output of a terminal into the screens that it showed.

use std::time::Duration;

use super::record::Recording;
use super::terminal::{Row, Terminal};

/// A sequence of screens; identical rows are stored once.
#[derive(Debug)]
pub(crate) struct Film {
    /// Columns and rows.
    pub(crate) size: (usize, usize),
    pub(crate) rows: Vec<Row>,
    pub(crate) frames: Vec<Frame>,
    /// The frame to show without animation: the last one while the command ran.
    pub(crate) still: usize,
}

/// The content of the screen from one moment on.
#[derive(Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) at: Duration,
    /// Indices into [`Film::rows`].
    pub(crate) rows: Vec<usize>,
    /// The row and column of the cursor, if it is visible.
    pub(crate) cursor: Option<(usize, usize)>,
}

impl Film {
    /// Combines the output of one interval into one frame.
    pub(crate) fn of(recording: &Recording, size: (usize, usize), interval: Duration) -> Self {
        let mut film = Self { size, rows: Vec::new(), frames: Vec::new(), still: 0 };
        let mut terminal = Terminal::new(size);
        let mut parts = recording.parts.iter().peekable();
        while let Some((at, bytes)) = parts.next() {
            terminal.write(bytes);
            // The end of a command starts a new frame.
            let end = recording.interrupted.filter(|end| at < end).unwrap_or(Duration::MAX);
            let end = end.min(*at + interval);
            while let Some((_, bytes)) = parts.next_if(|(next, _)| *next < end) {
                terminal.write(bytes);
            }
            film.take(*at, &terminal);
        }
        if film.frames.is_empty() {
            film.take(Duration::ZERO, &terminal);
        }
        let end = recording.interrupted.unwrap_or(Duration::MAX);
        film.still = film.frames.iter().rposition(|frame| frame.at < end).unwrap_or(0);
        film
    }

    fn take(&mut self, at: Duration, terminal: &Terminal) {
        let rows = terminal.rows.iter().map(|row| self.place(row)).collect();
        let cursor = terminal.cursor_shown.then(|| terminal.cursor());
        let frame = Frame { at, rows, cursor };
        let shown = self.frames.last();
        if shown.is_none_or(|shown| (&shown.rows, shown.cursor) != (&frame.rows, frame.cursor)) {
            self.frames.push(frame);
        }
    }

    fn place(&mut self, row: &Row) -> usize {
        let known = self.rows.iter().position(|known| known == row);
        known.unwrap_or_else(|| {
            self.rows.push(row.clone());
            self.rows.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_close_together_is_one_frame_and_what_changes_nothing_is_none() {
        let mut recording = Recording::default();
        for (millis, text) in [(0, "a"), (50, "b"), (200, "c"), (400, "\x1b[0m"), (500, "\r\nab")] {
            recording.push(Duration::from_millis(millis), text.as_bytes());
        }
        let film = Film::of(&recording, (10, 3), Duration::from_millis(100));
        let shown: Vec<(u128, String)> = film
            .frames
            .iter()
            .map(|frame| (frame.at.as_millis(), film.rows[frame.rows[0]].text()))
            .collect();
        assert_eq!(shown, [(0, "ab".into()), (200, "abc".into()), (500, "abc".into())]);
        assert_eq!(film.frames[2].rows[1], film.frames[0].rows[0], "the same row is kept once");
        assert_eq!(film.frames[2].cursor, Some((1, 2)));
    }

    #[test]
    fn what_stands_still_is_what_was_shown_before_the_end() {
        let mut recording = Recording::default();
        for (millis, text) in [(0, "one"), (500, "\r\ntwo"), (560, "\r\nbye")] {
            recording.push(Duration::from_millis(millis), text.as_bytes());
        }
        let still = |recording: &Recording| {
            let film = Film::of(recording, (10, 3), Duration::from_millis(100));
            let rows = film.frames[film.still].rows.iter();
            rows.map(|row| film.rows[*row].text()).collect::<Vec<_>>()
        };
        assert_eq!(still(&recording), ["one", "two", "bye"]);
        recording.interrupted = Some(Duration::from_millis(550));
        assert_eq!(still(&recording), ["one", "two", ""]);
    }

    #[test]
    fn nothing_is_one_empty_frame() {
        let film = Film::of(&Recording::default(), (10, 2), Duration::from_millis(100));
        assert_eq!((film.frames.len(), film.rows.len()), (1, 1));
    }
}
