//! The parts that the programs of `cargo xtask bench` share: data, measurements and commands. Each program is a
//! process of its own:
//!
//! - `bench-server` serves the pods (or fills a real API server with them) and changes them,
//! - `bench-ours` and `bench-kube-rs` cache them, and so does the Go program in `peers/client-go`,
//! - `bench-fetch` downloads and discards them, as the lower bound that server and network set,
//! - `bench-controller-ours` and `bench-controller-kube-rs` reconcile them, as variants of the Go program do.
//!
//! They read commands from standard input, one per line, and answer each with one line of JSON. See [`talk`] for the
//! commands of a client.

pub mod data;

pub mod usage;

pub mod arguments;
pub mod talk;

pub mod seen;

pub mod reconciling;

#[path = "../../../crates/kube-informer/benches/pods.rs"]
#[allow(dead_code, reason = "shared with the benchmarks in process")]
mod pods;
