//! The source of lists and watches, and the only interface to API servers. Tests substitute their
//! own.

mod kube;
mod repacked;

use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;

use crate::{ResourceVersion, Result};

pub use crate::wire::{ListItem, WatchItem};
pub use kube::KubeListWatch;
/// For modules that only pass a client on.
pub(crate) use kube_client::Client;
pub(crate) use repacked::Repacked;

/// The items of a list as they arrive.
pub type ListStream = BoxStream<'static, Result<ListItem>>;
/// The events of a watch as they arrive; an `Err` is an error *inside* the stream, and ends it.
pub type WatchStream = BoxStream<'static, Result<WatchItem>>;

/// Lists and watches one resource in one scope. Used as `Arc<dyn ListWatch>`.
pub trait ListWatch: Send + Sync + 'static {
    /// Returns a description of the source for logs and metrics: `pods`, `deployments.apps/v1 in
    /// web`.
    fn name(&self) -> &str;

    /// Starts to read one page.
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>>;

    /// Starts a watch.
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>>;

    /// Returns whether the source supports streaming lists.
    fn streams_lists(&self) -> bool {
        true
    }
}

/// Options of a LIST request.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ListOptions {
    /// `None` requests the most recent state, `"0"` any state, and any other version that one or a
    /// newer one.
    pub resource_version: Option<ResourceVersion>,
    /// Page size.
    pub limit: Option<u32>,
    /// Token that the previous page returned.
    pub continue_token: Option<String>,
}

/// Options of a WATCH request. Bookmarks are always requested.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The version to start from.
    pub resource_version: Option<ResourceVersion>,
    /// Whether to stream the initial list first: everything at `resource_version` or newer.
    pub send_initial_events: bool,
    /// Time after which the server should end the watch.
    pub timeout: Option<Duration>,
}
