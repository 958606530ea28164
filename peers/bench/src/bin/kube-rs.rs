//! `bench-kube-rs`: kube-runtime's watcher and reflector, for `cargo xtask bench`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use peers_bench::arguments::Arguments;
use peers_bench::seen::Seen;
use peers_bench::talk::{self, Client};
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let began = Instant::now();
    let arguments = Arguments::of_process()?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(arguments.client())?;
    let (store, writer) = reflector::store();
    let config = watcher::Config::default();
    let (config, strip) = match &*arguments.form {
        "default" => (config, false),
        "streaming" => (config.streaming_lists(), false),
        "stripped" => (config, true),
        "streaming-stripped" => (config.streaming_lists(), true),
        other => {
            bail!("there is no form {other:?}: default, streaming, stripped, streaming-stripped")
        }
    };
    let events = {
        let _inside = runtime.enter();
        let events = watcher(Api::<Pod>::all(client), config).default_backoff();
        if strip {
            // As kube-runtime's documentation recommends.
            let events = events.modify(|pod| pod.managed_fields_mut().clear());
            events.reflect(writer).boxed()
        } else {
            events.reflect(writer).boxed()
        }
    };
    let peer = Peer { store, seen: Arc::default(), relist: Arc::default() };
    let (synced, is_synced) = channel();
    let (seen, relist) = (peer.seen.clone(), peer.relist.clone());
    runtime.spawn(run(events, seen, relist, synced));
    is_synced.recv().context("the watcher ended")?;
    talk::serve(&peer, began)
}

async fn run(
    mut events: BoxStream<'static, watcher::Result<Event<Pod>>>,
    seen: Arc<Seen>,
    relist: Arc<AtomicBool>,
    synced: std::sync::mpsc::Sender<()>,
) {
    let see = |pod: &Pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        seen.see(name, pod.metadata.resource_version.as_deref().unwrap_or_default());
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(pod) | Event::Delete(pod) | Event::InitApply(pod)) => see(&pod),
            Ok(Event::InitDone) => {
                // Only the first sync is awaited.
                let _ = synced.send(());
                if relist.load(Ordering::Relaxed) {
                    seen.end();
                }
            }
            // The watcher recovers by itself.
            Ok(Event::Init) | Err(_) => {}
        }
    }
}

struct Peer {
    store: Store<Pod>,
    seen: Arc<Seen>,
    relist: Arc<AtomicBool>,
}

impl Client for Peer {
    fn seen(&self) -> &Seen {
        &self.seen
    }

    fn handlers(&self) -> usize {
        1
    }

    fn objects(&self) -> usize {
        self.store.len()
    }

    fn expect_relist(&self) {
        self.relist.store(true, Ordering::Relaxed);
    }

    fn merged(&self) -> u64 {
        0
    }

    fn get(&self, namespace: &str, name: &str) -> bool {
        self.store.get(&ObjectRef::<Pod>::new(name).within(namespace)).is_some()
    }

    fn list(&self) -> usize {
        self.store.state().len()
    }

    /// Scans the store: there are no indexes.
    fn on_node(&self, node: &str) -> usize {
        let there = |pod: &Pod| {
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node))
        };
        self.store.state_filter(there).len()
    }
}
