//! Shared informers for Kubernetes: the whole of client-go's `tools/cache` in Rust.
//!
//! An informer is a local cache of one resource. It lists the resource once and watches it from then on, over a
//! single watch however many parts of the program use it. It answers reads from memory through indexes, and
//! notifies every handler of each add, update and delete.
//!
//! # Guarantees
//!
//! **Nothing is lost, nothing is invented.** Whatever fails between the program and the API server:
//!
//! - Every state in the cache is one that the server had, within the informer's scope and selectors. The states
//!   of an object are observed in order: some may be skipped, but none is repeated and none goes backwards.
//! - When [`has_synced`] becomes true, the cache holds the server's content at a single version (with several
//!   namespaces, at one version for each of them). A relist replaces the content atomically: no reader sees
//!   half of it.
//! - [`resource_version`] is reliable: the cache contains every change up to that version. Each [`List`]
//!   carries the version that it was read at, and [`wait_for_version`] waits until the cache includes a write
//!   of your own.
//! - Once faults end, the cache converges to the server's content within a bounded time. A watch that dies
//!   silently is detected within 75 seconds (on servers that never send bookmarks, once that is known, within
//!   eleven minutes, when the watch times out), and no pause between attempts exceeds a minute unless the
//!   server asks for a longer one.
//!
//! **Handlers can fold their events.** Each handler is called by one task, one call at a time:
//!
//! - However late it registers, a handler first receives an add for every cached object, then
//!   [`Event::Synced`], then every change, without gaps or duplicates.
//! - An add is delivered only for an object that the handler does not have, an update only from the last state
//!   that it received, and a delete exactly once, only for an object that it has. A missed delete is delivered
//!   by the relist that discovers it, with [`FinalState::Unknown`] (client-go's tombstone).
//! - When a handler receives an event, the cache and all indexes already contain that state or a
//!   newer one.
//! - A handler may be slow, block (with [`blocking`]) or panic: neither the cache nor any other handler waits
//!   for it. Its backlog is bounded: beyond a thousand events they are merged by key, in such a way that
//!   folding them still yields the cache's content.
//! - Once a handler is removed, it is not called again.
//!
//! **Problems are reported.** [`on_error`] receives every error that the client lets through (see
//! [`KubeListWatch`] on the client's retries) and the informer's reaction to it. Each problem with the server
//! is logged when it starts, when it changes and when it clears. [`is_live`] and [`staleness`] say how far to
//! trust the cache at the moment. [`wait_for_sync`] always returns, with a reason if the cache did not sync.
//!
//! **Not guaranteed:** an order between changes of different objects; every intermediate state of an object (a
//! relist skips some, and so does a handler that lags far behind); a delete and an add for an object that was
//! deleted and recreated under the same name while the watch was down: that may be a single update, in which
//! the uids differ.
//!
//! [`has_synced`]: SharedInformer::has_synced
//! [`resource_version`]: SharedInformer::resource_version
//! [`wait_for_version`]: SharedInformer::wait_for_version
//! [`wait_for_sync`]: SharedInformer::wait_for_sync
//! [`is_live`]: SharedInformer::is_live
//! [`staleness`]: SharedInformer::staleness
//! [`on_error`]: InformerBuilder::on_error
//! [`blocking`]: HandlerBuilder::blocking
//!
//! # Example
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::SharedInformerFactory;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = embedded_apiserver::ApiServer::start();
//! # let client = server.client();
//! // let client = kube_informer::client(kube::Config::infer().await?)?;
//! let factory = SharedInformerFactory::new(client);
//! let pods = factory.informer::<Pod>();
//!
//! pods.handler()
//!     .on_add(|pod, _initial| println!("Add: {}", pod.name()))
//!     .on_update(|_old, new| println!("Update: {}", new.name()))
//!     .on_delete(|pod| println!("Delete: {}", pod.name()))
//!     .register();
//! let by_node = pods.index_by_field("spec.nodeName")?;
//!
//! factory.start();
//! factory.wait_for_sync().await?;
//!
//! for pod in pods.lister().namespace("default").list() {
//!     println!("{} is {:?}", pod.name(), pod.field::<String>("status.phase")?);
//! }
//! println!("{} pods run on worker-1", by_node.get("worker-1").len());
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The names are client-go's wherever the concept is the same, so articles about client-go's informers apply to
//! this crate too. The repository's `docs/client-go.md` lists, rule by rule, where this crate differs from
//! client-go and why.
//!
//! # Objects are bytes
//!
//! An [`Object<K>`](Object) is a handle to the object as the server sent it, without `managedFields` and
//! compressed, plus a header that can be read at no cost: key, uid, versions, labels, owner. The typed struct
//! is built only on demand, by [`decode`](Object::decode); [`field`](Object::field) reads a single field, and
//! [`decode_as`](Object::decode_as) a few of them. Most handlers need only the key, and a `Pod` struct takes
//! several times the memory of its bytes. Programs that read most fields of all objects all the time can choose
//! another [`Storage`].
//!
//! An object whose body does not decode is cached all the same; only `decode` returns an error, which says what
//! is wrong. An object that cannot be kept at all (it has no metadata, or its transform fails) is reported,
//! counted, and listed by [`SharedInformer::failed`]. Neither affects other objects.
//!
//! # Connections
//!
//! Informers work with any `kube::Client`. kube's default client uses HTTP/1, which takes one connection per
//! watch and does not detect dead connections. `kube_informer::client` builds a client that uses HTTP/2 if the
//! server supports it: informers share a connection, which is kept alive with pings and replaced when they go
//! unanswered.
//!
//! # Features
//!
//! None is enabled by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `client` | `kube_informer::client`. Enables kube-client's `rustls-tls`: a library that did so by default would take the choice of the TLS backend from the program. No other part of this crate needs TLS. |
//! | `metrics` | `Metrics`, which exports informers, handlers, queues, controllers and leader election to Prometheus, under the names that client-go and controller-runtime use. |
//!
//! Programs also enable one version of Kubernetes in `k8s-openapi`, such as `latest`: its build fails without one.
//!
//! # Building blocks
//!
//! The building blocks are public. A [`ListWatch`] is a source of lists and watches
//! ([`list_watch::KubeListWatch`] for API servers, your own for anything else). A [`Reflector`] mirrors a
//! source into a [`reflector::ReflectorStore`]. A [`DeltaFifo`] is a queue of changes, and an [`Indexer`] a
//! store with indexes, read through a [`Lister`]. [`Reflector::process_until`] and [`Indexer::process`] combine
//! them, as client-go's low-level `cache.Controller` does.
//!
//! # Controllers
//!
//! A [`Controller`] calls a [`Reconciler`] for each object that its informers report as changed:
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use kube_informer::{Action, Controller, Request, SharedInformerFactory};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = embedded_apiserver::ApiServer::start();
//! # server.create(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
//! #     "metadata": {"name": "web", "namespace": "default"}}))?;
//! # let client = server.client();
//! # let stop = tokio::time::sleep(std::time::Duration::from_secs(1));
//! let factory = SharedInformerFactory::new(client);
//! Controller::new(&factory.informer::<ConfigMap>())
//!     .owns(&factory.informer::<Pod>())
//!     .stop_on(stop) // elsewhere: tokio::signal::ctrl_c()
//!     .run(async |request: Request<ConfigMap>| {
//!         println!("{} is there: {}", request.key, request.object.is_some());
//!         Ok::<_, kube::Error>(Action::await_change())
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`controller`]: predicates, retries, timeouts, status, and the guarantees. [`Request::wrote`] delays the
//!   next reconcile of a key until the cache includes what was written for it; [`ConsistencyStore`] offers the
//!   same to other loops.
//! - [`workqueue`]: the queue alone, for a loop of your own. Handlers can [fill](HandlerBuilder::enqueue) it.
//! - [`leader_election`]: keeps one of several replicas active. [`Controller::leader_election`]
//!   uses it.
//! - [`finalizer()`] cleans up before an object is deleted, [`Conditions`] and [`patch_status`] report status,
//!   [`Object::control`] makes an object the owner of another, and a [`Recorder`] records Kubernetes events.
//!   None of them needs a running informer.
//!
//! The repository's `docs/controller-in-ten-minutes.md` combines all of them in one program.

mod error;
mod json;
mod key;
mod measure;
mod object;
mod selector;
mod shown;
mod status;
mod transform;
mod version;
mod wakers;

mod wire;

mod snapshot;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "metrics")]
mod requests;

pub mod list_watch;

mod conditions;
mod finalizer;
mod recorder;

mod delta;

pub mod reflector;

mod indexer;
mod lister;

pub mod delta_fifo;

mod wait;

pub mod workqueue;

mod processor;

mod informer;

mod factory;

mod consistency;
pub mod leader_election;

pub mod controller;

#[cfg(feature = "metrics")]
pub mod metrics;

#[cfg(feature = "client")]
pub use client::client;
pub use conditions::{ConditionStatus, Conditions, patch_status};
pub use consistency::{Behind, ConsistencyStore};
pub use controller::{Action, Controller, Reconciler, Request};
pub use delta::{Delta, Deltas};
pub use delta_fifo::DeltaFifo;
pub use error::{BoxError, Error, Result};
pub use factory::{FactoryBuilder, SharedInformerFactory, WeakInformerFactory};
pub use finalizer::{Finalizer, finalizer};
pub use indexer::{Index, Indexer};
pub use informer::{FromFactory, FromSource, InformerBuilder, SharedInformer};
pub use key::{KeyRef, ObjectKey};
pub use leader_election::{LeaderElector, Leadership, LeadershipGuard};
pub use list_watch::{KubeListWatch, ListWatch};
pub use lister::{List, Lister, NamespaceLister};
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use object::{
    Deleted, Event, FieldPath, FinalState, Kind, Labels, Object, OwnerRef, StaticKind, Untyped,
};
pub use processor::{
    Callbacks, EventHandler, EventStream, HandlerBuilder, Registration, RegistrationGuard,
};
pub use recorder::{EventCounts, EventType, Recorder};
pub use reflector::Reflector;
pub use selector::Selector;
pub use status::{ErrorReport, InformerStatus, Next, RequestCounts, State};
pub use transform::{Storage, Transform};
pub use version::ResourceVersion;
pub use wait::{NotSynced, NotSyncedReason, WaitForSync};
pub use workqueue::{InProgress, WorkQueue};
