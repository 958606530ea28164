//! How commands end.

use std::process::ExitCode;

/// How a command has ended, for the shell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All is well: what was asked for has been done or has happened.
    Met,
    /// What was waited for has not happened.
    Unmet,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Met => ExitCode::SUCCESS,
            Outcome::Unmet => ExitCode::from(1),
        }
    }
}

/// The exit code for everything that went wrong, as clap's own for bad arguments.
pub(crate) const FAILED: u8 = 2;
