//! `kubectl informer`: Kubernetes as an informer sees it, and an API server to try it on.

mod color;
mod duration;
mod outcome;
mod signals;

#[allow(dead_code)]
mod cells;
#[allow(dead_code)]
mod syntax;
mod table;

#[allow(dead_code)]
mod path;

#[allow(dead_code)]
mod diff;
#[allow(dead_code)]
mod jsonpath;
#[allow(dead_code)]
mod template;
#[allow(dead_code)]
mod until;

mod custom_columns;

mod demo;

mod connect;
mod discovery;

mod columns;
mod plain;
mod scope;

mod chosen;

mod record;
mod screen;

mod format;
mod status;

mod caches;

mod watch;

mod get;

mod top;

mod doctor;

mod serve;

mod cli;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use outcome::{FAILED, Outcome};

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Watch(options) => watch::watch(*options).await,
        Command::Get(options) => get::get(*options).await,
        Command::Doctor(options) => doctor::doctor(*options).await,
        Command::Top(options) => top::top(*options).await,
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
