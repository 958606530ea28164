//! A Lease is handed over between processes: between two of ours, and between ours and client-go's. They are stopped,
//! killed and paused; the history of the Lease shows whether two led at once, and how long a handover took.
//!
//! The tests with client-go or the real kube-apiserver are run by `cargo xtask real-kubernetes test`. A plain
//! `cargo test` runs those with two of our candidates on the embedded server, and prints what it did not run.

mod candidate;
mod handover;
mod process;
mod records;
