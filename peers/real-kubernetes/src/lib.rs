//! The real kube-apiserver and etcd for tests, started on loopback with temporary certificates, tokens and data.
//! Tests can kill, pause, restart, compact and restore them.
//!
//! `cargo xtask real-kubernetes test` builds them and runs the tests that use this crate. Otherwise those tests print
//! that they did not run: see [`RealKubernetes::start`].
//!
//! ```no_run
//! use real_kubernetes::RealKubernetes;
//!
//! # #[tokio::main] async fn main() -> anyhow::Result<()> {
//! let Some(mut kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
//! let client = kubernetes.client().await?;
//! kubernetes.kill9()?;
//! kubernetes.start_again().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything ends when the value is dropped, and also if the test's process is killed: a small shell holds the other
//! end of a pipe, and kills the remaining processes when it closes.

mod programs;

mod leash;

mod process;

mod access;
mod certificates;

mod apiserver;
mod etcd;

mod gate;

mod cluster;

pub use cluster::{Builder, RealKubernetes};
pub use etcd::Snapshot;
pub use gate::Gate;
pub use programs::{kubectl, programs};
