//! The server that the programs read: the embedded one, or the real one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use super::process::Program;
use super::programs::directory;
use crate::real_kubernetes::{PROGRAMS, programs, root, say};

pub(super) struct Server {
    /// The process that writes the pods, and runs the embedded server.
    writer: Program,
    kubeconfig: PathBuf,
    pub(super) real: bool,
    pub(super) pods: usize,
    /// The size of a pod's JSON.
    pub(super) pod_bytes: f64,
    // Dropped last.
    _kubernetes: Option<Program>,
}

impl Server {
    pub(super) fn embedded() -> Result<Self, String> {
        let directory = root().join("target/bench");
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let kubeconfig = directory.join("embedded.kubeconfig");
        Self::of("--write-kubeconfig", kubeconfig, None)
    }

    pub(super) fn real() -> Result<Self, String> {
        let programs = programs()?;
        let mut command = Command::new(self::directory().join("real-kubernetes"));
        let mut kubernetes = Program::start("real-kubernetes", command.env(PROGRAMS, programs))?;
        let line = kubernetes.line()?;
        let kubeconfig = line.strip_prefix("export KUBECONFIG=").map(PathBuf::from);
        let kubeconfig = kubeconfig.ok_or_else(|| format!("real-kubernetes says {line:?}"))?;
        Self::of("--kubeconfig", kubeconfig, Some(kubernetes))
    }

    fn of(flag: &str, kubeconfig: PathBuf, kubernetes: Option<Program>) -> Result<Self, String> {
        let mut command = Command::new(directory().join("bench-server"));
        let mut writer = Program::start("bench-server", command.arg(flag).arg(&kubeconfig))?;
        writer.answer()?;
        let real = kubernetes.is_some();
        Ok(Self { writer, kubeconfig, real, pods: 0, pod_bytes: 0.0, _kubernetes: kubernetes })
    }

    pub(super) fn name(&self) -> &'static str {
        if self.real { "real" } else { "embedded" }
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Creates pods until there are this many, plus the sentinel.
    pub(super) fn fill(&mut self, pods: usize) -> Result<(), String> {
        if pods <= self.pods {
            return Ok(());
        }
        let filled = self.tell(&format!("fill {pods}"))?;
        let seconds = filled["seconds"].as_f64().unwrap_or_default();
        self.pods = pods;
        self.pod_bytes = filled["bytes"].as_f64().unwrap_or_default();
        say(&format!("{pods} pods of {} bytes, after {seconds:.0} s", self.pod_bytes));
        Ok(())
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<Value, String> {
        self.writer.ask(line)
    }
}

/// Returns the description of the machine for the report.
pub(super) fn machine() -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned())).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let memory = memory.split(' ').next().and_then(|kilobytes| kilobytes.parse::<f64>().ok());
    let memory = memory.map_or_else(String::new, |kilobytes| {
        format!(", {:.0} GB of memory", kilobytes / 1024.0 / 1024.0)
    });
    format!(
        "{cores} cores of an {}{memory}, {}",
        field(&read("/proc/cpuinfo"), "model name"),
        env::consts::OS
    )
}
