//! The informer on the real kube-apiserver. `cargo xtask real-kubernetes test` runs these tests; with a plain
//! `cargo test` they print that they did not run.
//!
//! Informers run in pairs, one that reads protobuf and one that reads JSON ([`mirror::Mirror`]).
//!
//! Each test ends in the same way: the cache, and the state that every handler has folded from its events, equal a
//! plain list ([`mirror::Mirror::settle`]). Time is real: what takes a minute on the server takes a minute here.

mod basics;
mod companions;
mod custom;
mod examples;
mod expiry;
mod fold;
mod mirror;
mod permission;
mod restore;
mod scene;
mod side;
mod silence;
mod tool;
mod truth;
mod writers;
