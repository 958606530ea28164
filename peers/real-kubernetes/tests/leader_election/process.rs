//! Candidates as processes, and the lines that they print.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::candidate::{IDENTITY, KUBECONFIG, LEASE, LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD};

/// The timeout of every wait; only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The implementation that a candidate uses.
#[derive(Clone, Debug)]
pub(crate) enum Elector {
    Ours,
    /// The program in `peers/leader-election`.
    ClientGo(PathBuf),
}

/// A candidate. It is killed when this value is dropped.
pub(crate) struct Process {
    identity: &'static str,
    child: Child,
    lines: watch::Receiver<Vec<String>>,
}

impl Process {
    pub(crate) fn start(
        elector: &Elector,
        identity: &'static str,
        lease: &str,
        kubeconfig: &Path,
    ) -> Result<Self> {
        let mut command = match elector {
            Elector::Ours => ours(identity, lease, kubeconfig)?,
            Elector::ClientGo(program) => client_go(program, identity, lease, kubeconfig),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn().context("cannot run the candidate")?;
        let mut output = BufReader::new(child.stdout.take().context("it is a pipe")?).lines();
        let (writer, lines) = watch::channel(Vec::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                writer.send_modify(|lines: &mut Vec<String>| lines.push(line));
            }
        });
        Ok(Self { identity, child, lines })
    }

    /// Waits until it has printed this line.
    pub(crate) async fn says(&mut self, line: &str) -> Result<()> {
        let identity = self.identity;
        let said = self.lines.wait_for(|lines| lines.iter().any(|said| said == line));
        match timeout(PATIENCE, said).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => bail!("{identity} ended before it said {line:?}"),
            Err(_) => bail!("{identity} did not say {line:?}"),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        kill_process(id.context("it has ended")?, signal)
            .with_context(|| format!("cannot send {signal:?} to {}", self.identity))
    }

    /// Waits until it has ended, and returns the times at which it worked as leader, in microseconds of the wall
    /// clock.
    pub(crate) async fn ended(mut self) -> Result<Vec<i64>> {
        timeout(PATIENCE, self.child.wait()).await.context("it does not end")??;
        // The channel closes when all output has been read.
        while self.lines.changed().await.is_ok() {}
        let lines = self.lines.borrow();
        let steps = lines.iter().filter_map(|line| line.strip_prefix("step "));
        // If the process was killed, its last line may be truncated.
        Ok(steps.filter(|step| step.len() == 16).filter_map(|step| step.parse().ok()).collect())
    }
}

fn ours(identity: &str, lease: &str, kubeconfig: &Path) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["--exact", "candidate::candidate", "--nocapture"]);
    command.env(KUBECONFIG, kubeconfig).env(IDENTITY, identity).env(LEASE, lease);
    Ok(command)
}

fn client_go(program: &Path, identity: &str, lease: &str, kubeconfig: &Path) -> Command {
    let flag = |name: &str, value: &Path| -> OsString {
        let mut flag = OsString::from(format!("-{name}="));
        flag.push(value);
        flag
    };
    let millis = |time: Duration| format!("{}ms", time.as_millis());
    let mut command = Command::new(program);
    command.arg(flag("kubeconfig", kubeconfig));
    for (name, value) in [
        ("lease", lease.to_owned()),
        ("identity", identity.to_owned()),
        ("lease-duration", millis(LEASE_DURATION)),
        ("renew-deadline", millis(RENEW_DEADLINE)),
        ("retry-period", millis(RETRY_PERIOD)),
    ] {
        command.arg(flag(name, Path::new(&value)));
    }
    command
}
