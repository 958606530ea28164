//! A Kubernetes API server as a library: no binaries, no Docker, up in under a millisecond, and
//! honest about the protocol where fakes lie: versions, watches, paging, expiry.
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
//! // A list and a watch from its version, as an informer does it.
//! let version = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap();
//! let mut watch = maps.watch(&WatchParams::default(), &version).await?.boxed();
//!
//! // Somebody writes: here without HTTP, but under all of its rules.
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
//! # How it is used
//!
//! - **In process**: [`ApiServer::client`] is a `kube::Client` that calls the server directly, with no
//!   socket between: tests can pause tokio's time, and an hour of bookmarks passes at once.
//!   [`ApiServer::service`] is the same for any `tower` client. [`ApiServer::create`] and its
//!   siblings set a scene without HTTP.
//! - **On a socket**: [`ApiServer::listen`] serves HTTP/1.1 and HTTP/2, by TLS with a CA of its own,
//!   to kubectl and clients in any language; bearer tokens are asked for.
//! - **To break things**: [`ApiServer::faults`] injects faults by name, or by text with
//!   [`Faults::inject_text`]; with [`Builder::control_path`] also over HTTP. [`ApiServer::restart`],
//!   [`Store::compact`], [`ApiServer::restore`] and [`ApiServer::access`] do to the server what
//!   happens to servers.
//! - **As an oracle**: [`ApiServer::requests`] and [`ApiServer::deliveries`] tell what was asked and
//!   what was delivered to whom; [`ApiServer::history`] tells every state that an object had.
//!
//! # Consistency
//!
//! There is one global resourceVersion. Every write gets the next one. A list, on however many
//! pages, is the state at one version; a watch from a version is every change after it, in order and
//! once, until it ends or says 410; a bookmark comes after every change up to its version. Versions
//! older than [`Builder::history_window`] are compacted away. All readers share the bytes of an
//! object, which are encoded once.
//!
//! # What is real, what is simplified, what is absent
//!
//! The answers are compared with those of kube-apiserver 1.36, for some 900 requests; every place where they differ is in
//! `docs/differences.md`, with its reason. In short:
//!
//! | | |
//! | --- | --- |
//! | **Real** | |
//! | versions and history | one global version, MVCC, compaction, 410 in both forms, future versions, restore from a snapshot |
//! | list | label and field selectors with Kubernetes' grammar and errors, `limit`/`continue` pinned to a version, `remainingItemCount`, `resourceVersion` and `resourceVersionMatch` in all combinations, inconsistent continuation |
//! | watch | from any version, bookmarks, `timeoutSeconds`, `sendInitialEvents`, selector enter and leave, slow watchers cut off |
//! | objects | optimistic locking, generateName, generation, status subresource, finalizers, preconditions, dry run, JSON patch, merge patch, strategic merge patch of built-in kinds, validation of names, labels and metadata, `Status` bodies word for word |
//! | representations | JSON, protobuf for built-in kinds and metadata, `Table` with kubectl's columns, `PartialObjectMetadata`, gzip |
//! | kinds | the built-in resources of Kubernetes 1.36 that people use, discovery in both forms; custom resources with several versions, printer columns and selectable fields |
//! | **Simplified** | |
//! | validation | metadata and the data of config maps and secrets are checked, `spec` is not: neither the built-in schemas nor those of custom resources, no pruning, no CEL, `fieldValidation` is ignored |
//! | defaults | only those that kubectl and controllers look at |
//! | access | who may do what is a table of denials; RBAC objects are stored, not obeyed; only the administrator may act as others (`kubectl --as`), and groups mean nothing |
//! | pods | with [`Builder::pods_run`] they are scheduled and run as on a node that does nothing; without it they stay Pending and go at once |
//! | namespaces | one with objects in it stays Terminating until they are gone, but nothing deletes them |
//! | custom resource versions | are converted by renaming (`strategy: None`) |
//! | events | the two groups share their objects, as in Kubernetes; `autoscaling/v1` and other second versions of built-in kinds are not served |
//! | watch cache | there is none to lag behind: `resourceVersion=0` is answered from the newest state |
//! | managedFields | are dropped, or kept as sent: [`Builder::keep_managed_fields`] |
//! | **Absent** | |
//! | server-side apply | 415; `kubectl apply --server-side` needs it |
//! | garbage collection, controllers | owner references have no consequence, deployments make no pods |
//! | subresources | other than `status`: no `scale`, `log`, `exec`, `binding`, `eviction` |
//! | admission | no webhooks, no policies; their objects are stored |
//! | CBOR, YAML, websockets | 406 and 415 |
//! | schemas | `/openapi` says just enough for kubectl to create objects; no `kubectl explain` |

// The vocabulary.
mod clock;
mod codec;
mod connection;
pub mod limits;
mod quote;
mod status;

// What is served.
mod kinds;
mod validate;

mod discovery;
mod health;
mod openapi;

// Which objects, where they are kept, and what is done to them.
mod request;

mod object;

mod store;

mod matcher;
pub mod selector;

// What clients are shown.
mod body;
mod gzip;
mod negotiate;
mod print;
mod response;
mod view;

// The server, and what it remembers and allows.
mod access;
mod filter;

mod faults;

mod record;

mod server;

// What goes wrong on purpose, and what happens by itself.
mod exposure;

mod inject;

mod pods;

// The verbs, and what they do to objects.
mod defaults;
mod lifecycle;
mod rest;

// Writes without a request, and faults over HTTP.
mod direct;

mod control;

// How requests come in.
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
