//! `kubectl informer`: an embedded Kubernetes API server to try things on.

mod serve;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Kubernetes informers, and an API server to try them on.
///
/// Put on the PATH as `kubectl-informer`, it can also be called as `kubectl informer`.
#[derive(Debug, Parser)]
#[command(version, bin_name = "kubectl-informer")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Options),
}

/// The exit code for everything that is wrong with what we were told, as clap's own.
const BAD_INPUT: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(options) => serve::serve(&options).await,
    };
    let Err(problem) = outcome else {
        return ExitCode::SUCCESS;
    };
    // With nobody left to read it, there is nobody to tell.
    let _ = writeln!(io::stderr(), "error: {problem}");
    ExitCode::from(BAD_INPUT)
}
