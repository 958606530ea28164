//! A server process.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::leash::Leash;

/// The time within which a server must have shut down gracefully.
const FAREWELL_MAX: Duration = Duration::from_secs(60);

/// How often a process is checked; waiting for an event would also reap it.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// The number of log lines that an error shows.
const LOG_LINES: usize = 15;

/// A process with a log. It is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
    leash: SharedLeash,
}

pub(crate) type SharedLeash = Arc<Mutex<Leash>>;

impl Process {
    /// Starts a program; its output is appended to `NAME.log` in the directory.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        directory: &Path,
        leash: &SharedLeash,
    ) -> Result<Self> {
        let log = directory.join(format!("{name}.log"));
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        // Ctrl-C must only reach this process, which then ends the child.
        command.process_group(0);
        let child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
        leash.lock().unwrap_or_else(PoisonError::into_inner).begun(child.id())?;
        Ok(Self { name, child, log, leash: leash.clone() })
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal)
            .with_context(|| format!("cannot send {signal:?} to {}", self.name))
    }

    /// Asks it to terminate, and waits until it has.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let deadline = Instant::now() + FAREWELL_MAX;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("{} does not end\n{}", self.name, self.last_words());
            }
            sleep(GLANCE).await;
        }
        self.kill()
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.leash.lock().unwrap_or_else(PoisonError::into_inner).ended(self.child.id())?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns an error with its last output if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("{} ended with {status}\n{}", self.name, self.last_words()),
            None => Ok(()),
        }
    }

    pub(crate) fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}
