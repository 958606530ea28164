//! `bench-ours`: an informer, for `cargo xtask bench`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kube_informer::{
    Deleted, EventHandler, Index, Lister, Object, Registration, SharedInformer,
    SharedInformerFactory, Storage,
};
use peers_bench::arguments::Arguments;
use peers_bench::seen::Seen;
use peers_bench::talk::{self, Client};
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let began = Instant::now();
    let arguments = Arguments::of_process()?;
    let runtime = Runtime::new()?;
    let ours = runtime.block_on(Ours::synced(&arguments))?;
    talk::serve(&ours, began)
}

struct Ours {
    _factory: SharedInformerFactory,
    lister: Lister<Pod>,
    by_node: Option<Index<Pod>>,
    handlers: Vec<Registration>,
    seen: Arc<Seen>,
    /// While a relist is expected: the number of calls after which a handler has received the whole list.
    relist: Arc<AtomicU64>,
}

impl Ours {
    async fn synced(arguments: &Arguments) -> Result<Self> {
        let factory = SharedInformerFactory::new(arguments.client().await?);
        let pods: SharedInformer<Pod> = match &*arguments.form {
            "packed" | "snapshot" => factory.informer(),
            "warm" => factory.builder_for().warm_start(&arguments.snapshot).build(),
            "json" => factory.builder_for().protobuf(false).build(),
            "plain" => factory.builder_for().storage(Storage::Plain).build(),
            "decoded" => factory.builder_for().storage(Storage::Decoded).build(),
            "metadata" => factory.builder_for::<PartialObjectMeta<Pod>>().build().cast(),
            other => bail!(
                "there is no form {other:?}: packed, snapshot, warm, json, plain, decoded, metadata"
            ),
        };
        let by_node = arguments.index.then(|| pods.index_by_field("spec.nodeName")).transpose()?;
        let (seen, relist) = (Arc::new(Seen::default()), Arc::new(AtomicU64::new(0)));
        let handler = |_| {
            let (seen, relist) = (seen.clone(), relist.clone());
            pods.add_event_handler(Handler { seen, relist, calls: 0 })
        };
        let handlers: Vec<Registration> = (0..arguments.handlers).map(handler).collect();
        factory.start();
        factory.wait_for_sync().await?;
        for handler in &handlers {
            handler.wait_for_sync().await?;
        }
        if arguments.form == "snapshot" {
            pods.snapshot(&arguments.snapshot).await?;
        }
        let lister = pods.lister();
        Ok(Self { _factory: factory, lister, by_node, handlers, seen, relist })
    }
}

struct Handler {
    seen: Arc<Seen>,
    relist: Arc<AtomicU64>,
    /// The number of calls since a relist was expected.
    calls: u64,
}

impl Handler {
    fn see(&mut self, object: &Object<Pod>) {
        self.seen.see(object.name(), object.resource_version().as_str());
        let expected = self.relist.load(Ordering::Relaxed);
        if expected > 0 {
            self.calls += 1;
            if self.calls == expected {
                self.seen.end();
            }
        }
    }
}

impl EventHandler<Pod> for Handler {
    fn on_add(&mut self, object: &Object<Pod>, _initial: bool) {
        self.see(object);
    }

    fn on_update(&mut self, _old: &Object<Pod>, new: &Object<Pod>) {
        self.see(new);
    }

    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        self.see(&deleted.object);
    }
}

impl Client for Ours {
    fn seen(&self) -> &Seen {
        &self.seen
    }

    fn handlers(&self) -> usize {
        self.handlers.len()
    }

    fn objects(&self) -> usize {
        self.lister.len()
    }

    fn expect_relist(&self) {
        self.relist.store(self.objects() as u64, Ordering::Relaxed);
    }

    fn merged(&self) -> u64 {
        self.handlers.iter().map(Registration::merged).sum()
    }

    fn get(&self, namespace: &str, name: &str) -> bool {
        self.lister.get((namespace, name)).is_some()
    }

    fn list(&self) -> usize {
        self.lister.list().len()
    }

    fn on_node(&self, node: &str) -> usize {
        self.by_node.as_ref().map_or(0, |index| index.get(node).len())
    }
}
