//! What controllers need beside informers, against the embedded server: finalizers, status, events.

mod cut;

mod finalizers;

mod scene;
mod status;
