//! `top`: shows the objects and types that change most.

mod minute;

mod count;
mod run;
mod show;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::duration::duration;
use crate::outcome::Outcome;
use crate::signals::Stop;
use crate::{connect, scope};

/// Shows which objects and types change most, and what changes in them.
///
/// On a terminal it goes on until Ctrl-C, new every second; elsewhere it looks for ten seconds and
/// prints one table. It counts from the moment when everything that was there is known.
///
/// Keys on a terminal: q ends, space pauses the display while counting goes on, / filters names,
/// ? helps.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Options {
    /// The types, with commas or spaces; otherwise pods, deployments, nodes, leases, endpointslices
    /// and events, as far as they are there.
    #[arg(value_name = "TYPE")]
    types: Vec<String>,

    /// How long to look.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    look_for: Option<Duration>,

    /// How many objects to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,

    /// How to show it.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    scope: scope::Options,

    #[command(flatten)]
    connect: connect::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

const EXAMPLES: &str = "\
Examples:
  kubectl informer top -A
  kubectl informer top pods,deploy -n shop --for 1m
  kubectl informer top leases -A --limit 3
  kubectl informer top pods -A --for 30s -o json | jq '.objects[0]'";

/// How long to count if there is no user to stop it.
const UNATTENDED: Duration = Duration::from_secs(10);

/// Counts changes until stopped. The error is a message for the user.
pub(crate) async fn top(options: Options) -> Result<Outcome, String> {
    let mut stop = Stop::new()?;
    let capable = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let live = options.output == Format::Text && io::stdout().is_terminal() && capable;
    let length = options.look_for.or((!live).then_some(UNATTENDED));
    let begun = tokio::select! {
        biased;
        () = stop.requested() => return Ok(Outcome::Met),
        begun = run::Top::start(options, live) => begun?,
    };
    begun.run(stop, length).await
}
