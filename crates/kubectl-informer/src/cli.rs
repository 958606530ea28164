//! The table of commands and flags; help, completion and the man page are made of it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{serve, watch};

/// Watches Kubernetes the way a controller does: through an informer.
///
/// `watch` shows what is added, updated and deleted, and goes on through everything that happens
/// between here and the API server. Where there is no cluster it runs on an embedded one.
///
/// Put on the PATH as kubectl-informer, it can also be called as `kubectl informer`.
#[derive(Debug, Parser)]
#[command(version, bin_name = "kubectl-informer", max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Watch(Box<watch::Options>),
    Serve(serve::Options),
}

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
