//! The two that are compared: an informer with its handlers, and kube-runtime's watcher with a
//! reflector, both on the same client.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::{BoxStream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, Lookup, Store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use kube_informer::{
    Deleted, EventHandler, Object, Registration, SharedInformer, SharedInformerFactory, Storage,
};
use tokio::sync::watch;

use crate::script::{How, Script};

/// How pods are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Packed,
    Plain,
    Decoded,
    Metadata,
}

pub(crate) struct Ours {
    pub(crate) factory: SharedInformerFactory,
    pub(crate) pods: SharedInformer<Pod>,
    pub(crate) handlers: Vec<Registration>,
    counts: Vec<Arc<Count>>,
    ended: watch::Receiver<usize>,
}

impl Ours {
    /// An informer that is not started. Its handlers wait for this version, if it is one.
    pub(crate) fn new(script: &Script, how: How, kept: Kept, handlers: usize, last: &str) -> Self {
        let factory = SharedInformerFactory::new(script.client());
        let page = if how == How::Whole { u32::MAX } else { 500 };
        let pods = match kept {
            Kept::Packed => factory.builder_for::<Pod>().page_size(page).build(),
            Kept::Plain => {
                let plain = factory.builder_for::<Pod>().storage(Storage::Plain);
                plain.page_size(page).build()
            }
            Kept::Decoded => {
                let decoded = factory.builder_for::<Pod>().storage(Storage::Decoded);
                decoded.page_size(page).build()
            }
            Kept::Metadata => {
                let metadata = factory.builder_for::<PartialObjectMeta<Pod>>();
                metadata.page_size(page).build().cast()
            }
        };
        let (end, ended) = watch::channel(0);
        let (mut counts, mut registrations) = (Vec::new(), Vec::new());
        for _ in 0..handlers {
            let count = Arc::new(Count {
                events: AtomicU64::new(0),
                target: AtomicU64::new(u64::MAX),
                last: last.to_owned(),
                end: end.clone(),
            });
            counts.push(count.clone());
            registrations.push(pods.add_event_handler(Handler(count)));
        }
        Self { factory, pods, handlers: registrations, counts, ended }
    }

    /// Starts it, until every handler has seen the first list.
    pub(crate) async fn sync(&self) {
        self.factory.start();
        self.factory.wait_for_sync().await.expect("the informer syncs");
        for handler in &self.handlers {
            handler.wait_for_sync().await.expect("the handler syncs");
        }
    }

    /// Until every handler has seen the last version, or has been called so often in all.
    pub(crate) async fn ended(&mut self) {
        let handlers = self.handlers.len();
        self.ended.wait_for(|ended| *ended >= handlers).await.expect("the handlers are there");
    }

    pub(crate) fn expect_calls(&self, calls: u64) {
        for count in &self.counts {
            count.target.store(calls, Ordering::SeqCst);
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.counts.iter().map(|count| count.events.load(Ordering::SeqCst)).sum()
    }

    pub(crate) fn merged(&self) -> u64 {
        self.handlers.iter().map(Registration::merged).sum()
    }
}

struct Count {
    events: AtomicU64,
    target: AtomicU64,
    last: String,
    end: watch::Sender<usize>,
}

impl Count {
    fn count(&self, object: &Object<Pod>) {
        let events = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        let last = *object.resource_version() == *self.last;
        if last || events == self.target.load(Ordering::Relaxed) {
            self.end.send_modify(|ended| *ended += 1);
        }
    }
}

/// Does as little as a handler can that is to know when it has seen everything.
struct Handler(Arc<Count>);

impl EventHandler<Pod> for Handler {
    fn on_add(&mut self, object: &Object<Pod>, _initial: bool) {
        self.0.count(object);
    }
    fn on_update(&mut self, _: &Object<Pod>, new: &Object<Pod>) {
        self.0.count(new);
    }
    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        self.0.count(&deleted.object);
    }
}

/// kube-runtime's.
pub(crate) struct Peer<K: Lookup + Clone + 'static>
where
    K::DynamicType: Hash + Eq + Clone,
{
    pub(crate) store: Store<K>,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
}

fn config(how: How) -> watcher::Config {
    let config = watcher::Config { page_size: how.page_size(), ..watcher::Config::default() };
    if how == How::Streamed { config.streaming_lists() } else { config }
}

impl Peer<Pod> {
    /// Pods as they come.
    pub(crate) fn new(script: &Script, how: How) -> Self {
        let (store, writer) = reflector::store();
        let events = watcher(Api::all(script.client()), config(how));
        let events = events.default_backoff().reflect(writer).boxed();
        Self { store, events }
    }

    /// Pods without what its documentation advises to leave out.
    pub(crate) fn unmanaged(script: &Script, how: How) -> Self {
        let (store, writer) = reflector::store();
        let events = watcher(Api::all(script.client()), config(how)).default_backoff();
        let events = events.modify(|pod: &mut Pod| pod.managed_fields_mut().clear());
        Self { store, events: events.reflect(writer).boxed() }
    }
}

impl Peer<PartialObjectMeta<Pod>> {
    /// Metadata alone.
    pub(crate) fn metadata(script: &Script, how: How) -> Self {
        let (store, writer) = reflector::store();
        let events = watcher(Api::all(script.client()), config(how));
        let events = events.default_backoff().reflect(writer).boxed();
        Self { store, events }
    }
}

impl<K> Peer<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    /// Until a list is over; how many events that took.
    pub(crate) async fn sync(&mut self) -> u64 {
        self.run(|event| matches!(event, Event::InitDone)).await
    }

    /// Until an object of this version has come; how many events that took.
    pub(crate) async fn until(&mut self, version: &str) -> u64 {
        let is_last = |object: &K| object.meta().resource_version.as_deref() == Some(version);
        self.run(|event| matches!(event, Event::Apply(object) if is_last(object))).await
    }

    async fn run(&mut self, last: impl Fn(&Event<K>) -> bool) -> u64 {
        let mut count = 0;
        loop {
            match self.events.next().await.expect("a watcher does not end") {
                Ok(event) if last(&event) => {
                    return count + u64::from(matches!(event, Event::Apply(_)));
                }
                Ok(Event::Apply(_) | Event::Delete(_) | Event::InitApply(_)) => count += 1,
                // The end of a watch comes as an error; what it does then is what we want to see.
                Ok(_) | Err(_) => {}
            }
        }
    }
}
