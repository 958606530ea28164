//! `get`: prints the contents of a synced cache.

mod by;
mod list;
mod sort;

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use kube_informer::{Object, Untyped};

use self::by::By;
use self::list::{Items, value};
use self::sort::SortBy;
use crate::caches::{Cache, Caches};
use crate::chosen::{Chosen, choose};
use crate::columns::columns;
use crate::connect::Cluster;
use crate::discovery::Type;
use crate::duration::duration;
use crate::format::Output;
use crate::outcome::Outcome;
use crate::screen::{Screen, written};
use crate::signals::Stop;
use crate::status::counted;
use crate::table::Table;
use crate::tree::{self, Follow};
use crate::{connect, labels, scope};

/// Prints objects from the cache of an informer that has all of them.
///
/// What it prints is what `kubectl get` prints, for the types that most people use. It is read as
/// programs that use informers read: listed once, then looked up by name or through an index in
/// memory.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Options {
    /// The types, with commas: plurals, singulars or short names, `pods,deploy`; or one object,
    /// `pods/web-1`.
    #[arg(value_name = "TYPE[,TYPE…]")]
    types: String,

    /// The names of objects; all of them if there are none. After `TYPE/NAME` come more of these.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Only objects with this value in a field, through an index by that field:
    /// `spec.nodeName=worker-1`, `spec.containers[*].image=nginx`. Without a value: which there are,
    /// and how many objects have each.
    #[arg(long, value_name = "FIELD[=VALUE]", conflicts_with_all = ["selector", "field_selector"])]
    by: Option<By>,

    /// Sorts the objects by this field, as kubectl does: `.metadata.creationTimestamp`,
    /// `{.status.startTime}`. Numbers, quantities and digits in names are sorted by their value.
    #[arg(long, value_name = "JSONPATH")]
    sort_by: Option<SortBy>,

    /// Prints one object, TYPE/NAME, and everything that it owns, directly or through others, as a
    /// tree. `watch --tree` follows it.
    #[arg(long, conflicts_with_all = ["names", "by", "sort_by", "output", "stats", "labels"])]
    #[arg(conflicts_with_all = ["selector", "field_selector"])]
    tree: bool,

    /// Gives up when the objects are not all there after this time, with 2.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    scope: scope::Options,

    /// How to show them: text, wide, json, yaml or name; or as for kubectl jsonpath=…,
    /// custom-columns=… and template=…, of the object that was named or of a list of all.
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = output)]
    #[arg(help_heading = "Output")]
    output: Output,

    #[command(flatten)]
    labels: labels::Options,

    /// No line of titles.
    #[arg(long, help_heading = "Output")]
    no_headers: bool,

    /// A flag of kubectl's. The error names the command that does it here.
    #[arg(short, long, hide = true)]
    watch: bool,

    /// Says what the cache took: objects, memory, time; on standard error.
    #[arg(long, help_heading = "Output")]
    stats: bool,

    #[command(flatten)]
    connect: connect::Options,
}

const EXAMPLES: &str = "\
Examples:
  kubectl informer get pods
  kubectl informer get deploy,svc -n shop -l app=web -o wide
  kubectl informer get pods web-1 web-2 -o yaml
  kubectl informer get pods -L app --sort-by .metadata.creationTimestamp
  kubectl informer get pods -o jsonpath='{.items[*].metadata.name}'
  kubectl informer get pods -A --by spec.nodeName=worker-1     # through an index
  kubectl informer get pods -A --by spec.nodeName              # how many on each node
  kubectl informer get --tree deploy/web                       # and everything that it owns
  kubectl informer get pods -A --stats -o name | wc -l         # what caching them takes

Exit codes: 0, also if there are no objects; 1 if one that was named is not there; 2 on an error.";

/// A type and the names of the requested objects. Without names, all are requested.
struct Wanted {
    chosen: Chosen,
    names: Vec<String>,
}

/// The objects found of a type.
struct Found {
    objects: Vec<Object<Untyped>>,
    /// The requested names that do not exist.
    missing: Vec<String>,
}

/// Prints the requested objects once. The error is a message for the user.
pub(crate) async fn get(options: Options) -> Result<Outcome, String> {
    if options.watch {
        let types = &options.types;
        return Err(format!("get looks once: `kubectl informer watch {types}` goes on looking"));
    }
    options.output.check(&options.labels)?;
    let mut stop = Stop::new()?;
    let mut screen = Screen::new(true, crate::color::When::Auto.on(&io::stderr()));
    let cluster = Cluster::connect(&options.connect).await?;
    if let Some(notice) = cluster.notice() {
        screen.note(&notice);
    }
    if options.tree {
        let request = tree::Request {
            root: &options.types,
            scope: &options.scope,
            headers: !options.no_headers,
            patience: options.timeout,
            follow: Follow::Once,
        };
        return tree::tree(request, cluster, screen, stop).await;
    }
    let wanted = tokio::select! {
        biased;
        () = stop.requested() => return Ok(Outcome::Unmet),
        wanted = wanted(&options, &cluster) => wanted?,
    };
    let chosen = wanted.iter().map(|each| &each.chosen);
    let mut caches = Caches::new(chosen, &cluster, &options.scope)?;
    let indexes: Vec<_> = match &options.by {
        Some(by) => {
            caches.all.iter().map(|cache| by.index(&cache.informer)).collect::<Result<_, _>>()?
        }
        None => Vec::new(),
    };
    caches.start();
    if !caches.synced(&cluster, options.timeout, &mut screen, &mut stop).await? {
        return Ok(Outcome::Unmet);
    }
    screen.end();
    if options.stats {
        screen.note(&stats(&caches));
    }
    let doubt = options.by.as_ref().and_then(|by| by.doubt(&caches.all, &indexes));
    if let Some(doubt) = &doubt {
        screen.note(doubt);
    }
    let mut out = BufWriter::with_capacity(64 * 1024, io::stdout());
    if let Some(by) = options.by.as_ref().filter(|by| by.value.is_none()) {
        let counts = By::counts(&caches.all, &indexes);
        let text = by.print(&counts, &options.output, !options.no_headers)?;
        return written(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }
    let mut found: Vec<Found> = Vec::new();
    for (place, (want, cache)) in wanted.iter().zip(&caches.all).enumerate() {
        found.push(match (&options.by, indexes.get(place)) {
            (Some(By { value: Some(value), .. }), Some(index)) => {
                Found { objects: sorted(index.get(value).into_vec()), missing: Vec::new() }
            }
            _ => look_up(want, cache, &caches.namespaces),
        });
    }
    let printed = print(&mut out, &options, &cluster, &caches, &wanted, &found).await?;
    let printed = written(printed.and_then(|()| out.flush()))?;
    if doubt.is_some() {
        return Ok(printed);
    }
    Ok(tell(&mut screen, &options, &caches, &found).unwrap_or(printed))
}

async fn wanted(options: &Options, cluster: &Cluster) -> Result<Vec<Wanted>, String> {
    let (types, names) = if options.types.contains('/') {
        if let Some(other) = options.names.iter().find(|word| !word.contains('/')) {
            return Err(format!(
                "{other:?} is no TYPE/NAME, as {:?} before it\n\
                 give TYPE/NAME for each, or one type and then names: TYPE NAME NAME",
                options.types
            ));
        }
        let words: Vec<_> =
            std::iter::once(&options.types).chain(&options.names).cloned().collect();
        (words.join(","), &[][..])
    } else {
        (options.types.clone(), options.names.as_slice())
    };
    if let Some(name) = names.iter().find(|name| name.contains('/')) {
        return Err(format!(
            "{name:?} is no name: after a type come names alone\n\
             give TYPE/NAME for each, or one type and then names: TYPE NAME NAME"
        ));
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for chosen in choose(&types, cluster, options.timeout).await? {
        let names = chosen.name.iter().chain(names).cloned();
        match wanted.iter_mut().find(|other| other.chosen.of == chosen.of) {
            Some(other) => other.names.extend(names),
            None => wanted.push(Wanted { names: names.collect(), chosen }),
        }
    }
    for each in &mut wanted {
        // The server selects a single name; several names are looked up in a cache of all objects.
        each.chosen.name =
            Some(&each.names).filter(|names| names.len() == 1).map(|it| it[0].clone());
    }
    if wanted.iter().any(|each| !each.names.is_empty())
        && (options.by.is_some() || options.scope.selects())
    {
        return Err("names and selectors do not go together: give one or the other".to_owned());
    }
    Ok(wanted)
}

fn look_up(want: &Wanted, cache: &Cache, namespaces: &[String]) -> Found {
    let lister = cache.informer.lister();
    let mut found = Found { objects: Vec::new(), missing: Vec::new() };
    if want.names.is_empty() {
        found.objects = sorted(lister.list().into_vec());
        return found;
    }
    // In one namespace, a name is unique. In several, it may occur more than once.
    let one = match namespaces {
        [one] if want.chosen.of.namespaced => Some(one.as_str()),
        _ => None,
    };
    let all = if one.is_some() { Vec::new() } else { sorted(lister.list().into_vec()) };
    for name in &want.names {
        let objects: Vec<_> = match one {
            Some(namespace) => lister.namespace(namespace).get(name).into_iter().collect(),
            None => all.iter().filter(|object| object.name() == name).cloned().collect(),
        };
        if objects.is_empty() {
            found.missing.push(name.clone());
        }
        found.objects.extend(objects);
    }
    found
}

/// Sorts objects in the order of the server's lists.
fn sorted(mut objects: Vec<Object<Untyped>>) -> Vec<Object<Untyped>> {
    objects.sort_by(|a, b| a.key().as_str().cmp(b.key().as_str()));
    objects
}

async fn print(
    out: &mut impl Write,
    options: &Options,
    cluster: &Cluster,
    caches: &Caches,
    wanted: &[Wanted],
    found: &[Found],
) -> Result<io::Result<()>, String> {
    let types: Vec<&Type> = caches.all.iter().map(|cache| &*cache.of).collect();
    let pairs = types.iter().zip(found);
    let mut items =
        Items(pairs.flat_map(|(of, each)| each.objects.iter().map(|it| (*of, it))).collect());
    // A single named object is printed as itself, everything else as a list.
    let single = matches!(wanted, [only] if only.names.len() == 1) && items.0.len() <= 1;
    let tables = matches!(options.output, Output::Text { .. });
    // As in kubectl, each table is sorted by itself, and a list across its types.
    if let Some(by) = options.sort_by.as_ref().filter(|_| !tables && !single) {
        items.0 = by.sort(items.0, |(of, object)| value(of, object))?;
    }
    match &options.output {
        Output::Text { wide } => {
            let now = Timestamp::now();
            let mut first = true;
            for (of, each) in types.iter().zip(found).filter(|(_, each)| !each.objects.is_empty()) {
                let columns = columns(&cluster.client, of).await;
                let namespaces = of.namespaced && caches.namespaces.len() != 1;
                let mut table = Table::new(&columns, &options.labels, *wide, namespaces);
                let kind = (types.len() > 1).then(|| of.singular_name());
                let mut objects: Vec<_> = each.objects.iter().collect();
                if let Some(by) = &options.sort_by {
                    objects = by.sort(objects, |object| value(of, object))?;
                }
                for object in objects {
                    table.row(&columns, object, kind.as_deref(), &value(of, object)?, now);
                }
                let gap = if std::mem::take(&mut first) { Ok(()) } else { out.write_all(b"\n") };
                if let Err(error) = gap.and_then(|()| table.write(out, !options.no_headers)) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        }
        Output::Name => Ok(items.0.iter().try_for_each(|(of, object)| {
            writeln!(out, "{}/{}", of.singular_name(), object.name())
        })),
        Output::Json => items.json(out, single),
        Output::Yaml => items.yaml(out, single),
        Output::Template(template) => {
            items.one_text(out, single, |value| template.render(value, &serde_json::Value::Null))
        }
        Output::JsonPath(path) => items.one_text(out, single, |value| path.render(value)),
        Output::Columns(columns) => {
            let names: Vec<_> = columns.names().collect();
            let mut table = Table::plain(&names);
            for (of, object) in &items.0 {
                table.push(&columns.row(&value(of, object)?));
            }
            Ok(table.write(out, !options.no_headers))
        }
    }
}

/// Prints kubectl's message to standard error if something was not found.
fn tell(
    screen: &mut Screen,
    options: &Options,
    caches: &Caches,
    found: &[Found],
) -> Option<Outcome> {
    let mut missing = false;
    for (cache, each) in caches.all.iter().zip(found) {
        for name in &each.missing {
            missing = true;
            let of = cache.of.name();
            screen.note(&format!("Error from server (NotFound): {of} {name:?} not found"));
        }
    }
    if missing {
        return Some(Outcome::Unmet);
    }
    let empty = found.iter().all(|each| each.objects.is_empty());
    if empty && matches!(options.output, Output::Text { .. }) {
        let namespaced = caches.all.iter().any(|cache| cache.of.namespaced);
        let within = match caches.namespaces.as_slice() {
            [one] if namespaced => format!(" in {one} namespace."),
            _ => String::new(),
        };
        screen.note(&format!("No resources found{within}"));
    }
    None
}

fn stats(caches: &Caches) -> String {
    let each = caches.all.iter().map(|cache| {
        let status = cache.informer.status();
        let (name, objects) = (cache.of.name(), counted(status.objects as u64, "object"));
        let (bytes, version) = (crate::plain::bytes(status.bytes as u64), status.resource_version);
        format!("{name}: {objects}, {bytes} in the cache, version {version}")
    });
    let each: Vec<_> = each.collect();
    format!("{}; synced in {:.2} s", each.join("; "), caches.age().as_secs_f64())
}

fn output(text: &str) -> Result<Output, String> {
    text.parse()
}
