//! `cargo xtask real-kubernetes`: builds the real kube-apiserver, etcd and kubectl, and runs tests against them.

mod build;
mod recipe;

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::schema;

/// The variable with the directory of the programs, for everything that needs them.
pub(crate) const PROGRAMS: &str = "REAL_KUBERNETES";

/// The variable with the command-line tool, for tests.
const TOOL: &str = "KUBECTL_INFORMER";

/// The variable with the directory of the library's examples, for tests.
const EXAMPLES: &str = "KUBE_INFORMER_EXAMPLES";

/// The variable with the directories of Go's pairs of JSON and protobuf, for tests.
const FIXTURES: &str = "KUBERNETES_FIXTURES";

/// Most tests wait for servers, not for a core.
const TESTS_AT_ONCE: &str = "8";

const USAGE: &str = "\
usage: cargo xtask real-kubernetes build | up | test

  build                 builds kube-apiserver, kubectl, etcd, etcdctl, etcdutl, a candidate of client-go's leader
                        election, and programs that check metrics, into target/peers/bin, where what is there is
                        not what peers/ asks for; wants Go
  up [-- FLAGS…]        starts etcd and kube-apiserver (with these flags of its own) on loopback with
                        throw-away certificates, token and data; ends with Ctrl-C
  test [ARGUMENTS…]     runs the tests against them; the arguments are those of `cargo test`";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments.split_first() {
        Some((verb, [])) if verb == "build" => {
            build::all()?;
            Ok(())
        }
        Some((verb, rest)) if verb == "up" => up(rest),
        Some((verb, rest)) if verb == "test" => test(rest),
        Some((verb, _)) if verb == "help" || verb == "--help" => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    }
}

/// Builds the programs if necessary, and returns their directory.
pub(crate) fn programs() -> Result<PathBuf, String> {
    build::all()
}

/// Replaces this process with the program that runs the servers, so that stopping one stops the other.
fn up(arguments: &[String]) -> Result<(), String> {
    let programs = build::all()?;
    cargo(&["build", "--quiet", "--package", "real-kubernetes"], &[])?;
    let flags = arguments.strip_prefix(&["--".to_owned()]).unwrap_or(arguments);
    let mut command = Command::new(root().join("target/debug/real-kubernetes"));
    let failed = command.args(flags).env(PROGRAMS, programs).exec();
    Err(format!("cannot run {}: {failed}", command.get_program().display()))
}

fn test(arguments: &[String]) -> Result<(), String> {
    let programs = build::all()?;
    let began = Instant::now();
    cargo(&["build", "--package", "kubectl-informer"], &[])?;
    cargo(&["build", "--package", "kube-informer", "--examples"], &[])?;
    schema::check()?;
    let fixtures = env::join_paths(schema::fixtures()?).map_err(|error| error.to_string())?;
    let tool = root().join("target/debug/kubectl-informer");
    let settings = [
        (PROGRAMS, programs.clone().into()),
        (TOOL, tool.into()),
        (FIXTURES, fixtures),
        (EXAMPLES, root().join("target/debug/examples").into()),
        ("RUST_TEST_THREADS", TESTS_AT_ONCE.into()),
    ];
    let mut command = vec!["test", "--package", "real-kubernetes"];
    command.extend(arguments.iter().map(String::as_str));
    cargo(&command, &settings)?;
    if arguments.is_empty() {
        // Conversely: the real kubectl on the embedded server.
        let path = [("PATH", with_first(&programs)?)];
        let tests = ["--test", "kubectl", "--test", "completion"];
        cargo(&[&["test", "--package", "kubectl-informer"][..], &tests].concat(), &path)?;
    }
    say(&format!("the tests took {:.0} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Returns the search path, with this directory first.
fn with_first(directory: &Path) -> Result<OsString, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(env::split_paths(&path));
    env::join_paths(all).map_err(|error| format!("{}: {error}", directory.display()))
}

pub(crate) fn cargo(arguments: &[&str], settings: &[(&str, OsString)]) -> Result<(), String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Removes the variables that `cargo run` has set: build scripts that read them (ring's does) would run again
    // every time, and everything that depends on them would be rebuilt.
    for (name, _) in env::vars_os() {
        let ours = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| ours.iter().any(|ours| name.starts_with(ours))) {
            command.env_remove(name);
        }
    }
    command.args(arguments).envs(settings.iter().map(|(name, value)| (name, value)));
    let text = format!("cargo {}", arguments.join(" "));
    say(&text);
    let status = command.current_dir(root()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{text}` ended with {status}")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

pub(crate) fn root() -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

pub(crate) fn say(text: &str) {
    eprintln!("==> {text}");
}
