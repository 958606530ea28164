//! Shared informers for Kubernetes: client-go's `tools/cache`, whole, in Rust.

mod error;
mod json;
mod key;
#[allow(dead_code, unused_imports)]
mod object;
#[allow(dead_code)]
mod selector;
mod status;
#[allow(dead_code)]
mod transform;
mod version;

mod wire;

pub mod list_watch;
pub mod reflector;

mod indexer;
mod lister;

pub mod delta_fifo;

mod wait;

mod processor;

mod factory;
mod informer;

pub use delta_fifo::{Delta, DeltaFifo};
pub use error::{BoxError, Error, Result};
pub use factory::{FactoryBuilder, SharedInformerFactory};
pub use indexer::{Index, Indexer, List};
pub use informer::{InformerBuilder, SharedInformer};
pub use key::{KeyRef, ObjectKey};
pub use list_watch::ListWatch;
pub use lister::{Lister, NamespaceLister};
pub use object::{
    Deleted, Event, FieldPath, FinalState, Kind, Labels, Object, OwnerRef, StaticKind, Untyped,
};
pub use processor::{
    Callbacks, EventHandler, EventStream, HandlerBuilder, Registration, RegistrationGuard,
};
pub use reflector::Reflector;
pub use selector::Selector;
pub use status::{ErrorReport, InformerStatus, Next, State};
pub use transform::{Storage, Transform};
pub use version::ResourceVersion;
pub use wait::{NotSynced, NotSyncedReason, WaitForSync};
