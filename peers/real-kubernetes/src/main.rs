//! Runs the real Kubernetes until Ctrl-C: `cargo xtask real-kubernetes up`. Arguments are flags of kube-apiserver.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};
use real_kubernetes::{Builder, RealKubernetes};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    // Registered before there is anything to clean up.
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let began = Instant::now();
    let builder = env::args().skip(1).fold(RealKubernetes::builder(), Builder::flag);
    let kubernetes = tokio::select! {
        biased;
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
        started = builder.start() => started?,
    };
    let kubernetes = kubernetes.context("the programs are not built")?;
    eprintln!("==> ready after {:.0} s; Ctrl-C ends it", began.elapsed().as_secs_f64());
    println!("export KUBECONFIG={}", kubernetes.kubeconfig().display());
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
