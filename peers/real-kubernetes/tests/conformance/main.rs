//! The embedded API server against the real one.
//!
//! - [`behaviours`]: what both do, each a function over plain HTTP that runs on both. On the embedded server always.
//! - [`differential`]: the same requests to both, and the answers compared. What differs is fixed, or known with its
//!   reason ([`differential::known`]), from where `docs/differences.md` is written.
//!
//! `cargo xtask real-kubernetes test --test conformance` runs all of it; a plain `cargo test` says that the half on the
//! real server was not run.

mod behaviours;
mod differential;
mod http;
mod scene;
mod servers;
