//! The table of commands and flags; help, completion and the man page are made of it.

use clap::{Parser, Subcommand};

use crate::{doctor, get, serve, top, watch};

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
    Get(Box<get::Options>),
    Doctor(Box<doctor::Options>),
    Top(Box<top::Options>),
    Serve(serve::Options),
}
