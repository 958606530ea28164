//! The one seam: where lists and watches come from. Tests put their own here.

mod kube;
mod repacked;

use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;

use crate::{ResourceVersion, Result};

pub use crate::wire::{ListItem, WatchItem};
pub use kube::KubeListWatch;
/// For those who have to be given one and only pass it on.
pub(crate) use kube_client::Client;
pub(crate) use repacked::Repacked;

/// A list as it arrives, item by item.
pub type ListStream = BoxStream<'static, Result<ListItem>>;
/// A watch as it arrives; an `Err` is an error *inside* the stream, and ends it.
pub type WatchStream = BoxStream<'static, Result<WatchItem>>;

/// Lists and watches one resource in one scope. Used as `Arc<dyn ListWatch>`.
pub trait ListWatch: Send + Sync + 'static {
    /// What it lists, for logs and metrics: `pods`, `deployments.apps/v1 in web`.
    fn name(&self) -> &str;

    /// Starts reading one page.
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>>;

    /// Starts a watch.
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>>;

    /// Whether streaming lists may be asked for; a fake that cannot says no.
    fn streams_lists(&self) -> bool {
        true
    }
}

/// What one LIST asks for.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ListOptions {
    /// `None` asks for the most recent, `"0"` for anything, any other for that or newer.
    pub resource_version: Option<ResourceVersion>,
    /// The page size.
    pub limit: Option<u32>,
    /// The token of the page before.
    pub continue_token: Option<String>,
}

/// What one WATCH asks for. Bookmarks are always asked for.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct WatchOptions {
    /// Where to start.
    pub resource_version: Option<ResourceVersion>,
    /// Stream the initial list first: everything at `resource_version` or newer.
    pub send_initial_events: bool,
    /// When the server should end the watch.
    pub timeout: Option<Duration>,
}
