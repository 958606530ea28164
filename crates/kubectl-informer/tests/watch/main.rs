//! `watch` as a process: what it prints, reports and returns.
#![cfg(unix)]

mod process;
#[path = "../shared/support.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod support;
mod terminal;

mod commands;
mod ends;
mod errors;
mod keys;
mod metrics;
mod outputs;
mod places;
mod proxies;
mod scopes;
mod screens;
mod survives;
