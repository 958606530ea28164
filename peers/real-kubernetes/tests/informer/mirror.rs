//! An informer, its handlers, and the comparison with the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use kube::Client;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube_informer::{ErrorReport, Next, SharedInformer, SharedInformerFactory, StaticKind};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::fold::{Beliefs, Fold, state};
use super::truth::{self, Truth, plain};

/// How long a cache may take to become the server's content after a trouble: a silent watch is noticed within 75
/// seconds, pauses are up to a minute, and the machine is busy.
const SETTLE_MAX: Duration = Duration::from_secs(240);

/// How often it is looked without news.
const LOOK: Duration = Duration::from_secs(1);

/// Which objects of a namespace.
#[derive(Default, Clone)]
pub(crate) struct Choice {
    pub(crate) namespace: String,
    pub(crate) labels: String,
    pub(crate) fields: String,
}

pub(crate) struct Mirror<K> {
    pub(crate) informer: SharedInformer<K>,
    factory: SharedInformerFactory,
    folds: Vec<Fold>,
    news: Arc<Notify>,
    errors: Arc<Mutex<Vec<ErrorReport>>>,
    truth: Truth,
    metadata_only: bool,
}

impl<K: StaticKind> Mirror<K> {
    /// Starts an informer with two handlers. `client` is the informer's, `asks` that of the oracle.
    pub(crate) fn start(client: Client, asks: Client, choice: &Choice) -> Self {
        let errors = Arc::<Mutex<Vec<ErrorReport>>>::default();
        let reports = errors.clone();
        let factory = SharedInformerFactory::builder(client).namespace(&choice.namespace).build();
        let informer = factory
            .builder_for::<K>()
            .labels(&choice.labels)
            .fields(&choice.fields)
            .on_error(move |report| {
                reports.lock().unwrap_or_else(PoisonError::into_inner).push(report.clone());
            })
            .build();
        let news = Arc::new(Notify::new());
        let folds = vec![Fold::of_events(&informer, &news), Fold::of_callbacks(&informer, &news)];
        factory.start();
        let params = ListParams::default().labels(&choice.labels).fields(&choice.fields);
        let resource = ApiResource::erase::<K>(&());
        let metadata_only = K::metadata_api();
        let truth = Truth::new(asks, &resource, &choice.namespace, params, metadata_only);
        Self { informer, factory, folds, news, errors, truth, metadata_only }
    }

    /// Another handler, which comes late.
    pub(crate) fn join(&mut self) {
        self.folds.push(Fold::of_events(&self.informer, &self.news));
    }

    /// What the first handler believes.
    pub(crate) fn beliefs(&self) -> Beliefs {
        self.folds[0].beliefs()
    }

    pub(crate) fn errors(&self) -> Vec<ErrorReport> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until there is such an error, and gives it.
    pub(crate) async fn error(&self, is: impl Fn(&ErrorReport) -> bool) -> Result<ErrorReport> {
        self.error_after(0, is).await
    }

    /// The same, but not one of the first so many.
    pub(crate) async fn error_after(
        &self,
        count: usize,
        is: impl Fn(&ErrorReport) -> bool,
    ) -> Result<ErrorReport> {
        let deadline = Instant::now() + SETTLE_MAX;
        let mut states = self.informer.watch_state();
        loop {
            if let Some(report) = self.errors().into_iter().skip(count).find(&is) {
                return Ok(report);
            }
            if Instant::now() > deadline {
                bail!("no such error within {SETTLE_MAX:?}, but {}", self.story());
            }
            // An error changes the state, or nothing does.
            let _ = timeout(LOOK, states.changed()).await;
        }
    }

    /// Whether lists are streamed, as far as errors tell.
    pub(crate) fn fell_back(&self) -> bool {
        self.errors().iter().any(|report| report.next == Next::FallBackToList)
    }

    /// Waits until the cache and all handlers have what the server has, and checks that no handler was told
    /// what it should not be. Gives how many objects these are.
    pub(crate) async fn settle(&self) -> Result<usize> {
        let deadline = Instant::now() + SETTLE_MAX;
        loop {
            let truth = self.truth.list().await?;
            let Err(difference) = self.compare(&truth) else { return Ok(truth.len()) };
            if Instant::now() > deadline {
                bail!("not settled within {SETTLE_MAX:?}: {difference}\n{}", self.story());
            }
            // No news may be what is wrong.
            let _ = timeout(LOOK, self.news.notified()).await;
        }
    }

    fn compare(&self, truth: &BTreeMap<String, Value>) -> Result<()> {
        let cache = self.informer.lister().list().into_iter().map(|object| {
            let body: Value = serde_json::from_slice(&object.to_json()?)?;
            Ok((object.key().to_string(), (state(&object), plain(body, self.metadata_only))))
        });
        let cache: BTreeMap<_, _> = cache.collect::<Result<_>>()?;
        let keys: Vec<_> = cache.keys().collect();
        ensure!(
            keys.iter().copied().eq(truth.keys()),
            "the cache has {keys:?}, not {:?}",
            truth.keys()
        );
        for ((key, (known, body)), said) in cache.iter().zip(truth.values()) {
            ensure!(
                *known == truth::state(said),
                "{key} is {known:?}, not {:?}",
                truth::state(said)
            );
            ensure!(body == said, "the bodies of {key} differ:\n{body}\n{said}");
        }
        for fold in &self.folds {
            let beliefs = fold.beliefs();
            ensure!(beliefs.synced, "a handler has not been told that it is in sync");
            ensure!(beliefs.wrong.is_empty(), "wrongly told: {:?}", beliefs.wrong);
            let view = beliefs.view.iter();
            let known = cache.iter().map(|(key, (known, _))| (key, known));
            ensure!(view.eq(known), "a handler has {:?}, not {keys:?}", beliefs.view);
        }
        Ok(())
    }

    /// What happened, for somebody who wonders.
    pub(crate) fn story(&self) -> String {
        let errors: Vec<String> = self.errors().iter().map(ToString::to_string).collect();
        format!("{:?}\nerrors:\n{}", self.informer.status(), errors.join("\n"))
    }

    pub(crate) async fn end(self) {
        self.factory.shutdown().await;
    }
}
