//! Every fault, as a client observes it.

mod answers;
mod bodies;
mod connections;
mod control;
mod events;
mod objects;
mod presets;
mod rules;
mod state;
mod support;

use embedded_apiserver::{ApiServer, Fault};

const DOCUMENT: &str = include_str!("../../../../docs/faults.md");

#[test]
fn every_fault_is_documented() {
    let text = DOCUMENT;
    for name in Fault::all_names() {
        assert!(text.contains(&format!("| `{name}` |")), "{name} is not in docs/faults.md");
    }
}

/// Checks the quoted text in the document's commands.
#[tokio::test(start_paused = true)]
async fn every_documented_text_is_understood() {
    let server = ApiServer::start();
    let commands =
        DOCUMENT.lines().filter(|line| line.starts_with("echo") || line.contains("--fault"));
    let texts: Vec<&str> = commands.flat_map(|line| line.split('\'').skip(1).step_by(2)).collect();
    assert!(texts.len() > 10, "{texts:?}");
    for text in texts {
        server.faults().inject_text(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
    }
}
