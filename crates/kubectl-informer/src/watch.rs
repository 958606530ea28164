//! `watch`: prints what happens to objects until stopped.

mod conditions;
mod tally;

mod run;

use std::time::Duration;

use clap::Args;
use regex_lite::Regex;

use crate::duration::duration;
use crate::format::Output;
use crate::outcome::Outcome;
use crate::path::Path;
use crate::signals::Stop;
use crate::until::Until;
use crate::{color, connect, scope};

/// Shows what happens to objects: added, updated, deleted.
///
/// First what there is, then every change, until Ctrl-C. A server that goes away, forgets versions or
/// falls silent does not end it: what was missed meanwhile is shown when it is back.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Options {
    /// The types, with commas: plurals, singulars or short names, `pods,deploy`; with their group
    /// where there are several of the name, `certificates.cert-manager.io`; `pods/web-1` is one
    /// object.
    #[arg(value_name = "TYPE[,TYPE…]")]
    types: String,

    /// Only objects whose names match: a regular expression, which may match any part of the name.
    #[arg(value_name = "NAME-REGEX", value_parser = name)]
    name: Option<Regex>,

    /// Not those whose names match.
    #[arg(long, value_name = "REGEX")]
    exclude: Option<Regex>,

    /// How to show an event: text, wide, json, yaml, name, template=…, jsonpath=… or
    /// custom-columns=….
    ///
    /// On a terminal, text leaves out columns for which there is no room, and wide does not. json is
    /// one event a line. jsonpath is kubectl's, and so are custom-columns, which come in the place of the
    /// usual ones. template is in the language of Go's templates, in which `.` is the object and `$event`
    /// has type, key, time and so on.
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = output)]
    output: Output,

    /// Shows what an update has changed, without noise such as managedFields and timestamps.
    #[arg(long)]
    diff: bool,

    /// Only changes in this part of objects: `.status`, `.spec.replicas`. Implies --diff.
    #[arg(long, value_name = "PATH")]
    path: Option<Path>,

    /// Adds the state before an update to JSON and YAML.
    #[arg(long)]
    old: bool,

    /// Shows only what happens from now on, not what there is already.
    #[arg(long)]
    watch_only: bool,

    /// Shows all objects again every so often, as handlers with a resync period see them: 30s, 5m.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    resync: Option<Duration>,

    /// Ends after so many events, with 0.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Ends with 0 as soon as all objects have met this: `status.phase=Running`, `condition=Ready`.
    ///
    /// Also `status.readyReplicas>=3`, or `deleted`; several with commas, which must hold together,
    /// or with `||`. If repeated, each must be met. Objects that are added meanwhile count too; those
    /// that are deleted no longer do.
    #[arg(long, value_name = "CONDITION", conflicts_with = "count")]
    until: Vec<Until>,

    /// Ends as soon as one object has met --until. If that is repeated, it may be another for each.
    #[arg(long, requires = "until")]
    any: bool,

    /// Ends after this time: with 1 if --count or --until have not been met by then.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// No line of titles.
    #[arg(long)]
    no_headers: bool,

    /// When to colour.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: color::When,

    #[command(flatten)]
    scope: scope::Options,

    #[command(flatten)]
    connect: connect::Options,
}

const EXAMPLES: &str = "\
Examples:
  kubectl informer watch pods
  kubectl informer watch pods,deployments -A -l app=web
  kubectl informer watch pods '^web-' -o json | jq -r .key
  kubectl informer watch pods -o template='{{$event.type}} {{.metadata.name}} {{.status.phase}}'
  kubectl informer watch deploy/web --diff --path .status
  kubectl informer watch pods/web-1 --until condition=Ready --timeout 2m && echo ready";

/// Watches until stopped, or until the awaited condition is met.
pub(crate) async fn watch(options: Options) -> Result<Outcome, String> {
    let mut stop = Stop::new()?;
    let waiting = options.count.is_some() || !options.until.is_empty();
    let begun = tokio::select! {
        biased;
        () = stop.requested() => {
            return Ok(if waiting { Outcome::Unmet } else { Outcome::Met });
        }
        begun = run::Watch::start(options) => begun?,
    };
    begun.run(stop).await
}

fn name(text: &str) -> Result<Regex, String> {
    if text.contains('/') {
        return Err(
            "no name has a slash; several objects are named with commas: ns/a,ns/b".to_owned()
        );
    }
    Regex::new(text).map_err(|error| error.to_string())
}

fn output(text: &str) -> Result<Output, String> {
    text.parse()
}
