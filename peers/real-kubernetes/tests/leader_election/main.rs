//! A Lease is handed over between processes: between two of ours, and between ours and client-go's. They are stopped,
//! killed and paused; the Lease's own history says whether two led at once, and how long a hand-over took.
//!
//! Those with client-go, and those on the real kube-apiserver, are run by `cargo xtask real-kubernetes test`. A plain
//! `cargo test` runs those of two of ours on the embedded server, and says what it did not run.

mod candidate;
mod handover;
mod process;
mod records;
