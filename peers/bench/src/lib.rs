//! What the programs of `cargo xtask bench` have in common: the data, the measuring, and how they are told what to
//! do. Each is a process of its own:
//!
//! - `bench-server` serves the pods (or fills a real API server with them) and changes them,
//! - `bench-ours` and `bench-kube-rs` cache them, and so does the Go program in `peers/client-go`,
//! - `bench-fetch` gets and discards them, to show what the server and the network allow,
//! - `bench-controller-ours` and `bench-controller-kube-rs` reconcile them, as the Go program does in other forms.
//!
//! They are told what to do in lines on standard input, and answer each with one line of JSON. See
//! [`talk`] for what a client is told.

pub mod data;

pub mod usage;

pub mod arguments;
pub mod talk;

pub mod seen;

pub mod reconciling;

#[path = "../../../crates/kube-informer/benches/pods.rs"]
#[allow(dead_code, reason = "shared with the benchmarks in process")]
mod pods;
