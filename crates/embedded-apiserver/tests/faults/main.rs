//! Every fault, as a client sees it.

mod answers;
mod bodies;
mod connections;
mod events;
mod objects;
mod presets;
mod rules;
mod state;
mod support;

use embedded_apiserver::Fault;

#[test]
fn every_fault_is_documented() {
    let text = include_str!("../../../../docs/faults.md");
    for name in Fault::all_names() {
        assert!(text.contains(&format!("| `{name}` |")), "{name} is not in docs/faults.md");
    }
}
