//! Shared informers against the embedded server: the numbered rules, and the main guarantees.

mod running;
#[allow(dead_code, reason = "shared with the other suites")]
mod scene;
#[allow(dead_code, reason = "shared with the other suites")]
mod script;

mod blocking;
mod cache;
mod faults;
mod handlers;
mod lifecycle;
mod liveness;
mod lives;
mod outages;
mod panics;
mod scenarios;
mod shown;
mod sources;
mod transforms;
mod unfit;
mod waiting;
mod warm;
