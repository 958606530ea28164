//! Syntax errors in expressions that users type, with their position. Paths, conditions and
//! templates share them.

use std::fmt;

use crate::cells;

/// An expression that cannot be parsed.
///
/// Displays the line with a mark below the position, because a number alone leaves the reader
/// counting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    problem: String,
    hint: Option<String>,
    /// The line of the expression that contains the problem.
    line: String,
    /// The number of that line, if the expression has several.
    number: Option<usize>,
    /// The number of columns before the position.
    before: usize,
}

/// The number of columns to show on either side of the position.
const SHOWN: usize = 60;

impl SyntaxError {
    /// Creates an error at a byte of the text.
    pub(crate) fn new(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let number =
            text.contains('\n').then(|| 1 + text[..start].bytes().filter(|b| *b == b'\n').count());
        let before = cells::one_line(&text[start..at]);
        let before = cells::keep_end(&before, SHOWN);
        let after = cells::one_line(&text[at..end]);
        let after = cells::keep_start(&after, SHOWN);
        Self {
            problem: problem.into(),
            hint: None,
            number,
            before: cells::width(&before),
            line: format!("{before}{after}"),
        }
    }

    /// Adds a hint at what would be correct.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if let Some(number) = self.number {
            write!(f, ", in line {number}")?;
        }
        write!(f, "\n    {}\n    {:before$}^", self.line, "", before = self.before)?;
        match &self.hint {
            Some(hint) => write!(f, "\n{hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SyntaxError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_marked() {
        let error = SyntaxError::new("status..phase", 7, "a name is missing").hint("write one");
        assert_eq!(
            error.to_string(),
            "a name is missing\n    status..phase\n           ^\nwrite one"
        );
    }

    #[test]
    fn one_line_of_many_is_shown() {
        let error = SyntaxError::new("first\nsecönd x\nthird", 14, "no x");
        assert_eq!(error.to_string(), "no x, in line 2\n    secönd x\n           ^");
    }

    #[test]
    fn a_long_line_is_shortened_around_the_place() {
        let text = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let shown = SyntaxError::new(&text, 500, "no").to_string();
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[1].len() < 140, "{shown}");
        assert_eq!(lines[1].find('!'), lines[1].find('a').map(|a| a + 59), "{shown}");
        assert_eq!(lines[2].chars().count(), 4 + 60 + 1);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let shown = SyntaxError::new("a\u{1b}[31mb", 6, "no").to_string();
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
}
