//! etcd: the storage, and its administration.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::process::{GLANCE, Process, SharedLeash};

/// The time within which it must answer after a start.
const READY_MAX: Duration = Duration::from_secs(60);

/// The range of our ports. It excludes the ports that the system assigns to outgoing connections: one of those could
/// take a port while its server is down, even by connecting to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A copy of all data at one moment. It is removed with the server.
#[derive(Clone, Debug)]
pub struct Snapshot {
    file: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Etcd {
    process: Process,
    programs: PathBuf,
    directory: PathBuf,
    ports: (u16, u16),
    /// The number of times the data were replaced or copied.
    copies: u32,
    leash: SharedLeash,
}

impl Etcd {
    pub(crate) async fn start(
        programs: &Path,
        directory: &Path,
        leash: &SharedLeash,
    ) -> Result<Self> {
        let ports = (free_port()?, free_port()?);
        let data = directory.join("etcd-0");
        let process = Self::process(programs, directory, &data, ports, leash)?;
        let mut etcd = Self {
            process,
            programs: programs.to_owned(),
            directory: directory.to_owned(),
            ports,
            copies: 0,
            leash: leash.clone(),
        };
        etcd.ready().await?;
        Ok(etcd)
    }

    fn process(
        programs: &Path,
        directory: &Path,
        data: &Path,
        (clients, peers): (u16, u16),
        leash: &SharedLeash,
    ) -> Result<Process> {
        let clients = format!("http://127.0.0.1:{clients}");
        let peers = format!("http://127.0.0.1:{peers}");
        let arguments = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            // Power failures are not tested.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        Process::start("etcd", &programs.join("etcd"), &arguments, directory, leash)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.0)
    }

    async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_MAX;
        loop {
            self.process.check()?;
            match self.ctl(&["endpoint", "health"]).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    return Err(error.context("etcd does not become ready"));
                }
                Err(_) => sleep(GLANCE).await,
            }
        }
    }

    /// Compacts to the current revision, and returns it.
    pub(crate) async fn compact(&self) -> Result<u64> {
        let status = self.ctl(&["endpoint", "status", "--write-out=json"]).await?;
        let status: Value = serde_json::from_str(&status)?;
        let revision = status[0]["Status"]["header"]["revision"].as_u64();
        let revision = revision.context("the status of etcd has no revision")?;
        self.ctl(&["compaction", "--physical", &revision.to_string()]).await?;
        Ok(revision)
    }

    pub(crate) async fn snapshot(&mut self) -> Result<Snapshot> {
        self.copies += 1;
        let file = self.directory.join(format!("snapshot-{}", self.copies));
        self.ctl(&["snapshot", "save", &file.display().to_string()]).await?;
        Ok(Snapshot { file })
    }

    /// Replaces all data, which must not be in use. With `bump`, versions are raised by that much, as Kubernetes
    /// recommends; otherwise they go back.
    pub(crate) async fn restore(&mut self, snapshot: &Snapshot, bump: Option<u64>) -> Result<()> {
        self.process.stop().await?;
        self.copies += 1;
        let data = self.directory.join(format!("etcd-{}", self.copies));
        let peers = format!("http://127.0.0.1:{}", self.ports.1);
        let mut arguments = vec![
            "snapshot".to_owned(),
            "restore".to_owned(),
            snapshot.file.display().to_string(),
            format!("--data-dir={}", data.display()),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ];
        if let Some(bump) = bump {
            arguments.extend([format!("--bump-revision={bump}"), "--mark-compacted".to_owned()]);
        }
        run(&self.programs.join("etcdutl"), &arguments).await?;
        self.process =
            Self::process(&self.programs, &self.directory, &data, self.ports, &self.leash)?;
        self.ready().await
    }

    async fn ctl(&self, arguments: &[&str]) -> Result<String> {
        let mut all = vec![format!("--endpoints={}", self.url())];
        all.extend(arguments.iter().map(|&argument| argument.to_owned()));
        run(&self.programs.join("etcdctl"), &all).await
    }
}

async fn run(program: &Path, arguments: &[String]) -> Result<String> {
    let output = Command::new(program).args(arguments).kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{} {}: {}", program.display(), arguments.join(" "), text.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a port that is free now. Another process may take it before it is used, so the caller has to retry.
pub(crate) fn free_port() -> Result<u16> {
    for _ in 0..1000 {
        let port = fastrand::u16(PORTS);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port between {} and {} is free", PORTS.start, PORTS.end)
}
