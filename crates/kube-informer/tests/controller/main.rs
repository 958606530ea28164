//! Controllers on the embedded server.

mod consistency;
mod failures;
mod scene;
mod stops;
mod triggers;
