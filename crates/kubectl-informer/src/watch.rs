//! `watch`: prints what happens to objects until stopped.

mod conditions;
mod exec;
mod matches;
mod tally;

mod run;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use regex_lite::Regex;

use crate::chosen::PATIENCE;
use crate::connect::Cluster;
use crate::duration::duration;
use crate::format::Output;
use crate::outcome::Outcome;
use crate::path::Path;
use crate::screen::Screen;
use crate::signals::Stop;
use crate::tree::Follow;
use crate::until::Until;
use crate::{color, connect, labels, metrics, scope, tree, ui};

use self::matches::Names;

/// Shows what happens to objects: added, updated, deleted.
///
/// First what there is, then every change, until Ctrl-C. A server that goes away, forgets versions or
/// falls silent does not end it: what was missed meanwhile is shown when it is back.
///
/// Keys on a terminal: q ends, space pauses and resumes, d switches diffs, / filters names, ? helps.
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
    /// After `TYPE/NAME` come more of these.
    #[arg(value_name = "NAME-REGEX", value_parser = word)]
    names: Vec<Word>,

    /// Not those whose names match.
    #[arg(long, value_name = "REGEX")]
    exclude: Option<Regex>,

    /// How to show an event: text, wide, json, yaml, name, template=…, jsonpath=… or
    /// custom-columns=….
    ///
    /// On a terminal, text leaves out columns for which there is no room, and wide does not. json is
    /// one event a line, with the fields that are listed at the end. jsonpath is kubectl's, and so are custom-columns, which come in the place of the
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

    /// Prints events as kubectl's --output-watch-events does: `{"type":"ADDED","object":…}`.
    ///
    /// The types are ADDED, MODIFIED, DELETED and BOOKMARK. Each event is a line of JSON, or a document
    /// with -o yaml. A bookmark with the annotation k8s.io/initial-events-end follows the objects that
    /// were there; later ones, at most one a minute, have the version up to which everything has been
    /// printed.
    #[arg(long, visible_alias = "output-watch-events")]
    #[arg(conflicts_with_all = ["diff", "old", "resync"])]
    watch_events: bool,

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

    /// Runs a shell command for each event that is shown, with the event as a line of JSON on its
    /// standard input.
    ///
    /// Its environment has the variables `INFORMER_EVENT`, `INFORMER_TYPE`, `INFORMER_KIND`,
    /// `INFORMER_KEY`, `INFORMER_NAMESPACE` and `INFORMER_NAME`. Commands for one object run in the order
    /// of its events, those for different objects at the same time, up to eight. Output is printed when a
    /// command ends; failures are reported. --watch-only leaves out the objects that there are already.
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,

    #[command(flatten)]
    labels: labels::Options,

    /// Shows one object, TYPE/NAME, and everything that it owns, directly or through others, as a
    /// tree.
    ///
    /// On a terminal the tree is drawn again in its place whenever it changes; elsewhere it is printed
    /// again, after an empty line. All types of the server are watched, in the object's namespace; those
    /// that cannot be are named.
    #[arg(long, conflicts_with_all = ["names", "exclude", "output", "diff", "path", "old", "watch_events", "watch_only"])]
    #[arg(conflicts_with_all = ["resync", "count", "until", "exec", "selector", "field_selector", "labels", "metrics"])]
    tree: bool,

    /// Serves metrics for Prometheus at `/metrics` of this address: `127.0.0.1:9090`, or `:0` for any port.
    ///
    /// The informers, and the requests to the server. Without a host, only this machine can reach them.
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address)]
    metrics: Option<SocketAddr>,

    /// No line of titles.
    #[arg(long)]
    no_headers: bool,

    /// When to colour.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: color::When,

    #[command(flatten)]
    ui: ui::Options,

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
  kubectl informer watch deploy/web svc/web --diff --path .status
  kubectl informer watch --tree deploy/web
  kubectl informer watch pods --watch-only --exec 'jq -r .key >>changed'
  kubectl informer watch pods/web-1 --until condition=Ready --timeout 2m && echo ready
  kubectl informer watch pods -A --metrics 127.0.0.1:9090

JSON events:
  type                ADD, UPDATE, DELETE or RESYNC
  time                when it arrived here: 2024-05-01T12:00:00.000Z
  kind                the kind of the object
  key                 NAMESPACE/NAME, or NAME
  resourceVersion     the version of the object
  oldResourceVersion  the version before, of updates and resyncs
  initial             whether the object was there when the watch began
  finalStateUnknown   whether the deletion itself was missed, so that the object may be older
  object              the object, as the server sent it
  diff                with --diff, of updates: a list of {op, path, old, new}, where op is add,
                      remove or replace
  old                 with --old, of updates: the object before";

/// Watches until stopped, or until the awaited condition is met.
pub(crate) async fn watch(options: Options) -> Result<Outcome, String> {
    options.output.check(&options.labels)?;
    let mut stop = Stop::new()?;
    if options.tree {
        return tree(&options, stop).await;
    }
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

async fn tree(options: &Options, stop: Stop) -> Result<Outcome, String> {
    let mut screen = Screen::new(true, options.color.on(&io::stderr()));
    let cluster = Cluster::connect_or_embedded(&options.connect).await?;
    if let Some(notice) = cluster.notice() {
        screen.note(&notice);
    }
    let request = tree::Request {
        root: &options.types,
        scope: &options.scope,
        headers: !options.no_headers,
        patience: PATIENCE,
        follow: Follow::Until(options.timeout),
    };
    tree::tree(request, cluster, screen, stop).await
}

/// An argument after the first.
#[derive(Clone, Debug)]
enum Word {
    /// `TYPE/NAME`
    Object(String),
    Name(Regex),
}

fn word(text: &str) -> Result<Word, String> {
    if text.contains('/') {
        return Ok(Word::Object(text.to_owned()));
    }
    Regex::new(text).map(Word::Name).map_err(|error| error.to_string())
}

impl Options {
    /// Returns the types, with commas, and the filters by name.
    fn subject(&self) -> Result<(String, Names), String> {
        const FORMS: &str = "give TYPE/NAME for each, or types and one expression: TYPE NAME-REGEX";
        let mut types = self.types.clone();
        let mut only: Option<Regex> = None;
        for word in &self.names {
            match word {
                Word::Object(word) if self.types.contains('/') => {
                    types = format!("{types},{word}");
                }
                Word::Object(word) => {
                    let message = format!("{word:?} is no expression for names\n{FORMS}");
                    return Err(message);
                }
                Word::Name(word) if self.types.contains('/') => {
                    let (word, before) = (word.as_str(), &self.types);
                    let message = format!("{word:?} is no TYPE/NAME, as {before:?} before it");
                    return Err(format!("{message}\n{FORMS}"));
                }
                Word::Name(word) => {
                    if let Some(first) = only.replace(word.clone()) {
                        let both = format!("'{first}|{word}'");
                        return Err(format!("one expression is expected: {both} matches either"));
                    }
                }
            }
        }
        Ok((types, Names { only, exclude: self.exclude.clone() }))
    }
}

fn output(text: &str) -> Result<Output, String> {
    text.parse()
}
