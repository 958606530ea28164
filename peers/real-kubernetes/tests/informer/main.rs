//! The informer on the real kube-apiserver. `cargo xtask real-kubernetes test` runs these; a plain `cargo test` says
//! that it did not.
//!
//! Informers run in pairs, one that reads protobuf and one that reads JSON ([`mirror::Mirror`]).
//!
//! Each test ends in the same way: the cache, and what every handler has folded from what it was told, are what a
//! plain list says ([`mirror::Mirror::settle`]). What takes a minute in these takes a minute on the real server.

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
