//! A Kubernetes API server as a library.

mod access;
mod body;
#[cfg(feature = "client")]
mod client;
mod clock;
mod connection;
mod defaults;
mod direct;
mod discovery;
mod faults;
mod filter;
mod gzip;
mod health;
mod kinds;
mod lifecycle;
pub mod limits;
mod matcher;
mod negotiate;
mod net;
mod object;
mod openapi;
mod pods;
mod print;
mod quote;
mod record;
mod request;
mod rest;
pub mod selector;
mod server;
mod service;
mod status;
mod store;
mod validate;
mod view;

pub use access::{Access, Denial, DenialId};
pub use body::Body;
pub use direct::LoadError;
pub use faults::{Fault, FaultId, FaultRule, Faults, FiredFault};
pub use net::{Listener, Listening};
pub use pods::PodDelays;
pub use record::{Delivery, RequestRecord};
pub use request::Verb;
pub use server::{ApiServer, Builder};
pub use service::ApiService;
pub use status::{Cause, Details, Status};
pub use store::{EventType, Key, Snapshot, Store};
