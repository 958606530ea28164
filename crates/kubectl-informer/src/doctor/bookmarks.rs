//! How often bookmarks come.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube_informer::list_watch::{WatchItem, WatchOptions};
use kube_informer::{ListWatch as _, ResourceVersion};
use tokio::time::{Instant, timeout_at};

use super::types::{page, source};
use crate::connect::Cluster;
use crate::discovery::Type;

/// How often a server sends one, about.
pub(super) const USUAL: Duration = Duration::from_secs(60);

/// What a watch has seen.
pub(super) struct Bookmarks {
    /// Which type was watched; none if none could be.
    pub(super) of: Option<String>,
    /// For how long.
    pub(super) watched: Duration,
    /// When they came, from the beginning of the watch.
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
        // A server also sends one shortly before it ends a watch. That shows that it can, but not how
        // often it does: who has the time to measure should not see it.
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
            // The stream ends, time runs out, or an error ends it: all the same here.
            while let Ok(Some(Ok(event))) = timeout_at(begin + length, events.next()).await {
                if matches!(event, WatchItem::Bookmark { .. }) {
                    seen.push(begin.elapsed());
                }
            }
            return Self { of: Some(of.name()), watched: begin.elapsed(), seen };
        }
        Self { of: None, watched: Duration::ZERO, seen: Vec::new() }
    }

    /// The time between two, on average.
    pub(super) fn interval(&self) -> Option<Duration> {
        let (first, last) = (self.seen.first()?, self.seen.last()?);
        let intervals = u32::try_from(self.seen.len() - 1).ok().filter(|&number| number > 0)?;
        Some(last.saturating_sub(*first) / intervals)
    }
}
