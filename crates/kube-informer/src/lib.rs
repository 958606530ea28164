//! Shared informers for Kubernetes: client-go's `tools/cache`, whole, in Rust.

mod error;
#[allow(dead_code, unused_imports)]
mod json;
mod key;
mod object;
mod selector;
mod status;
mod transform;
mod version;
mod wire;

pub mod list_watch;
pub mod reflector;

pub use error::{BoxError, Error, Result};
pub use key::{KeyRef, ObjectKey};
pub use list_watch::{KubeListWatch, ListWatch};
pub use object::{
    Deleted, Event, FieldPath, FinalState, Kind, Labels, Object, OwnerRef, StaticKind, Untyped,
};
pub use reflector::Reflector;
pub use selector::Selector;
pub use status::{ErrorReport, InformerStatus, Next, State};
pub use transform::{Storage, Transform};
pub use version::ResourceVersion;
