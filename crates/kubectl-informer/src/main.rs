//! `kubectl informer`: Kubernetes as an informer sees it, and an API server to try it on.

mod chosen;
mod cli;
mod color;
mod columns;
mod connect;
mod demo;
mod discovery;
mod format;
mod plain;
mod record;
mod scope;
mod screen;
mod serve;
mod signals;
mod status;
mod watch;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command, FAILED, Outcome};

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Watch(options) => watch::watch(*options).await,
        Command::Serve(options) => serve::serve(&options).await.map(|()| Outcome::Met),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(problem) => {
            // With nobody left to read it, there is nobody to tell.
            let _ = writeln!(io::stderr(), "error: {problem}");
            ExitCode::from(FAILED)
        }
    }
}
