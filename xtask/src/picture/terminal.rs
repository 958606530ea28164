//! A terminal, as far as command-line tools use one: text, colours, cursor movement, erasing.

use super::style::Style;

/// One cell of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) character: char,
    pub(crate) style: Style,
}

/// A row of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    fn empty(columns: usize) -> Self {
        Self(vec![Cell { character: ' ', style: Style::default() }; columns])
    }

    /// Returns the text without styles and trailing spaces.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let text: String = self.0.iter().map(|cell| cell.character).collect();
        text.trim_end().to_owned()
    }
}

/// The screen, and the state of the parser.
#[derive(Debug)]
pub(crate) struct Terminal {
    columns: usize,
    pub(crate) rows: Vec<Row>,
    /// Row and column. The column may be one past the end: the next character then starts a new row.
    cursor: (usize, usize),
    saved: (usize, usize),
    pub(crate) cursor_shown: bool,
    wraps: bool,
    style: Style,
    state: State,
    /// The first bytes of an incomplete character.
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// `ESC [` and its parameters.
    Sequence(String),
    /// `ESC ]`, `ESC P` and the like, which are not shown, until their end.
    Hidden {
        escaped: bool,
    },
    /// The next character belongs to the sequence.
    Skip,
}

/// No supported sequence is longer.
const SEQUENCE_MAX: usize = 64;

const TAB: usize = 8;

impl Terminal {
    pub(crate) fn new((columns, rows): (usize, usize)) -> Self {
        Self {
            columns,
            rows: vec![Row::empty(columns); rows],
            cursor: (0, 0),
            saved: (0, 0),
            cursor_shown: true,
            wraps: true,
            style: Style::default(),
            state: State::Text,
            bytes: Vec::new(),
        }
    }

    pub(crate) fn cursor(&self) -> (usize, usize) {
        (self.cursor.0, self.cursor.1.min(self.columns - 1))
    }

    /// Writes bytes as they arrive; characters and sequences may be split anywhere.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.bytes);
        let mut rest = &*pending;
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    text.chars().for_each(|c| self.character(c));
                    return;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    String::from_utf8_lossy(good).chars().for_each(|c| self.character(c));
                    let Some(length) = error.error_len() else {
                        self.bytes = bad.to_vec();
                        return;
                    };
                    self.character(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
    }

    fn character(&mut self, c: char) {
        match std::mem::take(&mut self.state) {
            State::Text => self.text(c),
            State::Escape => self.escape(c),
            State::Sequence(parameters) if c.is_ascii() && ('@'..='~').contains(&c) => {
                self.sequence(&parameters, c);
            }
            State::Sequence(mut parameters) if parameters.len() < SEQUENCE_MAX => {
                parameters.push(c);
                self.state = State::Sequence(parameters);
            }
            State::Hidden { escaped } if c != '\x07' && !(escaped && c == '\\') => {
                self.state = State::Hidden { escaped: c == '\x1b' };
            }
            State::Sequence(_) | State::Hidden { .. } | State::Skip => {}
        }
    }

    fn text(&mut self, c: char) {
        match c {
            '\x1b' => self.state = State::Escape,
            '\r' => self.cursor.1 = 0,
            '\n' | '\x0b' | '\x0c' => self.down(),
            '\x08' => self.cursor.1 = self.cursor().1.saturating_sub(1),
            '\t' => self.cursor.1 = ((self.cursor.1 / TAB + 1) * TAB).min(self.columns - 1),
            c if c.is_control() => {}
            c => self.put(c),
        }
    }

    fn put(&mut self, character: char) {
        if self.cursor.1 >= self.columns {
            if self.wraps {
                self.cursor.1 = 0;
                self.down();
            } else {
                self.cursor.1 = self.columns - 1;
            }
        }
        let (row, column) = self.cursor;
        self.rows[row].0[column] = Cell { character, style: self.style };
        self.cursor.1 += 1;
    }

    fn down(&mut self) {
        if self.cursor.0 + 1 < self.rows.len() {
            self.cursor.0 += 1;
        } else {
            self.rows.remove(0);
            self.rows.push(Row::empty(self.columns));
        }
    }

    fn escape(&mut self, c: char) {
        match c {
            '[' => self.state = State::Sequence(String::new()),
            ']' | 'P' | 'X' | '^' | '_' => self.state = State::Hidden { escaped: false },
            '(' | ')' | '#' | '%' | ' ' => self.state = State::Skip,
            '7' => self.saved = self.cursor,
            '8' => self.cursor = self.saved,
            'M' => self.cursor.0 = self.cursor.0.saturating_sub(1),
            _ => {}
        }
    }

    fn sequence(&mut self, parameters: &str, end: char) {
        if let Some(mode) = parameters.strip_prefix('?') {
            match (mode, end) {
                ("25", 'h' | 'l') => self.cursor_shown = end == 'h',
                ("7", 'h' | 'l') => self.wraps = end == 'h',
                _ => {}
            }
            return;
        }
        let numbers: Vec<u16> =
            parameters.split([';', ':']).map(|number| number.parse().unwrap_or_default()).collect();
        let first = numbers.first().copied().unwrap_or_default() as usize;
        let second = numbers.get(1).copied().unwrap_or_default() as usize;
        let steps = first.max(1);
        let (row, column) = self.cursor();
        let (last_row, last_column) = (self.rows.len() - 1, self.columns - 1);
        match end {
            'm' => self.style.apply(&numbers),
            'A' => self.cursor = (row.saturating_sub(steps), column),
            'B' => self.cursor = ((row + steps).min(last_row), column),
            'C' => self.cursor = (row, (column + steps).min(last_column)),
            'D' => self.cursor = (row, column.saturating_sub(steps)),
            'E' => self.cursor = ((row + steps).min(last_row), 0),
            'F' => self.cursor = (row.saturating_sub(steps), 0),
            'G' => self.cursor = (row, (steps - 1).min(last_column)),
            'H' | 'f' => {
                self.cursor = ((steps - 1).min(last_row), (second.max(1) - 1).min(last_column));
            }
            'J' => self.erase_screen(first),
            'K' => self.erase_row(first),
            's' => self.saved = self.cursor,
            'u' => self.cursor = self.saved,
            _ => {}
        }
    }

    fn erase_row(&mut self, what: usize) {
        let (row, column) = self.cursor();
        let range = match what {
            0 => column..self.columns,
            1 => 0..column + 1,
            2 => 0..self.columns,
            _ => return,
        };
        let back = Style { back: self.style.back, ..Style::default() };
        self.rows[row].0[range].fill(Cell { character: ' ', style: back });
    }

    fn erase_screen(&mut self, what: usize) {
        let row = self.cursor.0;
        let range = match what {
            0 => row + 1..self.rows.len(),
            1 => 0..row,
            2 | 3 => 0..self.rows.len(),
            _ => return,
        };
        self.rows[range].fill(Row::empty(self.columns));
        if what < 2 {
            self.erase_row(what);
        }
    }
}

#[cfg(test)]
mod tests;
