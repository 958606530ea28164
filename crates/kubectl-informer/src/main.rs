//! `kubectl informer`: Kubernetes as an informer sees it, and an API server to try it on.

mod color;
mod duration;
mod outcome;
mod signals;
mod terminal;

mod cells;
mod labels;
mod syntax;
mod table;

mod path;

mod diff;
mod jsonpath;
mod template;
mod until;

mod custom_columns;

mod demo;

mod connect;
mod discovery;

mod columns;
mod plain;
mod scope;

mod chosen;

mod live;
mod record;
mod screen;

mod keys;

mod format;
mod status;

mod caches;

mod tree;

mod metrics;

mod ui;

mod watch;

mod doctor;
mod get;
mod top;

mod serve;

mod completion;
mod man;

mod cli;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Command};
use outcome::{FAILED, Outcome};

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == completion::COMPLETE) {
        let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        completion::complete(&words, Cli::command()).await;
    }
    let outcome = match Cli::parse().command {
        Command::Watch(options) => watch::watch(*options).await,
        Command::Get(options) => get::get(*options).await,
        Command::Doctor(options) => doctor::doctor(*options).await,
        Command::Top(options) => top::top(*options).await,
        Command::Serve(options) => serve::serve(&options).await.map(|()| Outcome::Met),
        Command::Completion(options) => completion::completion(&options, Cli::command()),
        Command::Man(options) => man::man(&options, Cli::command()),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(problem) => {
            // If standard error is closed, the message cannot be delivered.
            let _ = writeln!(io::stderr(), "error: {}", cells::lines(&problem));
            ExitCode::from(FAILED)
        }
    }
}
