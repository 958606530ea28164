//! `bench-controller-ours`: our controller, for `cargo xtask bench`.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Action, Controller, Request, SharedInformerFactory};
use peers_bench::arguments::Arguments;
use peers_bench::reconciling::Reconciling;
use peers_bench::talk;
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let began = Instant::now();
    let arguments = Arguments::of_process()?;
    let runtime = Runtime::new()?;
    let factory = SharedInformerFactory::new(runtime.block_on(arguments.client())?);
    let pods = factory.builder_for::<Pod>().protobuf(arguments.form != "json").build();
    let lister = pods.lister();
    let peer = Reconciling::new(move || lister.len());
    let seen = peer.seen.clone();
    let controller = Controller::new(&pods).workers(arguments.handlers);
    runtime.spawn(controller.run(move |request: Request<Pod>| {
        let seen = Arc::clone(&seen);
        async move {
            if let Some(pod) = &request.object {
                seen.see(pod.name(), pod.resource_version().as_str());
            }
            Ok::<_, anyhow::Error>(Action::await_change())
        }
    }));
    {
        let _inside = runtime.enter();
        pods.start();
    }
    runtime.block_on(async { pods.wait_for_sync().await })?;
    peer.wait_for_first();
    talk::serve(&peer, began)
}
