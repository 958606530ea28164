//! Handovers between leaders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use embedded_apiserver::ApiServer;
use futures::future::try_join_all;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use real_kubernetes::{RealKubernetes, programs};
use rustix::process::Signal;

use crate::process::{Elector, Process};
use crate::records::Records;

/// How the first leader ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// It is asked to stop, and releases the lease.
    Release,
    Kill,
    /// It is paused, and continued once the other candidate leads.
    Pause,
}

const ENDS: [End; 3] = [End::Release, End::Kill, End::Pause];

/// Performs one handover on a server, on its own Lease.
async fn hand_over(kubeconfig: &Path, from: Elector, to: Elector, end: End) -> Result<()> {
    let lease = format!("{}-{}-{end:?}", name(&from), name(&to)).to_lowercase();
    let records = Records::of(client(kubeconfig).await?, &lease).await?;
    let mut first = Process::start(&from, "first", &lease, kubeconfig)?;
    first.says("leads").await?;
    let mut second = Process::start(&to, "second", &lease, kubeconfig)?;
    second.says("leader first").await?;

    first.signal(match end {
        End::Release => Signal::TERM,
        End::Kill => Signal::KILL,
        End::Pause => Signal::STOP,
    })?;
    second.says("leads").await?;
    if end == End::Pause {
        first.signal(Signal::CONT)?;
    }
    if end != End::Kill {
        first.says("ended").await?;
    }
    let first = first.ended().await?;
    second.signal(Signal::TERM)?;
    second.says("ended").await?;
    let second = second.ended().await?;

    // client-go 0.36 does not retry a release that conflicts with a pending renewal.
    let over = records.judge(matches!(to, Elector::Ours)).await?;
    let last = over.released.unwrap_or(over.acquired);
    if matches!(from, Elector::Ours) {
        ensure!(!first.is_empty(), "the first leader did not work");
        let late: Vec<_> = first.iter().filter(|step| **step >= last).collect();
        ensure!(
            late.is_empty(),
            "the first leader worked when it led no longer: {late:?}, {over:?}"
        );
    }
    let early: Vec<_> = second.iter().filter(|step| **step < over.acquired).collect();
    ensure!(early.is_empty(), "the second leader worked before it led: {early:?}, {over:?}");
    Ok(())
}

fn name(elector: &Elector) -> &'static str {
    match elector {
        Elector::Ours => "ours",
        Elector::ClientGo(_) => "client-go",
    }
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Runs all three endings concurrently, on an embedded server.
async fn on_embedded(from: Elector, to: Elector) -> Result<()> {
    let server = ApiServer::start();
    let socket = server.listen("127.0.0.1:0").await?;
    let file = format!("{}-{}.kubeconfig", name(&from), name(&to));
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    socket.write_kubeconfig(&kubeconfig)?;
    every_end(&kubeconfig, &from, &to).await?;
    socket.shutdown().await;
    fs::remove_file(kubeconfig)?;
    Ok(())
}

async fn every_end(kubeconfig: &Path, from: &Elector, to: &Elector) -> Result<()> {
    let all = ENDS.map(|end| async move {
        let done = hand_over(kubeconfig, from.clone(), to.clone(), end).await;
        done.with_context(|| format!("from {} to {} by {end:?}", name(from), name(to)))
    });
    try_join_all(all).await?;
    Ok(())
}

fn client_go() -> Option<PathBuf> {
    programs().map(|directory| directory.join("leader-election"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_to_ours() -> Result<()> {
    on_embedded(Elector::Ours, Elector::Ours).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_to_client_go() -> Result<()> {
    let Some(program) = client_go() else { return Ok(()) };
    on_embedded(Elector::Ours, Elector::ClientGo(program)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_to_ours() -> Result<()> {
    let Some(program) = client_go() else { return Ok(()) };
    on_embedded(Elector::ClientGo(program), Elector::Ours).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_them_on_the_real_server() -> Result<()> {
    let Some(program) = client_go() else { return Ok(()) };
    let Some(kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    let theirs = Elector::ClientGo(program);
    for (from, to) in
        [(&Elector::Ours, &Elector::Ours), (&Elector::Ours, &theirs), (&theirs, &Elector::Ours)]
    {
        every_end(kubernetes.kubeconfig(), from, to).await?;
    }
    Ok(())
}
