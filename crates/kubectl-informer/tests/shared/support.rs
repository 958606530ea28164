//! The tool as a process, and its output.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::TcpSocket;

/// The time limit for everything that tests wait for. It only ends tests that would hang; no test
/// waits for it to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running `serve` in its own directory. Dropping this kills it.
pub(crate) struct Serving {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The line that it has printed.
    pub(crate) line: String,
    pub(crate) directory: PathBuf,
}

impl Serving {
    /// Starts a server on a free port. `name` is that of its directory.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_in(directory(name), arguments)
    }

    /// Starts a server in a directory where an earlier one may have left its kubeconfig.
    pub(crate) fn start_in(directory: PathBuf, arguments: &[&str]) -> Self {
        let mut child = serve(&directory, arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        Self { child, out, line, directory }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Sends a signal. Returns the output after the first line, and the exit status.
    pub(crate) fn end(&mut self, signal: &str) -> (String, ExitStatus) {
        let pid = self.child.id();
        let kill = format!("kill -s {signal} {pid}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut rest).unwrap();
        (rest, self.child.wait().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command that serves on a free port, with its kubeconfig in `directory`, unless
/// `arguments` say otherwise.
pub(crate) fn serve(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
    command.current_dir(directory).arg("serve").args(arguments);
    for (name, value) in [("--kubeconfig", "kubeconfig"), ("--listen", "127.0.0.1:0")] {
        if !arguments.contains(&name) {
            command.args([name, value]);
        }
    }
    command
}

/// An address that is reserved for as long as this lives. Connections to it are refused until a
/// server listens there.
pub(crate) struct Reserved {
    pub(crate) address: String,
    _socket: Option<TcpSocket>,
}

impl Reserved {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        // Only Linux lets a server listen while this socket is bound.
        Self { address, _socket: Some(socket).filter(|_| cfg!(target_os = "linux")) }
    }
}

/// Creates an empty directory for a test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}
