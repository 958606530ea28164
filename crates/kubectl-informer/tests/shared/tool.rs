//! An API server in the test, and the tool as a process that talks to it.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use embedded_apiserver::{ApiServer, Builder, Listening};
use tokio::runtime::Runtime;

/// A server on a socket, which the test can also access directly.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) directory: PathBuf,
    pub(crate) listening: Listening,
    _runtime: Runtime,
}

/// The exit code of the tool, and its output.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Cluster {
    /// Starts a server with these objects. `name` is that of its directory.
    pub(crate) fn new(name: &str, yaml: &str) -> Self {
        Self::of(name, ApiServer::builder(), yaml)
    }

    pub(crate) fn of(name: &str, builder: Builder, yaml: &str) -> Self {
        let directory = super::support::directory(name);
        let runtime = Runtime::new().unwrap();
        let inside = runtime.enter();
        let server = builder.build();
        server.load_yaml(yaml).unwrap();
        let listening = runtime.block_on(server.listener().bind("127.0.0.1:0")).unwrap();
        listening.write_kubeconfig(directory.join("kubeconfig")).unwrap();
        drop(inside);
        Self { server, directory, listening, _runtime: runtime }
    }

    /// Stops listening. Returns once connections are refused.
    pub(crate) fn refuse_connections(&self) {
        self.server.refuse_connections();
        while TcpStream::connect(self.listening.addr()).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Returns the command for the tool, with nothing but the kubeconfig in its environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
        command.args(arguments).current_dir(&self.directory);
        command.env("KUBECONFIG", self.directory.join("kubeconfig"));
        command.env("HOME", &self.directory).env_remove("KUBERNETES_SERVICE_HOST");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Runs a command that succeeds without messages. Returns its standard output.
    pub(crate) fn prints(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?}: {}", ran.out);
        ran.out
    }

    /// Runs a command that fails with code 2 and prints nothing. Returns its standard error.
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        ran.err
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Ran { code: output.status.code(), out, err }
}

/// Runs a command whose standard output is a closed pipe.
pub(crate) fn with_nobody_to_read(command: &mut Command) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    ran(command.stdout(writer).spawn().unwrap().wait_with_output().unwrap())
}

/// Runs a command whose standard output is a full disk. Returns `None` if there is no `/dev/full`.
pub(crate) fn with_a_full_disk(command: &mut Command) -> Option<Ran> {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").ok()?;
    Some(ran(command.stdout(full).spawn().unwrap().wait_with_output().unwrap()))
}

/// Checks that the command reports output that it cannot write.
pub(crate) fn tells_of_a_full_disk(command: &mut Command) {
    if let Some(ran) = with_a_full_disk(command) {
        assert_eq!(ran.code, Some(2), "{command:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: cannot write to standard output: "), "{}", ran.err);
    }
}
