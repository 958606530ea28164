//! A Kubernetes API server as a library. It needs no binaries and no Docker, starts in under a
//! millisecond, and implements the parts of the protocol that fakes get wrong: resource versions,
//! watches, paging and expiry.
//!
//! ```
//! use embedded_apiserver::ApiServer;
//! use futures::{StreamExt, TryStreamExt};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, ListParams, WatchEvent, WatchParams};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::start();
//! let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
//!
//! // List, then watch from the list's version, as an informer does.
//! let version = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap();
//! let mut watch = maps.watch(&WatchParams::default(), &version).await?.boxed();
//!
//! // Write an object. This bypasses HTTP, but the API's rules still apply.
//! server.create(json!({
//!     "apiVersion": "v1", "kind": "ConfigMap",
//!     "metadata": {"name": "settings"}, "data": {"colour": "blue"},
//! }))?;
//!
//! let Some(WatchEvent::Added(map)) = watch.try_next().await? else { panic!("an ADDED") };
//! assert_eq!(map.data.unwrap()["colour"], "blue");
//! # Ok(())
//! # }
//! ```
//!
//! # Usage
//!
//! - **In process**: [`ApiServer::client`] returns a `kube::Client` that calls the server directly,
//!   without a socket. Tests can pause tokio's time, so an hour of bookmarks takes no time at all.
//!   [`ApiServer::service`] does the same for any `tower` client. [`ApiServer::create`] and related
//!   methods write objects without HTTP.
//! - **On a socket**: [`ApiServer::listen`] serves HTTP/1.1 and HTTP/2 to kubectl and clients in
//!   any language. It uses TLS with its own CA, and requires bearer tokens.
//! - **Fault injection**: [`ApiServer::faults`] injects faults from Rust, from text with
//!   [`Faults::inject_text`], or over HTTP with [`Builder::control_path`]. [`ApiServer::restart`],
//!   [`Store::compact`], [`ApiServer::restore`] and [`ApiServer::access`] reproduce what happens to
//!   real servers.
//! - **As a test oracle**: [`ApiServer::requests`] and [`ApiServer::deliveries`] return the
//!   requests that were received and the events that each watch was sent. [`ApiServer::history`]
//!   returns every state of an object.
//!
//! # Features
//!
//! `client`, enabled by default, adds [`ApiServer::client`] and depends on `kube-client`. Programs that use it also enable one
//! version of Kubernetes in `k8s-openapi`, such as `latest`.
//!
//! # Consistency
//!
//! There is one global resourceVersion, which every write increments. A list returns the state at a
//! single version, however many pages it has. A watch from a version delivers every later change
//! exactly once and in order, until it ends or fails with a 410. A bookmark follows all changes up
//! to its version. Versions older than [`Builder::history_window`] are compacted. Each object is
//! encoded once, and all readers share the bytes.
//!
//! # What is real, simplified or absent
//!
//! Responses to about 900 requests are compared with those of kube-apiserver 1.36.
//! `docs/differences.md` lists every difference with its reason. In short:
//!
//! | | |
//! | --- | --- |
//! | **Real** | |
//! | versions and history | one global version, MVCC, compaction, 410 in both forms, future versions, restore from a snapshot |
//! | list | label and field selectors with Kubernetes' grammar and errors, `limit`/`continue` pinned to a version, `remainingItemCount`, `resourceVersion` and `resourceVersionMatch` in all combinations, inconsistent continuation |
//! | watch | from any version, bookmarks, `timeoutSeconds`, `sendInitialEvents`, selector enter and leave, slow watchers cut off; over HTTP, and over WebSocket on sockets |
//! | objects | optimistic locking, generateName, generation, the subresources `status`, `scale` (of workloads and custom resources), `eviction` with disruption budgets, `binding`, `approval`, `ephemeralcontainers`, `resize` and `finalize`, finalizers, preconditions, dry run, JSON patch, merge patch, server-side apply, strategic merge patch of built-in kinds, validation of names, labels and metadata, `Status` bodies with identical wording |
//! | deletion | garbage collection by owner references (background, foreground, orphan), namespaces are emptied: [`Builder::garbage_collection`] |
//! | representations | JSON, protobuf for built-in kinds and metadata, `Table` with kubectl's columns, `PartialObjectMetadata`, gzip |
//! | kinds | the commonly used built-in resources of Kubernetes 1.36, discovery in both forms; custom resources with several versions, printer columns and selectable fields |
//! | **Simplified** | |
//! | owners | an object whose owner never existed is kept, where a cluster deletes it |
//! | validation | metadata and the data of config maps and secrets are validated, `spec` is not: no schemas of built-in or custom resources, no pruning, no CEL, `fieldValidation` is ignored |
//! | defaults | only those that kubectl and controllers depend on |
//! | access | authorization is a list of denials; RBAC objects are stored but not enforced; only the administrator may impersonate (`kubectl --as`), and groups have no effect |
//! | pods | with [`Builder::pods_run`] scheduling and running are simulated; without it pods stay Pending and are deleted immediately |
//! | logs | lines that the server makes up, one for each second that a simulated container runs |
//! | custom resource versions | are converted by changing `apiVersion` only (`strategy: None`) |
//! | events | both groups share their objects, as in Kubernetes; `autoscaling/v1` and other second versions of built-in kinds are not served |
//! | watch cache | there is none that could lag: `resourceVersion=0` returns the latest state |
//! | managedFields | are tracked for every write, but an object shows them only once a configuration was applied to it: [`Builder::show_managed_fields`] |
//! | **Absent** | |
//! | controllers | deployments create no pods |
//! | `exec`, `attach`, `portforward`, `proxy`, `serviceaccounts/token` | the first four: 501 |
//! | admission | no webhooks, no policies; their objects are stored |
//! | CBOR, YAML in responses | 406 and 415; objects can be sent as YAML |
//! | schemas | `/openapi` has only what kubectl needs to create objects; no `kubectl explain` |

// Shared vocabulary.
mod clock;
mod codec;
mod connection;
mod duration;
pub mod limits;
mod quote;
mod status;

// Server-side apply.
mod apply;

// Served resources.
mod kinds;
mod validate;

mod discovery;
mod health;
mod openapi;

// Requests, objects and storage.
mod request;
mod upgrade;

mod object;

mod store;

mod matcher;
pub mod selector;

// Response representations.
mod body;
mod gzip;
mod negotiate;
mod print;
mod response;
mod view;

// The server, its records and access control.
mod access;
mod filter;

mod faults;

mod record;

mod chores;

mod server;

// Injected faults and simulated pods.
mod exposure;

mod inject;

mod pods;

// Verbs and their effects on objects.
mod defaults;
mod garbage;
mod lifecycle;
mod rest;

// Direct writes, and fault injection over HTTP.
mod direct;

mod control;

// Entry points for requests.
mod service;

#[cfg(feature = "client")]
mod client;

mod net;

pub use access::{Access, Denial, DenialId};
pub use body::Body;
pub use direct::LoadError;
pub use faults::{Fault, FaultId, FiredFault};
pub use inject::{FaultRule, FaultTextError, Faults};
pub use net::{Identity, Listener, Listening};
pub use pods::PodDelays;
pub use print::{Column, Columns, NoColumns};
pub use record::{Delivery, RequestRecord};
pub use request::Verb;
pub use server::{ApiServer, Builder};
pub use service::ApiService;
pub use status::{Cause, Details, Status};
pub use store::{EventType, Key, Snapshot, Store};
