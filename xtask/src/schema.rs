//! `cargo xtask schema`: writes `crates/kube-schema/schema.txt` from the Go modules that define Kubernetes' types.
//!
//! `generated.proto` has numbers and types. The Go structs have the JSON names, and show which fields are pointers:
//! Go writes all others to protobuf even if they are zero.

mod golang;
mod join;
mod modules;
mod proto;
mod text;

use std::fs;
use std::path::PathBuf;

use crate::real_kubernetes::{root, say};

/// The modules' version: 0.37.2 is that of Kubernetes 1.37.2. The minor version is that of k8s-openapi's newest
/// feature, which `.cargo/config.toml` names.
const VERSION: &str = "v0.37.2";

const USAGE: &str = "\
usage: cargo xtask schema [--check]

  writes crates/kube-schema/schema.txt from k8s.io/api and its companions, which Go fetches;
  with --check: only says whether the file is what would be written";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words {
        [] => {
            let file = file();
            let text = generate()?;
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
            say(&format!("wrote {}", file.display()));
            Ok(())
        }
        ["--check"] => check(),
        _ => Err(USAGE.to_owned()),
    }
}

/// Fails if the checked-in file differs from the modules.
pub(crate) fn check() -> Result<(), String> {
    let file = file();
    let found =
        fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let wanted = generate()?;
    let differs = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    match differs {
        _ if found == wanted => Ok(()),
        Some(line) => Err(stale(line + 1)),
        None => Err(stale(found.lines().count().min(wanted.lines().count()) + 1)),
    }
}

fn stale(line: usize) -> String {
    format!("crates/kube-schema/schema.txt is stale from line {line} on: run `cargo xtask schema`")
}

/// Returns the directories of Go's pairs of JSON and protobuf, which tests compare with ours.
pub(crate) fn fixtures() -> Result<Vec<PathBuf>, String> {
    let folders = [
        ("k8s.io/api", "testdata/HEAD"),
        ("k8s.io/apiextensions-apiserver", "pkg/apis/testdata/HEAD"),
    ];
    folders
        .into_iter()
        .map(|(module, folder)| Ok(modules::download(module, VERSION)?.join(folder)))
        .collect()
}

fn file() -> PathBuf {
    root().join("crates/kube-schema/schema.txt")
}

fn generate() -> Result<String, String> {
    let packages = modules::packages(VERSION)?;
    let schema = join::schema(&packages)?;
    Ok(text::write(&schema, VERSION))
}
