//! `doctor`: checks whether informers would work on a cluster, and estimates their cost.

mod ask;
mod bookmarks;
mod report;
mod sample;
mod server;
mod types;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream};

use self::bookmarks::Bookmarks;
use self::report::Report;
use self::server::Server;
use self::types::{Checked, Streaming};
use crate::cells::lines;
use crate::connect::Cluster;
use crate::discovery::{Type, Types};
use crate::duration::duration;
use crate::outcome::Outcome;
use crate::screen::{Screen, written};
use crate::signals::Stop;
use crate::status::counted;
use crate::{chosen, connect};

/// Tells whether informers would work on a cluster, and what they would cost.
///
/// It lists and watches each type for a moment, as you: whether you may, whether the server streams
/// lists, how many objects there are, and how much memory a cache of them would take. It asks for one
/// page of objects at most, and changes nothing.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Options {
    /// The types, with commas or spaces; otherwise those of Kubernetes' own that are cached most.
    #[arg(value_name = "TYPE")]
    types: Vec<String>,

    /// All types that the server has.
    #[arg(long, conflicts_with = "types")]
    all: bool,

    /// How long to watch for bookmarks. Servers send about one a minute: 75s sees one.
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = duration)]
    watch_for: Duration,

    /// How to show it.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,

    /// One namespace; otherwise all of them, as most controllers would.
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Which objects")]
    namespace: Option<String>,

    /// All namespaces, which is also what is done otherwise.
    #[arg(short = 'A', long, conflicts_with = "namespace", help_heading = "Which objects")]
    all_namespaces: bool,

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
  kubectl informer doctor
  kubectl informer doctor pods,secrets -n shop
  kubectl informer doctor pods --as system:serviceaccount:shop:controller
  kubectl informer doctor --all --for 75s -o json

Exit codes: 0 if all types can be listed and watched, 1 if not, 2 on an error.";

/// The types that are cached most often, of which those that exist are checked.
const USUAL: [&str; 16] = [
    "pods",
    "nodes",
    "namespaces",
    "services",
    "endpointslices.discovery.k8s.io",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "events",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "ingresses.networking.k8s.io",
    "leases.coordination.k8s.io",
];

/// The number of concurrent requests: enough to hide the round trip, too few to burden the server.
const AT_ONCE: usize = 6;

/// Runs the checks once. The error is a message for the user.
pub(crate) async fn doctor(options: Options) -> Result<Outcome, String> {
    let mut stop = Stop::new()?;
    let mut screen = Screen::new(true, crate::color::When::Auto.on(&io::stderr()));
    let cluster = Cluster::connect(&options.connect).await?;
    if let Some(notice) = cluster.notice() {
        screen.note(&notice);
    }
    let report = tokio::select! {
        biased;
        () = stop.requested() => return Ok(Outcome::Unmet),
        report = examine(&options, &cluster, &mut screen) => report?,
    };
    screen.end();
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
    let text = match options.output {
        Format::Text => lines(&report.text(width)?),
        Format::Json => report.json()?,
    };
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    let well = report.types.iter().all(Checked::is_well);
    Ok(if well { Outcome::Met } else { Outcome::Unmet })
}

async fn examine<'a>(
    options: &'a Options,
    cluster: &'a Cluster,
    screen: &mut Screen,
) -> Result<Report<'a>, String> {
    let types = chosen::types(cluster, chosen::PATIENCE).await?;
    let types = chosen(options, &types)?;
    let namespace = options.namespace.as_deref();
    // First, while the server is not busy with other requests.
    let server = Server::ask(cluster)
        .await
        .map_err(|error| format!("{} does not say what it is: {error}", cluster.place))?;
    let bookmarks = Bookmarks::watch(cluster, &types, namespace, options.watch_for);
    let checked = check(cluster, &types, namespace, screen);
    let (bookmarks, checked) = tokio::join!(bookmarks, checked);
    Ok(Report { cluster, namespace, server, bookmarks, types: checked })
}

async fn check(
    cluster: &Cluster,
    types: &[Type],
    namespace: Option<&str>,
    screen: &mut Screen,
) -> Vec<Checked> {
    let streaming = Streaming::default();
    let checks = types.iter().map(|of| types::check(cluster, of, namespace, &streaming));
    let mut checks = stream::iter(checks).buffered(AT_ONCE);
    let mut checked = Vec::new();
    let all = counted(types.len() as u64, "type");
    let status = |screen: &mut Screen, text: String| screen.status(vec![(text, None)]);
    status(screen, format!("◌ looking at {all}"));
    while let Some(next) = checks.next().await {
        checked.push(next);
        status(screen, format!("◌ {} of {all} looked at", checked.len()));
    }
    status(screen, "◌ waiting for bookmarks".to_owned());
    checked
}

/// Returns the requested types without duplicates.
fn chosen(options: &Options, types: &Types) -> Result<Vec<Type>, String> {
    let mut chosen: Vec<Type> = Vec::new();
    let mut add = |of: &Type| {
        if !chosen.iter().any(|each| (&each.group, &each.plural) == (&of.group, &of.plural)) {
            chosen.push(of.clone());
        }
    };
    if options.all {
        types.0.iter().filter(|of| of.is_watchable()).for_each(&mut add);
    } else if options.types.is_empty() {
        let usual = USUAL.iter().filter_map(|word| types.find(word).ok());
        usual.flatten().for_each(&mut add);
    }
    for word in options.types.iter().flat_map(|words| words.split(',')) {
        if !word.is_empty() {
            types.find(word)?.into_iter().for_each(&mut add);
        }
    }
    if chosen.is_empty() {
        return Err("there is no type to look at: name one, such as pods".to_owned());
    }
    Ok(chosen)
}
