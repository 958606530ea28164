//! The outcomes of commands.

use std::process::ExitCode;

/// The outcome of a command, which determines its exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The request was fulfilled, or the awaited condition was met.
    Met,
    /// The awaited condition was not met.
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

/// The exit code for all errors, which is also clap's for bad arguments.
pub(crate) const FAILED: u8 = 2;
