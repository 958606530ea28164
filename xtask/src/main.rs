//! Developer tasks of this repository: `cargo xtask …`. One module per task.

mod bench;
mod dist;
mod package;
mod page;
mod picture;
mod real_kubernetes;
mod schema;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  bench [--quick] [--real] [--only NAME]… [--report]
            compares the informer with client-go and kube-rs, and writes the numbers into BENCHMARKS.md

  dist [--address URL] [--manifest-only | --quick]
            makes the files of a release of the tool: archive, checksums, manual pages, completion, krew manifest

  package
            packages the crates that are published, and checks them and the README's program outside of the workspace

  page [--picture]
            tests the debug page in a headless Chromium, and writes pictures of it to target/page;
            with --picture also docs/debug-page.png, the README's

  picture [--seconds N] [--columns N] [--rows N] [--typed TEXT] [--output FILE] [-- COMMAND…]
            runs a command in a terminal and draws what it shows into docs/picture.svg;
            without a command: the tool, watching pods of the embedded cluster

  real-kubernetes build | up | test
            builds the real kube-apiserver, etcd and kubectl once, starts them, tests on them

  schema [--check]
            writes crates/kube-schema/schema.txt, Kubernetes' types, from the Go modules that define them";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((task, rest)) if task == "bench" => bench::run(rest),
        Some((task, rest)) if task == "dist" => dist::run(rest),
        Some((task, rest)) if task == "package" => package::run(rest),
        Some((task, rest)) if task == "page" => page::run(rest),
        Some((task, rest)) if task == "picture" => picture::run(rest),
        Some((task, rest)) if task == "real-kubernetes" => real_kubernetes::run(rest),
        Some((task, rest)) if task == "schema" => schema::run(rest),
        Some((task, _)) if task == "help" || task == "--help" => {
            println!("{USAGE}");
            Ok(())
        }
        Some((task, _)) => Err(format!("there is no task {task:?}\n\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
