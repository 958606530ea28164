//! `bench-controller-kube-rs`: kube-runtime's controller, for `cargo xtask bench`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::stream::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use peers_bench::arguments::Arguments;
use peers_bench::reconciling::Reconciling;
use peers_bench::seen::Seen;
use peers_bench::talk;
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let began = Instant::now();
    let arguments = Arguments::of_process()?;
    let runtime = Runtime::new()?;
    let api = Api::<Pod>::all(runtime.block_on(arguments.client())?);
    let _inside = runtime.enter();
    let watcher = watcher::Config::default().streaming_lists();
    let workers = u16::try_from(arguments.handlers)?;
    let controller =
        Controller::new(api, watcher).with_config(Config::default().concurrency(workers));
    let store = controller.store();
    let cached = store.clone();
    let peer = Reconciling::new(move || cached.len());
    let results = controller.run(reconcile, error_policy, peer.seen.clone());
    runtime.spawn(results.for_each(|_| std::future::ready(())));
    // The controller itself waits until its store is ready. Calling `wait_until_ready` here would replace its waker,
    // because kube-runtime keeps only the last one, and nothing would be reconciled.
    while store.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    peer.wait_for_first();
    talk::serve(&peer, began)
}

async fn reconcile(pod: Arc<Pod>, seen: Arc<Seen>) -> Result<Action, Infallible> {
    let metadata = &pod.metadata;
    let version = metadata.resource_version.as_deref().unwrap_or_default();
    seen.see(metadata.name.as_deref().unwrap_or_default(), version);
    Ok(Action::await_change())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "its shape is kube-runtime's")]
fn error_policy(_: Arc<Pod>, _: &Infallible, _: Arc<Seen>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
