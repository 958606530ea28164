//! The compared programs: how they are built and started.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::Program;
use crate::real_kubernetes::{cargo, root, say};

/// The servers that a variant can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    Every,
    /// The real one only: protobuf. The embedded server stores protobuf beside its JSON only for clients that read
    /// it, so that is measured there by [`Measures::protobuf_events`](super::measures::Measures::protobuf_events).
    Real,
    /// The embedded one only: JSON, as its peers there.
    Embedded,
}

impl On {
    pub(super) fn fits(self, real: bool) -> bool {
        match self {
            Self::Every => true,
            Self::Real => real,
            Self::Embedded => !real,
        }
    }
}

/// One variant of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// The part before the comma names the program.
    pub(super) label: &'static str,
    program: &'static str,
    /// Arguments of the program.
    told: &'static str,
    pub(super) on: On,
    /// Whether it is one of the few variants of a quick run.
    pub(super) quick: bool,
    /// Whether it caches complete pods.
    pub(super) whole: bool,
    /// Whether it is a controller.
    pub(super) reconciles: bool,
}

/// The programs that show the lower bound set by server and network, and their arguments.
pub(super) const FLOORS: [(&str, &str); 2] =
    [("floor, plain HTTP client", "http"), ("floor, curl", "curl")];
/// The prefix of their labels.
pub(super) const FLOOR: &str = "floor";

/// The prefix of the labels of our programs.
pub(super) const OUR_NAME: &str = "ours";
pub(super) const OURS: &str = "ours, packed";
/// Starts from a snapshot instead of a list; and the variant that writes it.
pub(super) const OURS_WARM: Form = form("ours, warm start", "bench-ours", "warm");
pub(super) const OURS_SNAPSHOT: Form = form("ours, with a snapshot", "bench-ours", "snapshot");
pub(super) const OURS_DECODED: &str = "ours, decoded";
pub(super) const OURS_METADATA: &str = "ours, metadata alone";
/// The work queue, which has one variant.
pub(super) const OURS_QUEUE: &str = "ours";
pub(super) const CLIENT_GO: &str = "client-go";
pub(super) const CONTROLLER_RUNTIME: &str = "controller-runtime";
pub(super) const KUBE_RS: &str = "kube-rs";

const fn form(label: &'static str, program: &'static str, told: &'static str) -> Form {
    Form { label, program, told, on: On::Every, quick: false, whole: true, reconciles: false }
}

const fn controller(label: &'static str, program: &'static str, told: &'static str) -> Form {
    Form { quick: true, reconciles: true, ..form(label, program, told) }
}

pub(super) const FORMS: [Form; 18] = [
    Form { on: On::Real, ..form(OURS, "bench-ours", "packed") },
    Form { quick: true, on: On::Embedded, ..form(OURS, "bench-ours", "json") },
    form(OURS_DECODED, "bench-ours", "decoded"),
    Form { whole: false, ..form(OURS_METADATA, "bench-ours", "metadata") },
    Form { quick: true, ..form("client-go, JSON", "bench-client-go", "json") },
    Form { quick: true, ..form("client-go, JSON, stripped", "bench-client-go", "json-stripped") },
    Form { on: On::Real, ..form("client-go, protobuf", "bench-client-go", "protobuf") },
    Form {
        on: On::Real,
        ..form("client-go, protobuf, stripped", "bench-client-go", "protobuf-stripped")
    },
    Form { whole: false, ..form("client-go, metadata alone", "bench-client-go", "metadata") },
    Form { quick: true, ..form("kube-rs, default", "bench-kube-rs", "default") },
    form("kube-rs, streaming", "bench-kube-rs", "streaming"),
    form("kube-rs, stripped", "bench-kube-rs", "stripped"),
    Form {
        quick: true,
        ..form("kube-rs, streaming, stripped", "bench-kube-rs", "streaming-stripped")
    },
    Form { on: On::Real, ..controller(OURS, "bench-controller-ours", "controller") },
    Form { on: On::Embedded, ..controller(OURS, "bench-controller-ours", "json") },
    controller("client-go, informer and work queue", "bench-client-go", "controller"),
    controller("client-go, controller-runtime", "bench-client-go", "controller-runtime"),
    controller("kube-rs, Controller", "bench-controller-kube-rs", "controller"),
];

/// The settings that a client is started with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) handlers: usize,
    pub(super) index: bool,
    /// The snapshot file, for variants that write or read one.
    pub(super) snapshot: Option<&'a Path>,
}

pub(super) const PLAIN: Start<'_> = Start { handlers: 1, index: false, snapshot: None };

impl Form {
    pub(super) fn start(&self, kubeconfig: &Path, start: Start<'_>) -> Result<Program, String> {
        let mut command = Command::new(directory().join(self.program));
        command.arg("--kubeconfig").arg(kubeconfig).args(["--form", self.told]);
        command.args(["--handlers", &start.handlers.to_string()]);
        command.args(start.index.then_some("--index"));
        if let Some(file) = start.snapshot {
            command.arg("--snapshot").arg(file);
        }
        Program::start(self.label, &mut command)
    }

    /// Returns whether it reads protobuf if the server has it.
    pub(super) fn reads_protobuf(&self) -> bool {
        self.on == On::Real
    }

    pub(super) fn is_kube_rs(&self) -> bool {
        self.program == "bench-kube-rs"
    }

    pub(super) fn is_go(&self) -> bool {
        self.program == "bench-client-go"
    }
}

/// Starts a program that downloads all pods and discards them.
pub(super) fn fetch(label: &str, told: &str, kubeconfig: &Path) -> Result<Program, String> {
    let mut command = Command::new(directory().join("bench-fetch"));
    Program::start(label, command.arg("--kubeconfig").arg(kubeconfig).args(["--form", told]))
}

pub(super) fn directory() -> PathBuf {
    root().join("target/release")
}

/// Builds all programs, and returns the variants that can run.
pub(super) fn build() -> Result<Vec<Form>, String> {
    // In one command: their different features would rebuild shared dependencies.
    let both = ["--package", "peers-bench", "--package", "real-kubernetes"];
    // The profile `bench` optimizes every dependency, as their users' programs do; the files are in target/release.
    cargo(&[&["build", "--profile", "bench"][..], &both].concat(), &[])?;
    let go = build_client_go()?;
    if !go {
        say(
            "there is no `go` on the PATH: client-go is left out; install Go and run this again to compare with it",
        );
    }
    Ok(FORMS.into_iter().filter(|form| go || !form.is_go()).collect())
}

/// Builds the Go program. Returns false if Go is not installed.
fn build_client_go() -> Result<bool, String> {
    say("go build peers/client-go");
    let mut command = Command::new("go");
    // Uses exactly the versions in go.mod and go.sum, whatever the machine's settings and workspaces are.
    command.env("GOWORK", "off").env("GOFLAGS", "-mod=readonly");
    command.args(["build", "-buildvcs=false", "-o"]).arg(directory().join("bench-client-go"));
    match command.arg(".").current_dir(root().join("peers/client-go")).status() {
        Ok(status) if status.success() => Ok(true),
        Ok(status) => Err(format!("`go build` in peers/client-go ended with {status}")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("cannot run go: {error}")),
    }
}
