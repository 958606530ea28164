//! Factories against the embedded server: sharing, start and stop.

#[allow(dead_code, reason = "shared with the other suites")]
#[path = "../informer/scene.rs"]
mod scene;

mod custom;
mod ends;
mod lifecycle;
mod resync;
mod scope;
mod settings;
mod sharing;
