//! Finalizers, status and events, against the embedded server.

mod cut;
mod events;

mod finalizers;
#[path = "../reflector/log.rs"]
mod log;
mod logs;

mod scene;
mod status;
