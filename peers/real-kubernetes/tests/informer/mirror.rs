//! Informers of the same objects, one for each encoding, and the comparison with the server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::Client;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube_informer::{ErrorReport, SharedInformer, StaticKind};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::fold::Beliefs;
use super::side::Side;
use super::truth::Truth;

/// The time within which a cache must converge after a fault: a silent watch is detected within 75 seconds, pauses
/// last up to a minute, and the machine is busy.
const SETTLE_MAX: Duration = Duration::from_secs(240);

/// How often the state is checked without a notification.
const LOOK: Duration = Duration::from_secs(1);

/// A selection of the objects of a namespace.
#[derive(Default, Clone)]
pub(crate) struct Choice {
    pub(crate) namespace: String,
    pub(crate) labels: String,
    pub(crate) fields: String,
}

/// An informer that reads protobuf, and beside it one that reads JSON. Both experience the same faults, so a test
/// takes no longer than with one. Custom resources are always JSON, and have only one informer.
pub(crate) struct Mirror<K> {
    /// The informer of the first side.
    pub(crate) informer: SharedInformer<K>,
    sides: Vec<Side<K>>,
    news: Arc<Notify>,
    truth: Truth,
    metadata_only: bool,
}

impl<K: StaticKind> Mirror<K> {
    /// Starts the informers with two handlers each. They use `client`, the oracle uses `asks`.
    #[allow(clippy::needless_pass_by_value, reason = "each test makes a client for it")]
    pub(crate) fn start(client: Client, asks: Client, choice: &Choice) -> Self {
        let resource = ApiResource::erase::<K>(&());
        let metadata_only = K::metadata_api();
        let has_protobuf =
            metadata_only || kube_schema::message(&resource.api_version, &resource.kind).is_some();
        let news = Arc::new(Notify::new());
        let encodings = if has_protobuf { &[true, false][..] } else { &[false] };
        let start = |protobuf: &bool| Side::start(client.clone(), choice, *protobuf, &news);
        let sides: Vec<Side<K>> = encodings.iter().map(start).collect();
        let params = ListParams::default().labels(&choice.labels).fields(&choice.fields);
        let truth = Truth::new(asks, &resource, &choice.namespace, params, metadata_only);
        Self { informer: sides[0].informer.clone(), sides, news, truth, metadata_only }
    }

    /// Returns the number of informers.
    pub(crate) fn informers(&self) -> usize {
        self.sides.len()
    }

    /// Returns whether a condition holds for every informer.
    pub(crate) fn all(&self, is: impl Fn(&SharedInformer<K>) -> bool) -> bool {
        self.sides.iter().all(|side| is(&side.informer))
    }

    pub(crate) async fn wait_for_sync(&self) -> Result<()> {
        for side in &self.sides {
            side.informer.wait_for_sync().await?;
        }
        Ok(())
    }

    /// Registers another handler with each informer, late.
    pub(crate) fn join(&mut self) {
        self.sides.iter_mut().for_each(Side::join);
    }

    /// Returns the state that the first handler has folded. The handlers of the other informer have folded the same, except
    /// for the number of updates: a relist repeats unchanged objects as updates, and one informer may relist before the other.
    pub(crate) fn beliefs(&self) -> Beliefs {
        let mut all = self.sides.iter().map(Side::beliefs);
        let first = all.next().expect("there is an informer");
        for other in all {
            let other = Beliefs { updated: first.updated, ..other };
            assert_eq!(other, first, "in the other encoding, and in {}", self.sides[0].encoding());
        }
        first
    }

    /// Returns whether no informer has reported an error.
    pub(crate) fn is_untroubled(&self) -> bool {
        self.sides.iter().all(|side| side.errors().is_empty())
    }

    /// Returns whether every informer has reported such an error.
    pub(crate) fn has_reported(&self, is: impl Fn(&ErrorReport) -> bool) -> bool {
        self.sides.iter().all(|side| side.errors().iter().any(&is))
    }

    /// Returns how many errors each informer has reported so far.
    pub(crate) fn reported(&self) -> Vec<usize> {
        self.sides.iter().map(|side| side.errors().len()).collect()
    }

    /// Waits until every informer has reported such an error, and returns the first one.
    pub(crate) async fn error(&self, is: impl Fn(&ErrorReport) -> bool) -> Result<ErrorReport> {
        self.error_after(&vec![0; self.sides.len()], is).await
    }

    /// Does the same, but ignores errors that were [`reported`](Self::reported) before.
    pub(crate) async fn error_after(
        &self,
        before: &[usize],
        is: impl Fn(&ErrorReport) -> bool,
    ) -> Result<ErrorReport> {
        let deadline = Instant::now() + SETTLE_MAX;
        let mut first = None;
        for (side, count) in self.sides.iter().zip(before) {
            let mut states = side.informer.watch_state();
            let found = loop {
                if let Some(report) = side.errors().into_iter().skip(*count).find(&is) {
                    break report;
                }
                if Instant::now() > deadline {
                    bail!("no such error within {SETTLE_MAX:?}, but {}", self.story());
                }
                // Not every error changes the state.
                let _ = timeout(LOOK, states.changed()).await;
            };
            first = first.or(Some(found));
        }
        first.context("there is an informer")
    }

    /// Returns whether the informers fell back from streaming lists, according to their errors.
    pub(crate) fn fell_back(&self) -> bool {
        self.sides.iter().all(Side::fell_back)
    }

    /// Waits until all caches and handlers have the server's content, and checks that no handler received an event
    /// that it should not. Returns the number of objects.
    pub(crate) async fn settle(&self) -> Result<usize> {
        let deadline = Instant::now() + SETTLE_MAX;
        loop {
            let truth = self.truth.list().await?;
            let compared = self.sides.iter().try_for_each(|side| {
                side.compare(&truth, self.metadata_only)
                    .with_context(|| format!("the informer in {}", side.encoding()))
            });
            let Err(difference) = compared else { return Ok(truth.len()) };
            if Instant::now() > deadline {
                bail!("not settled within {SETTLE_MAX:?}: {difference:#}\n{}", self.story());
            }
            // The fault may be that there are no notifications.
            let _ = timeout(LOOK, self.news.notified()).await;
        }
    }

    /// Describes what happened, for failure messages.
    pub(crate) fn story(&self) -> String {
        self.sides.iter().map(Side::story).collect::<Vec<_>>().join("\n")
    }

    pub(crate) async fn end(self) {
        for side in self.sides {
            side.end().await;
        }
    }
}
