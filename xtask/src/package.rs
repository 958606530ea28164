//! `cargo xtask package`: packages the published crates, and uses them as their users will.
//!
//! The packages are unpacked outside of the workspace, where its manifest, lints and `.cargo/config.toml` do not
//! apply. `cargo check` of the tool there, which depends on all the other packages, shows that they are complete; and
//! the README's program is checked with the README's dependencies. Registry dependencies are compiled in the
//! workspace's target directory, so that what is there is used again. Nothing is downloaded.

mod readme;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::dist::host;
use crate::real_kubernetes::{root, say};

/// The published crates, each after those that it depends on.
const CRATES: [&str; 5] =
    ["kube-schema", "embedded-apiserver", "kube-informer", "kube-informer-debug", TOOL];

/// The crate that depends on all others.
const TOOL: &str = "kubectl-informer";

const USAGE: &str = "\
usage: cargo xtask package

  packages the crates that are published, and checks them and the README's program outside of the workspace";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => check(),
        [word] if word == "help" || word == "--help" => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn check() -> Result<(), String> {
    let metadata = metadata()?;
    rust_versions(&metadata)?;
    let version = version(&metadata)?;
    pack()?;
    let scratch = Scratch::create()?;
    for name in CRATES {
        scratch.unpack(name, &version)?;
    }
    scratch.check(TOOL)?;
    let readme = read(&root().join("README.md"))?;
    scratch.check_program(&readme::dependencies(&readme)?, &readme::program(&readme)?)?;
    say(&format!("{} packages of version {version} are in target/package", CRATES.len()));
    Ok(())
}

/// Makes the `.crate` files. Uncommitted changes are packaged too.
fn pack() -> Result<(), String> {
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    // Quiet: cargo has a warning for every test that is not published.
    let arguments = ["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"];
    cargo(&root(), arguments.into_iter().chain(packages))
}

/// A directory outside of the workspace, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    /// The path is the same in every run: cargo's cache has one copy of what is compiled there.
    fn create() -> Result<Self, String> {
        let root = root();
        let sum = root.as_os_str().as_encoded_bytes().iter();
        let sum = sum.fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let path = env::temp_dir().join(format!("kube-informer-package-{sum:016x}"));
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| cannot("remove", &path, &error))?;
        }
        fs::create_dir(&path).map_err(|error| cannot("make", &path, &error))?;
        Ok(Self(path))
    }

    fn unpack(&self, name: &str, version: &str) -> Result<(), String> {
        let file = root().join(format!("target/package/{name}-{version}.crate"));
        let mut tar = Command::new("tar");
        // With the current time (-m): packages have old times, and cargo compares those.
        tar.arg("-xzmf").arg(&file).arg("-C").arg(&self.0);
        match tar.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{}: `tar` ended with {status}", file.display())),
            Err(error) => return Err(format!("cannot run tar: {error}")),
        }
        let (from, to) = (self.0.join(format!("{name}-{version}")), self.0.join(name));
        fs::rename(&from, &to).map_err(|error| cannot("rename", &from, &error))?;
        self.lock(name)
    }

    /// Uses the workspace's versions of dependencies.
    fn lock(&self, name: &str) -> Result<(), String> {
        let lock = self.0.join(name).join("Cargo.lock");
        fs::copy(root().join("Cargo.lock"), &lock)
            .map_err(|error| cannot("write", &lock, &error))?;
        Ok(())
    }

    fn check_program(&self, dependencies: &str, program: &str) -> Result<(), String> {
        let name = "program";
        let source = self.0.join(name).join("src");
        fs::create_dir_all(&source).map_err(|error| cannot("make", &source, &error))?;
        let package = "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n";
        let files = [
            (source.join("main.rs"), program.to_owned()),
            (self.0.join(name).join("Cargo.toml"), format!("{package}{dependencies}")),
        ];
        for (file, text) in files {
            fs::write(&file, text).map_err(|error| cannot("write", &file, &error))?;
        }
        self.lock(name)?;
        self.check(name)
    }

    /// Runs `cargo check` in a directory, with the packages in place of crates.io.
    fn check(&self, name: &str) -> Result<(), String> {
        let directory = self.0.join(name);
        let target = root().join("target");
        // Quiet: cargo has a warning for every package that is not used.
        let mut arguments = ["check", "--quiet", "--offline"].map(str::to_owned).to_vec();
        arguments.extend(["--target-dir".to_owned(), target.display().to_string()]);
        // As in the workspace, whose dependencies can then be used again.
        for setting in ["debug='line-tables-only'", "package.zstd-sys.opt-level=3"] {
            arguments.extend(["--config".to_owned(), format!("profile.dev.{setting}")]);
        }
        for each in CRATES.iter().filter(|each| **each != name) {
            let unpacked = self.0.join(each);
            let setting = format!("patch.crates-io.{each}.path='{}'", unpacked.display());
            arguments.extend(["--config".to_owned(), setting]);
        }
        say(&format!("cargo check, outside of the workspace: {name}"));
        cargo(&directory, arguments.iter().map(String::as_str))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs cargo as a user would: without the variables that `cargo xtask` has set.
fn cargo<'a>(directory: &Path, arguments: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "K8S_OPENAPI_"];
        if name.to_str().is_some_and(|name| ours.iter().any(|ours| name.starts_with(ours))) {
            command.env_remove(name);
        }
    }
    command.args(arguments).current_dir(directory);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

fn metadata() -> Result<Value, String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["metadata", "--offline", "--format-version", "1"]).current_dir(root());
    // Crates for other platforms are not here.
    command.args(["--filter-platform", &host()?]);
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo metadata`: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`cargo metadata`: {error}"))
}

fn package<'a>(metadata: &'a Value, name: &str) -> Result<&'a Value, String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut found = packages.filter(|package| package["name"] == name);
    found.next().ok_or_else(|| format!("the workspace has no package {name}"))
}

fn version(metadata: &Value) -> Result<String, String> {
    let version = &package(metadata, CRATES[0])?["version"];
    Ok(version.as_str().unwrap_or_default().to_owned())
}

/// Fails if a dependency needs a newer compiler than `rust-version` promises.
fn rust_versions(metadata: &Value) -> Result<(), String> {
    let ours = compiler(&package(metadata, CRATES[0])?["rust_version"])
        .ok_or("the workspace has no rust-version")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let newer = packages
        .filter(|package| compiler(&package["rust_version"]).is_some_and(|needed| needed > ours));
    let newer: Vec<String> = newer
        .map(|package| format!("{} needs {}", package["name"], package["rust_version"]))
        .collect();
    if newer.is_empty() {
        return Ok(());
    }
    Err(format!("`rust-version` in Cargo.toml is too low: {}", newer.join(", ")))
}

/// Returns the parts of a version of Rust, such as `1.89`.
fn compiler(version: &Value) -> Option<Vec<u32>> {
    version.as_str()?.split('.').take(2).map(|part| part.parse().ok()).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dependencies_with_a_newer_compiler_are_found() {
        let with = |other: Value| {
            let ours = json!({"name": "kube-schema", "version": "0.1.0", "rust_version": "1.89"});
            rust_versions(&json!({"packages": [ours, {"name": "other", "rust_version": other}]}))
        };
        assert_eq!(with(Value::Null), Ok(()));
        assert_eq!(with("1.89.0".into()), Ok(()));
        assert_eq!(with("1.9".into()), Ok(()));
        let problem = with("1.90".into()).unwrap_err();
        assert!(problem.contains("\"other\" needs \"1.90\""), "{problem}");
    }
}
