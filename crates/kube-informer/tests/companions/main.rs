//! What controllers need beside informers, against the embedded server: finalizers, status, events.

mod cut;
mod events;

mod finalizers;
mod logs;

mod scene;
mod status;
