//! What controllers need beside informers, against the embedded server: finalizers, status, events.

mod cut;
mod events;

mod finalizers;
#[path = "../reflector/log.rs"]
mod log;
mod logs;

mod scene;
mod status;
