//! `kube-schema` compared with Go: every built-in kind with every field set, as the JSON and the protobuf that Go
//! wrote.
//!
//! `k8s.io/api` and `k8s.io/apiextensions-apiserver` are published with such pairs.
//! `cargo xtask real-kubernetes test` sets their location; a plain `cargo test` skips the tests, and prints that.

mod types;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use kube_schema::Envelope;
use serde_json::Value;

/// The variable with the directories of the pairs, separated as in PATH.
const FIXTURES: &str = "KUBERNETES_FIXTURES";

struct Pair {
    name: String,
    json: Value,
    protobuf: Vec<u8>,
}

/// Returns all pairs, or `None` if they are not available.
fn pairs() -> Option<Vec<Pair>> {
    let Some(directories) = env::var_os(FIXTURES) else {
        eprintln!(
            "{FIXTURES} is not set: protobuf was NOT compared with Go's; `cargo xtask real-kubernetes test` does it"
        );
        return None;
    };
    let mut found = Vec::new();
    for directory in env::split_paths(&directories) {
        let files = fs::read_dir(&directory).expect("the directory is readable");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension() == Some(OsStr::new("pb"))) {
            let json = fs::read(file.with_extension("json")).expect("each has its JSON");
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            // Not a kind, but the envelope of watch events.
            if name.ends_with("WatchEvent") {
                continue;
            }
            found.push(Pair {
                name,
                json: serde_json::from_slice(&json).expect("JSON"),
                protobuf: fs::read(file).expect("the file is readable"),
            });
        }
    }
    assert!(found.len() > 190, "only {} pairs in {}", found.len(), directories.display());
    Some(found)
}

/// Runs a check on all pairs, and reports all failures together.
fn each(check: impl Fn(&Pair) -> Result<(), String>) {
    let Some(pairs) = pairs() else { return };
    let failures: Vec<String> = pairs
        .iter()
        .filter_map(|pair| Some(format!("{}: {}", pair.name, check(pair).err()?)))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), pairs.len(), failures.join("\n"));
}

/// Returns the first place where two values differ.
fn difference(path: &str, ours: &Value, go: &Value) -> Option<String> {
    match (ours, go) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let absent = Value::String("(absent)".to_owned());
                let (a, b) = (a.get(name).unwrap_or(&absent), b.get(name).unwrap_or(&absent));
                difference(&format!("{path}.{name}"), a, b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let items = a.iter().zip(b).enumerate();
            items.into_iter().find_map(|(at, (a, b))| difference(&format!("{path}[{at}]"), a, b))
        }
        _ => (ours != go).then(|| format!("{path}: ours {ours}, Go's {go}")),
    }
}

fn same(ours: &Value, go: &Value) -> Result<(), String> {
    difference("", ours, go).map_or(Ok(()), Err)
}

#[test]
fn protobuf_reads_as_the_same_json() {
    each(|pair| {
        let ours: Value =
            kube_schema::from_slice(&pair.protobuf).map_err(|error| error.to_string())?;
        same(&ours, &pair.json)
    });
}

#[test]
fn json_is_written_as_go_writes_it() {
    each(|pair| {
        let ours = kube_schema::to_vec(&pair.json).map_err(|error| error.to_string())?;
        if ours == pair.protobuf {
            return Ok(());
        }
        // The members of embedded JSON are in a different order; everything else is identical to the byte.
        let read = |bytes: &[u8]| {
            kube_schema::from_slice::<Value>(bytes).map_err(|error| error.to_string())
        };
        same(&read(&ours)?, &read(&pair.protobuf)?)?;
        let lengths = (ours.len(), pair.protobuf.len());
        if lengths.0 == lengths.1 {
            Ok(())
        } else {
            Err(format!("ours and Go's are {lengths:?} bytes"))
        }
    });
}

#[test]
fn k8s_openapi_types_read_both_alike() {
    let typed: Vec<_> = types::TYPES.iter().map(|typed| typed()).collect();
    each(|pair| {
        let envelope = Envelope::parse(&pair.protobuf).map_err(|error| error.to_string())?;
        let (api_version, kind) = (envelope.api_version, envelope.kind);
        match typed.iter().find(|typed| (typed.api_version, typed.kind) == (api_version, kind)) {
            Some(typed) => (typed.agree)(&pair.json, &pair.protobuf),
            None => Ok(()),
        }
    });
}
