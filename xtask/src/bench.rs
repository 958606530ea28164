//! `cargo xtask bench`: the informer beside client-go and kube-rs, as processes that do the same work with the same
//! data on the same server in the same run.

mod floors;
mod keep;
mod measures;
mod options;
mod plot;
mod process;
mod programs;
mod queues;
mod report;
mod server;
mod show;
mod slope;
mod table;

use std::fs;
use std::process::Command;

use measures::{Measures, Size};
use options::{Options, USAGE};
use programs::Form;
use queues::{Load, queues};
use report::Circumstances;
use server::Server;
use slope::Slope;
use table::Table;

use crate::real_kubernetes::{root, say};

const FULL: Size = Size { rounds: 3, cached: 10_000, events: 10_000, paced: 2_000, rate: 500 };
const QUEUE: Load = Load { rounds: 5, keys: 100_000, delayed: 1_000_000 };
const QUICK_QUEUE: Load = Load { rounds: 3, keys: 100_000, delayed: 200_000 };
const QUICK: Size = Size { rounds: 3, cached: 2_000, events: 4_000, paced: 300, rate: 300 };
/// The real server takes longer to write than any program to read.
const REAL: Size = Size { rounds: 3, cached: 10_000, events: 2_000, paced: 500, rate: 100 };

/// The numbers of pods whose syncs show how time and memory grow.
const SYNCS: [usize; 3] = [1_000, 3_000, 10_000];
const LARGE: usize = 30_000;
/// Takes the most memory, and a minute for each program, so it runs once.
const LARGEST: usize = 100_000;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "help" || argument == "--help") {
        println!("{USAGE}");
        return Ok(());
    }
    let options = Options::of(arguments)?;
    if options.report {
        return write_report();
    }
    let mut forms = programs::build()?;
    if options.quick {
        forms.retain(|form| form.quick);
        return quick(&options, forms);
    }
    if options.real {
        real(&options, forms)?;
    } else {
        embedded(&options, forms)?;
    }
    write_report()
}

fn quick(options: &Options, forms: Vec<Form>) -> Result<(), String> {
    let go = forms.iter().any(Form::is_go);
    let mut server = Server::embedded()?;
    let mut measures = Measures { server: &mut server, forms, size: QUICK, day: today() };
    let mut tables = Vec::new();
    if options.wants("sync") {
        tables.push(measures.sync(QUICK.cached, QUICK.rounds)?);
    }
    if options.wants("events") {
        tables.push(measures.events()?);
    }
    if options.wants("latency") {
        tables.push(measures.latency()?);
    }
    if options.wants("reconcile") {
        tables.push(measures.reconcile()?);
    }
    if options.wants("relist") {
        tables.push(measures.relist(QUICK.cached, QUICK.rounds)?);
    }
    if options.wants("queue") {
        tables.push(queues(QUICK_QUEUE, go, &today())?);
    }
    if tables.is_empty() {
        return Err(format!("a quick run has none of {:?}", options.only));
    }
    for table in &tables {
        println!("{}", show::markdown(table));
    }
    let file = root().join("peers/bench/floors.toml");
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let short = floors::check(&floors::parse(&text)?, &tables)?;
    if short.is_empty() {
        say("no ratio is below what peers/bench/floors.toml says");
        return Ok(());
    }
    Err(format!("below what peers/bench/floors.toml says:\n{}", short.join("\n")))
}

/// Runs the measures on the embedded server, in order of a growing number of pods.
fn embedded(options: &Options, forms: Vec<Form>) -> Result<(), String> {
    let go = forms.iter().any(Form::is_go);
    done(options.wants("queue").then(|| queues(QUEUE, go, &today())))?;
    let mut server = Server::embedded()?;
    let mut measures = Measures { server: &mut server, forms, size: FULL, day: today() };
    let mut slope = Slope::default();
    let sync = options.wants("sync") || options.wants("slope");
    for pods in SYNCS {
        slope.add(pods, done(sync.then(|| measures.sync(pods, FULL.rounds)))?);
    }
    done(options.wants("events").then(|| measures.events()))?;
    done(options.wants("events-protobuf").then(|| measures.protobuf_events()))?;
    done(options.wants("latency").then(|| measures.latency()))?;
    done(options.wants("reconcile").then(|| measures.reconcile()))?;
    done(options.wants("reads").then(|| measures.reads()))?;
    if options.wants("handlers") {
        measures.handlers(&[1, 10, 100])?.iter().try_for_each(print)?;
    }
    done(options.wants("idle").then(|| measures.idle()))?;
    slope.add(LARGE, done(sync.then(|| measures.sync(LARGE, FULL.rounds)))?);
    done(options.wants("relist").then(|| measures.relist(LARGE, FULL.rounds)))?;
    done(options.wants("warm").then(|| measures.warm(LARGE, FULL.rounds)))?;
    slope.add(LARGEST, done(sync.then(|| measures.sync(LARGEST, 1)))?);
    slope.tables().iter().try_for_each(print)
}

fn real(options: &Options, forms: Vec<Form>) -> Result<(), String> {
    let mut server = Server::real()?;
    let mut measures = Measures { server: &mut server, forms, size: REAL, day: today() };
    let mut slope = Slope::default();
    let sync = options.wants("sync") || options.wants("slope");
    slope.add(REAL.cached, done(sync.then(|| measures.sync(REAL.cached, REAL.rounds)))?);
    done(options.wants("events").then(|| measures.events()))?;
    done(options.wants("latency").then(|| measures.latency()))?;
    done(options.wants("reconcile").then(|| measures.reconcile()))?;
    slope.add(LARGE, done(sync.then(|| measures.sync(LARGE, REAL.rounds)))?);
    slope.tables().iter().try_for_each(print)?;
    done(options.wants("fetch").then(|| measures.fetch(LARGE, REAL.rounds)))?;
    done(options.wants("warm").then(|| measures.warm(LARGE, REAL.rounds)))?;
    Ok(())
}

/// Stores, prints and returns a table, if it was measured.
fn done(measured: Option<Result<Table, String>>) -> Result<Option<Table>, String> {
    let table = measured.transpose()?;
    table.as_ref().map_or(Ok(()), print)?;
    Ok(table)
}

fn print(table: &Table) -> Result<(), String> {
    println!("{}", show::markdown(table));
    keep::keep(table)
}

fn write_report() -> Result<(), String> {
    let tables = keep::kept()?;
    let circumstances = Circumstances {
        machine: server::machine(),
        versions: versions(),
        plots: write_plots(&tables)?,
    };
    let file = root().join("BENCHMARKS.md");
    let document = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let section = report::section(&tables, &circumstances);
    write(&file, &report::replace(&document, &section))?;
    say("BENCHMARKS.md and docs/plots are written");
    Ok(())
}

/// Writes the plots, and returns their files and descriptions.
fn write_plots(tables: &[Table]) -> Result<Vec<(String, String)>, String> {
    let mut plots = Vec::new();
    let mut add = |name: &str, what: &str, svg: Option<String>| {
        let Some(svg) = svg else { return Ok(()) };
        let file = format!("docs/plots/{name}.svg");
        plots.push((file.clone(), what.to_owned()));
        write(&root().join(file), &svg)
    };
    for (id, metric, name) in [
        ("real-sync-30000", "RSS", "real-sync-memory"),
        ("real-sync-30000", "CPU", "real-sync-cpu"),
        ("real-sync-30000", "wall", "real-sync-wall"),
        ("real-events", "CPU for each event", "real-events-cpu"),
        ("embedded-events", "CPU for each event", "events-cpu"),
        ("embedded-relist-30000", "CPU", "relist-cpu"),
    ] {
        if let Some(table) = tables.iter().find(|table| table.id == id) {
            add(name, &format!("{}: {metric}", table.title), plot::bars(table, metric))?;
        }
    }
    let syncs: Vec<(usize, &Table)> = tables
        .iter()
        .filter_map(|table| Some((table.id.strip_prefix("embedded-sync-")?.parse().ok()?, table)))
        .collect();
    for (metric, name, what) in [
        ("RSS", "sync-memory", "Memory after the sync"),
        ("CPU", "sync-cpu", "CPU time of the sync"),
    ] {
        add(name, what, plot::growth(&format!("{what}, on the embedded server"), &syncs, metric))?;
    }
    Ok(plots)
}

fn write(file: &std::path::Path, text: &str) -> Result<(), String> {
    let directory = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(file, text));
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Returns the versions of everything that is compared.
fn versions() -> String {
    let root = root();
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let of_module = |file: &str, module: &str| {
        let text = read(file);
        let found = text.split_whitespace().skip_while(|word| *word != module).nth(1);
        found.unwrap_or("?").to_owned()
    };
    let lock = read("Cargo.lock");
    let kube = lock.split("name = \"kube-runtime\"\nversion = \"").nth(1);
    let kube = kube.and_then(|rest| rest.split('"').next()).unwrap_or("?");
    format!(
        "{}, {}, kube-runtime {kube}, client-go {}, controller-runtime {}, kube-apiserver {}",
        said("rustc", &["--version"]),
        said("go", &["env", "GOVERSION"]),
        of_module("peers/client-go/go.mod", "k8s.io/client-go"),
        of_module("peers/client-go/go.mod", "sigs.k8s.io/controller-runtime"),
        of_module("peers/kubernetes/go.mod", "k8s.io/kubernetes"),
    )
}

fn today() -> String {
    said("date", &["-u", "+%F"])
}

/// Returns the output of a command, empty if it does not exist.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
