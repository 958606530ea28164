//! One informer of a mirror, which reads one of the two encodings, with its handlers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use anyhow::{Result, ensure};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube_informer::{ErrorReport, Next, SharedInformer, SharedInformerFactory, StaticKind};
use serde_json::Value;
use tokio::sync::Notify;

use super::fold::{Beliefs, Fold, state};
use super::mirror::Choice;
use super::truth::{self, plain};

pub(crate) struct Side<K> {
    pub(crate) informer: SharedInformer<K>,
    protobuf: bool,
    factory: SharedInformerFactory,
    folds: Vec<Fold>,
    news: Arc<Notify>,
    errors: Arc<Mutex<Vec<ErrorReport>>>,
    answers: Answers,
}

impl<K: StaticKind> Side<K> {
    /// Starts an informer with two handlers.
    pub(crate) fn start(
        client: Client,
        choice: &Choice,
        protobuf: bool,
        news: &Arc<Notify>,
    ) -> Self {
        let errors = Arc::<Mutex<Vec<ErrorReport>>>::default();
        let reports = errors.clone();
        let answers = Answers { client, seen: Arc::default() };
        let client = Client::new(answers.clone(), "default");
        let factory = SharedInformerFactory::builder(client).namespace(&choice.namespace).build();
        let informer = factory
            .builder_for::<K>()
            .labels(&choice.labels)
            .fields(&choice.fields)
            .protobuf(protobuf)
            .on_error(move |report| {
                reports.lock().unwrap_or_else(PoisonError::into_inner).push(report.clone());
            })
            .build();
        let folds = vec![Fold::of_events(&informer, news), Fold::of_callbacks(&informer, news)];
        factory.start();
        Self { informer, protobuf, factory, folds, news: news.clone(), errors, answers }
    }

    /// Registers another handler, late.
    pub(crate) fn join(&mut self) {
        self.folds.push(Fold::of_events(&self.informer, &self.news));
    }

    /// Returns the state that the first handler has folded.
    pub(crate) fn beliefs(&self) -> Beliefs {
        self.folds[0].beliefs()
    }

    pub(crate) fn errors(&self) -> Vec<ErrorReport> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the informer fell back from streaming lists, according to its errors.
    pub(crate) fn fell_back(&self) -> bool {
        self.errors().iter().any(|report| report.next == Next::FallBackToList)
    }

    /// Compares the cache and the state of all handlers with a list, and checks the handlers' events.
    pub(crate) fn compare(
        &self,
        truth: &BTreeMap<String, Value>,
        metadata_only: bool,
    ) -> Result<()> {
        let cache = self.informer.lister().list().into_iter().map(|object| {
            let body: Value = serde_json::from_slice(&object.to_json()?)?;
            Ok((object.key().to_string(), (state(&object), plain(body, metadata_only))))
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

    pub(crate) fn encoding(&self) -> &'static str {
        if self.protobuf { "protobuf" } else { "JSON" }
    }

    /// Describes what happened, for failure messages.
    pub(crate) fn story(&self) -> String {
        let errors: Vec<String> = self.errors().iter().map(ToString::to_string).collect();
        let (encoding, status) = (self.encoding(), self.informer.status());
        format!("in {encoding}: {status:?}\nerrors:\n{}", errors.join("\n"))
    }

    /// Ends the informer, and checks that all responses were in its encoding.
    pub(crate) async fn end(self) {
        self.factory.shutdown().await;
        let seen = *self.answers.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, other) = if self.protobuf { seen } else { (seen.1, seen.0) };
        assert!(own > 0 && other == 0, "protobuf and others: {seen:?}; {}", self.story());
    }
}

/// A client that counts the encodings of its responses.
#[derive(Clone)]
struct Answers {
    client: Client,
    /// The number of responses in protobuf, and of all others.
    seen: Arc<Mutex<(usize, usize)>>,
}

impl tower_service::Service<Request<Body>> for Answers {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = kube::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, seen } = self.clone();
        Box::pin(async move {
            let answer = client.send(request).await?;
            if answer.status().is_success() {
                let content_type = answer.headers().get("content-type");
                let is_protobuf = content_type.is_some_and(|content_type| {
                    content_type.as_bytes().starts_with(kube_schema::MEDIA_TYPE.as_bytes())
                });
                let (protobuf, others) = &mut *seen.lock().unwrap_or_else(PoisonError::into_inner);
                *(if is_protobuf { protobuf } else { others }) += 1;
            }
            Ok(answer)
        })
    }
}
