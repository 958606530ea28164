//! The reflector against the embedded server: the numbered rules, checked by the requests that the
//! server received.

#[allow(dead_code, reason = "shared with the other suites")]
#[path = "../informer/scene.rs"]
mod scene;
#[allow(dead_code, reason = "shared with the other suites")]
#[path = "../informer/script.rs"]
mod script;

mod errors;
mod lists;
mod log;
mod logs;
mod reflecting;
mod streams;
mod watches;
