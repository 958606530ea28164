//! Measures how often the server sends bookmarks.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube_informer::list_watch::{WatchItem, WatchOptions};
use kube_informer::{ListWatch as _, ResourceVersion};
use tokio::time::{Instant, timeout_at};

use super::types::{page, source};
use crate::connect::Cluster;
use crate::discovery::Type;

/// The approximate interval at which servers send bookmarks.
pub(super) const USUAL: Duration = Duration::from_secs(60);

/// The bookmarks that a watch received.
pub(super) struct Bookmarks {
    /// The type that was watched; `None` if none could be.
    pub(super) of: Option<String>,
    /// The duration of the watch.
    pub(super) watched: Duration,
    /// The times at which bookmarks arrived, since the start of the watch.
    pub(super) seen: Vec<Duration>,
}

impl Bookmarks {
    /// Watches the first type that can be watched.
    pub(super) async fn watch(
        cluster: &Cluster,
        types: &[Type],
        namespace: Option<&str>,
        length: Duration,
    ) -> Self {
        // A server also sends a bookmark shortly before it ends a watch. That shows that it sends
        // bookmarks at all, but not how often. A watch that is long enough to measure the interval
        // asks for a later end, so that it does not receive this one.
        let last = if length < USUAL { length } else { length + USUAL };
        for of in types {
            let Ok(page) = page(cluster, of, namespace, 1).await else { continue };
            let version = page["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            let mut options = WatchOptions::default();
            options.resource_version = Some(ResourceVersion::from(version));
            options.timeout = Some(last);
            let begin = Instant::now();
            let Ok(mut events) = source(cluster, of, namespace).watch(options).await else {
                continue;
            };
            let mut seen = Vec::new();
            // It makes no difference whether the stream, the time limit or an error ends it.
            while let Ok(Some(Ok(event))) = timeout_at(begin + length, events.next()).await {
                if matches!(event, WatchItem::Bookmark { .. }) {
                    seen.push(begin.elapsed());
                }
            }
            return Self { of: Some(of.name()), watched: begin.elapsed(), seen };
        }
        Self { of: None, watched: Duration::ZERO, seen: Vec::new() }
    }

    /// Returns the average time between two bookmarks.
    pub(super) fn interval(&self) -> Option<Duration> {
        let (first, last) = (self.seen.first()?, self.seen.last()?);
        let intervals = u32::try_from(self.seen.len() - 1).ok().filter(|&number| number > 0)?;
        Some(last.saturating_sub(*first) / intervals)
    }
}
