//! `docs/differences.md`, from what is known.

use std::path::Path;
use std::{env, fs};

use anyhow::{Context as _, Result};

use super::{ALL, Known};
use crate::differential::script::TOPICS;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md");

/// Set, the document is written instead of compared.
const WRITE: &str = "WRITE_DIFFERENCES";

const BEGINNING: &str = "\
# Where the embedded server differs from the real one

`peers/real-kubernetes/tests/conformance` sends the same requests to the embedded server and to kube-apiserver 1.36, and compares
codes, headers that matter, reasons, messages, details and all that is in the answers, watches included. This is all that is different, for
the requests that it sends: a difference that is not listed fails the test, and so does a line here that is no longer true.

This file is written by that test: `WRITE_DIFFERENCES=1 cargo test -p real-kubernetes --test conformance document` after a change
of `differential/known`.
";

fn document() -> String {
    let mut text = BEGINNING.to_owned();
    for (title, known) in ALL {
        text.push_str(&format!("\n## {title}\n\n| What | Why | Seen at |\n| --- | --- | --- |\n"));
        text.extend(known.iter().map(row));
    }
    text
}

fn row(known: &Known) -> String {
    let mut requests: Vec<_> = known.places.iter().map(|(request, _)| *request).collect();
    requests.dedup();
    let requests: Vec<_> = requests.iter().map(|request| format!("`{request}`")).collect();
    format!("| {} | {} | {} |\n", known.what, known.why, requests.join(", "))
}

#[test]
fn the_document_says_what_is_known() -> Result<()> {
    let (file, wanted) = (Path::new(FILE), document());
    if env::var_os(WRITE).is_some() {
        return fs::write(file, wanted).with_context(|| format!("cannot write {FILE}"));
    }
    let found = fs::read_to_string(file).with_context(|| format!("cannot read {FILE}"))?;
    let how =
        format!("`{WRITE}=1 cargo test -p real-kubernetes --test conformance document` writes it");
    assert!(found == wanted, "docs/differences.md is not what is known: {how}");
    Ok(())
}

#[test]
fn every_difference_is_seen_somewhere() {
    for known in ALL.iter().flat_map(|(_, known)| *known) {
        assert!(!known.places.is_empty(), "{}", known.what);
        for (request, _) in known.places {
            let topic = request.split('/').next().unwrap_or_default();
            assert!(TOPICS.contains(&topic), "nothing is asked about {request}");
        }
    }
}
