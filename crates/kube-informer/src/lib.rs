//! Shared informers for Kubernetes: client-go's `tools/cache`, whole, in Rust.
//!
//! An informer is a cache of one resource. It lists it once, watches it from then on over one
//! connection however many parts of the program care, answers from memory through indexes, and tells
//! every handler what was added, updated and deleted.
//!
//! # What it promises
//!
//! **Nothing lost, nothing invented.** Whatever goes wrong between the program and the API server:
//!
//! - Every state in the cache is one that the server had, in the informer's scope and selectors. The
//!   states of an object are seen in order; some may be skipped, none comes twice or goes back.
//! - When [`has_synced`] turns true the cache is the server's content at one version (for each of several
//!   namespaces at one of its own). A relist replaces it at once: no reader sees half of one.
//! - [`resource_version`] is honest: the cache has every change up to it. Each [`List`] carries the
//!   version that it was read at, and [`wait_for_version`] waits until what one has written is there.
//! - Once faults end the cache becomes the server's content again within a bounded time: a watch that
//!   dies silently is noticed within 75 seconds (on servers that never send bookmarks, once that is known,
//!   within the eleven minutes after which a watch has to end), and no pause between attempts is longer than
//!   a minute, unless the server asks for it.
//!
//! **Handlers can fold what they are told.** Each handler is called by one task, one call at a time:
//!
//! - Whenever it comes, it first gets everything that is there as added, then [`Event::Synced`], then every
//!   change: no gap, no double.
//! - Added comes only for what it does not have, an update only from the state that it was told last, a
//!   delete only for what it has, and exactly once. A delete that was missed is delivered by the relist
//!   that finds it out, with [`FinalState::Unknown`] (client-go's tombstone).
//! - When it is told of something, the cache and all indexes already have that or something newer.
//! - It may be slow, block (with [`blocking`]) or panic: neither the cache nor any other handler waits for
//!   it. What waits for it is bounded: past a thousand events they are merged by key, so that folding them
//!   still gives the cache.
//! - Once it is removed it is not called again.
//!
//! **It says what is wrong.** [`on_error`] is told of every error that the client lets through (see
//! [`KubeListWatch`] on its retries) and of what is done about it. The log has a trouble with the server
//! once when it begins, when it changes, and when it is over. [`is_live`] and [`staleness`] say how far to
//! trust the cache now, and [`wait_for_sync`] always ends, with the reason if it is not success.
//!
//! What is *not* promised: an order between the changes of different objects; every state of an object
//! (a relist, or a handler that lags far behind, skips some); that an object which was deleted and made again
//! under the same name while nobody looked is not one update, with different uids.
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
//! # How it reads
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
//! The names are client-go's wherever the thing is the same, so that every article on informers is
//! documentation for this crate too. Where it does something else than client-go, and why, is in the
//! repository's `docs/client-go.md`, rule by rule.
//!
//! # Objects are bytes
//!
//! An [`Object<K>`](Object) is a handle on the object as the server sent it, without `managedFields` and
//! compressed, and a header that is always at hand: key, uid, versions, labels, owner. The typed struct is built when somebody
//! asks for it, with [`decode`](Object::decode); one field is read with [`field`](Object::field), a few with
//! [`decode_as`](Object::decode_as). Most handlers need no more than the key, and a `Pod` takes several times
//! the memory of its bytes. [`Storage`] has the choice for programs that look into all objects all the time.
//!
//! An object whose body does not decode is in the cache all the same: `decode` says what is wrong, to the one
//! who asks. One that cannot be kept at all (no metadata, a transform that fails) is reported, counted, and
//! listed by [`SharedInformer::failed`]. Neither stops anything.
//!
//! # Connections
//!
//! Informers work on any `kube::Client`. kube's own connects with HTTP/1, which takes a connection for each
//! watch, and does not notice one that has died. `kube_informer::client` builds one that speaks HTTP/2 where the
//! server does: informers share a connection, which is kept alive with pings and replaced when they are not
//! answered.
//!
//! It is behind the feature `client`, which is off by default because it turns on `rustls-tls` of kube-client:
//! which TLS is used is the choice of the program. No other part of this crate needs TLS.
//!
//! # The parts
//!
//! Each can be used alone: [`ListWatch`] is where lists and watches come from ([`list_watch::KubeListWatch`] for
//! API servers, your own for anything else), [`Reflector`] mirrors one into a [`reflector::ReflectorStore`],
//! [`DeltaFifo`] is a queue of changes, [`Indexer`] a store with indexes that a [`Lister`] reads.
//! [`Reflector::process_until`] and [`Indexer::process`] put them together, as client-go's low-level
//! `cache.Controller` does.
//!
//! # Controllers
//!
//! A [`Controller`] is told which objects to look at, by informers, and calls a [`Reconciler`] for each of them:
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
//! - [`controller`]: predicates, retries, timeouts, status, and what is promised. [`Request::wrote`] has a key wait until the
//!   cache has what was written for it; [`ConsistencyStore`] is the same for other loops.
//! - [`workqueue`]: the queue alone, for a loop of one's own. Handlers [fill](HandlerBuilder::enqueue) it.
//! - [`leader_election`]: of several replicas one works. [`Controller::leader_election`] uses it.
//! - [`finalizer()`] cleans up before an object goes, [`Conditions`] and [`patch_status`] report what was seen,
//!   [`Object::control`] makes an object the owner of others, and a [`Recorder`] writes events for people. None of them
//!   needs an informer to run.
//!
//! The repository's `docs/controller-in-ten-minutes.md` puts all of them into one program.

mod error;
mod json;
mod key;
mod object;
mod selector;
mod shown;
mod status;
mod transform;
mod version;

mod wire;

mod snapshot;

#[cfg(feature = "client")]
mod client;
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

#[cfg(feature = "client")]
pub use client::client;
pub use conditions::{ConditionStatus, Conditions, patch_status};
pub use consistency::{Behind, ConsistencyStore};
pub use controller::{Action, Controller, Reconciler, Request};
pub use delta::{Delta, Deltas};
pub use delta_fifo::DeltaFifo;
pub use error::{BoxError, Error, Result};
pub use factory::{FactoryBuilder, SharedInformerFactory};
pub use finalizer::{Finalizer, finalizer};
pub use indexer::{Index, Indexer};
pub use informer::{FromFactory, FromSource, InformerBuilder, SharedInformer};
pub use key::{KeyRef, ObjectKey};
pub use leader_election::{LeaderElector, Leadership, LeadershipGuard};
pub use list_watch::{KubeListWatch, ListWatch};
pub use lister::{List, Lister, NamespaceLister};
pub use object::{
    Deleted, Event, FieldPath, FinalState, Kind, Labels, Object, OwnerRef, StaticKind, Untyped,
};
pub use processor::{
    Callbacks, EventHandler, EventStream, HandlerBuilder, Registration, RegistrationGuard,
};
pub use recorder::{EventCounts, EventType, Recorder};
pub use reflector::Reflector;
pub use selector::Selector;
pub use status::{ErrorReport, InformerStatus, Next, State};
pub use transform::{Storage, Transform};
pub use version::ResourceVersion;
pub use wait::{NotSynced, NotSyncedReason, WaitForSync};
pub use workqueue::{InProgress, WorkQueue};
