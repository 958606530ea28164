//! The scene in the README: a cluster is watched, goes down for a moment, and comes back.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/kubectl-informer");

/// Number of events before the outage, and its duration.
const TROUBLE: &str = "watch pods after-events=20 down=1s";

/// A running server.
pub(crate) struct Scene {
    server: Child,
    directory: PathBuf,
}

impl Scene {
    /// Builds the tool, as the README describes, and starts its server.
    pub(crate) fn set() -> Result<Self, String> {
        build()?;
        let directory = std::env::temp_dir().join(format!("picture-{}", std::process::id()));
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        let mut server = Command::new(TOOL)
            .args(["serve", "--demo", "--listen", "127.0.0.1:0", "--fault", TROUBLE])
            .arg("--kubeconfig")
            .arg(directory.join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run {TOOL}: {error}"))?;
        let mut ready = String::new();
        let out = server.stdout.take();
        let scene = Self { server, directory };
        // It prints one line once it is ready.
        let read = out.map(|out| BufReader::new(out).read_line(&mut ready));
        match read {
            Some(Ok(1..)) => Ok(scene),
            _ => Err(format!("{TOOL} serve has ended instead of serving")),
        }
    }

    /// Returns the command that is recorded.
    pub(crate) fn command(&self) -> Vec<String> {
        let kubeconfig = self.directory.join("kubeconfig").display().to_string();
        [TOOL, "watch", "pods", "--kubeconfig", &kubeconfig].map(str::to_owned).to_vec()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn build() -> Result<(), String> {
    let arguments = ["build", "--release", "--package", "kubectl-informer"];
    match Command::new("cargo").args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {} ended with {status}", arguments.join(" "))),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}
