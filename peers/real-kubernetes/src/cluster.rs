//! kube-apiserver and etcd together.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use kube::Client;
use rustix::process::Signal;

use crate::access::{self, ADMIN, Access, READER};
use crate::apiserver::ApiServer;
use crate::certificates;
use crate::etcd::{Etcd, Snapshot, free_port};
use crate::gate::Gate;
use crate::leash::Leash;
use crate::process::SharedLeash;
use crate::programs::programs;

/// The number of attempts to start, in case another process takes a port.
const TRIES: u32 = 3;

/// How far [`RealKubernetes::restore_bumped`] raises versions; the value is from Kubernetes' documentation.
const BUMP: u64 = 1_000_000_000;

/// Running instances of kube-apiserver and etcd. They end when this is dropped, and also if this process dies.
///
/// There are two users with tokens: an administrator, and `reader`, which has only the permissions that roles grant.
#[derive(Debug)]
pub struct RealKubernetes {
    port: u16,
    kubeconfig: PathBuf,
    of_reader: PathBuf,
    access: Access,
    // In the order in which they are dropped.
    apiserver: ApiServer,
    etcd: Etcd,
    _leash: SharedLeash,
}

/// Builds a [`RealKubernetes`].
#[derive(Debug, Default)]
#[must_use = "nothing runs until start"]
pub struct Builder {
    flags: Vec<String>,
}

impl Builder {
    /// Adds a flag of kube-apiserver, such as `--watch-cache=false` or `--feature-gates=WatchList=false`.
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Starts both and waits until they are ready. If the programs are not available, prints one line and returns
    /// `None`: see [`programs()`].
    pub async fn start(self) -> Result<Option<RealKubernetes>> {
        let Some(programs) = programs() else { return Ok(None) };
        let mut tried = 1;
        loop {
            match RealKubernetes::at(&programs, &self.flags).await {
                Ok(started) => return Ok(Some(started)),
                Err(error) if tried < TRIES && port_is_taken(&error) => tried += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl RealKubernetes {
    /// Starts both with default options.
    pub async fn start() -> Result<Option<Self>> {
        Self::builder().start().await
    }

    /// Returns a builder for other options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    async fn at(programs: &Path, flags: &[String]) -> Result<Self> {
        let directory = new_directory(programs)?;
        let leash = Arc::new(Mutex::new(Leash::new(&directory)?));
        let authority = certificates::write(&directory)?;
        let access = Access::new(&directory, authority)?;
        let port = free_port()?;
        let kubeconfig = access.kubeconfig(ADMIN, port)?;
        let of_reader = access.kubeconfig(READER, port)?;
        let etcd = Etcd::start(programs, &directory, &leash).await?;
        let ends = (&*etcd.url(), port);
        let mut apiserver = ApiServer::new(programs, &directory, &leash, ends, &access, flags);
        apiserver.start(&kubeconfig).await?;
        Ok(Self { port, kubeconfig, of_reader, access, apiserver, etcd, _leash: leash })
    }

    /// Returns the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns a new client for the administrator, built as typical programs build it. A client belongs to the
    /// runtime that first uses it.
    pub async fn client(&self) -> Result<Client> {
        access::client(&self.kubeconfig, true).await
    }

    /// Returns a client for the user `reader`, which has only the permissions that roles grant.
    pub async fn reader(&self) -> Result<Client> {
        access::client(&self.of_reader, true).await
    }

    /// Returns a gate in front of the server, and clients of the administrator and of `reader` that connect through
    /// it.
    pub async fn gate(&self) -> Result<(Gate, Client, Client)> {
        let gate = Gate::to(self.port).await?;
        let admin = access::client(&self.access.kubeconfig(ADMIN, gate.port())?, true).await?;
        let reader = access::client(&self.access.kubeconfig(READER, gate.port())?, true).await?;
        Ok((gate, admin, reader))
    }

    /// Stops kube-apiserver gracefully, and starts it again.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.start_again().await
    }

    /// Stops kube-apiserver gracefully.
    pub async fn stop(&mut self) -> Result<()> {
        self.apiserver.process()?.stop().await?;
        self.apiserver.gone();
        Ok(())
    }

    /// Kills kube-apiserver.
    pub fn kill9(&mut self) -> Result<()> {
        self.apiserver.process()?.kill()?;
        self.apiserver.gone();
        Ok(())
    }

    /// Starts kube-apiserver again after it was killed or stopped, and waits until it is ready.
    pub async fn start_again(&mut self) -> Result<()> {
        self.apiserver.start(&self.kubeconfig).await
    }

    /// Pauses kube-apiserver (`SIGSTOP`): connections stay open, and nothing is answered.
    pub fn pause(&mut self) -> Result<()> {
        self.apiserver.process()?.signal(Signal::STOP)
    }

    /// Continues it (`SIGCONT`).
    pub fn resume(&mut self) -> Result<()> {
        self.apiserver.process()?.signal(Signal::CONT)
    }

    /// Compacts etcd to its current revision, and returns that.
    pub async fn compact(&self) -> Result<u64> {
        self.etcd.compact().await
    }

    /// Copies all stored data.
    pub async fn snapshot(&mut self) -> Result<Snapshot> {
        self.etcd.snapshot().await
    }

    /// Restores the snapshot, including versions. kube-apiserver is down in the meantime.
    pub async fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.restore_with(snapshot, None).await
    }

    /// Restores the snapshot with versions higher than any before, as Kubernetes' documentation recommends.
    pub async fn restore_bumped(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.restore_with(snapshot, Some(BUMP)).await
    }

    async fn restore_with(&mut self, snapshot: &Snapshot, bump: Option<u64>) -> Result<()> {
        self.stop().await?;
        self.etcd.restore(snapshot, bump).await?;
        self.start_again().await
    }

    /// Revokes the token of `reader`, so that kube-apiserver returns 401. It reads tokens only when it starts, so it
    /// is restarted.
    pub async fn revoke_reader(&mut self) -> Result<()> {
        self.access.set_revoked(READER, true)?;
        self.restart().await
    }

    /// Makes that token valid again, in the same way.
    pub async fn restore_reader(&mut self) -> Result<()> {
        self.access.set_revoked(READER, false)?;
        self.restart().await
    }
}

fn port_is_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

/// Creates a directory beside the programs, where it cannot be confused with valuable data.
fn new_directory(programs: &Path) -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let place = programs.parent().unwrap_or(programs).join("run");
    let directory = place.join(format!("{}-{number}", std::process::id()));
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory.canonicalize()?)
}
