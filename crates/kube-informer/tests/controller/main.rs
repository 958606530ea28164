//! Controllers on the embedded server.

mod consistency;
mod failures;
mod leader;
mod scene;
mod stops;
mod triggers;
