//! Findings of checks.

use std::fmt;

/// A violation: its location, a description, and how to fix it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) file: String,
    /// Starts at 1; 0 stands for the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}
