//! The embedded API server compared with the real one.
//!
//! - [`behaviours`]: functions over plain HTTP that must pass on both servers. They always run on the embedded one.
//! - [`differential`]: the same requests to both servers, with the responses compared. Differences are fixed, or
//!   listed with their reason ([`differential::known`]), from which `docs/differences.md` is generated.
//!
//! `cargo xtask real-kubernetes test --test conformance` runs everything; a plain `cargo test` prints that the tests
//! on the real server did not run.

mod behaviours;
mod differential;
mod http;
mod scene;
mod servers;
