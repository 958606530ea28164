//! What is wrong with an expression that somebody typed, and where: the same for paths, conditions
//! and templates.

use std::fmt;

use crate::cells;

/// An expression that was not understood.
///
/// It shows the line with a mark below the place, because a position alone leaves the reader counting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    problem: String,
    hint: Option<String>,
    /// The line of the expression that the problem is in.
    line: String,
    /// The number of that line, if there are more.
    number: Option<usize>,
    /// How many columns of the line come before the place.
    before: usize,
}

/// More of a line than this is not shown, on either side of the place.
const SHOWN: usize = 60;

impl SyntaxError {
    /// A problem at a byte of the text.
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

    /// Adds what would be right.
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
