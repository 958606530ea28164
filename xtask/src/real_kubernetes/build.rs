//! Builds the Go programs that are not up to date.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::recipe::{RECIPES, Recipe};
use super::{root, say};

const NO_GO: &str = "\
cannot build the real Kubernetes: there is no `go` on the PATH; install Go (1.21 or newer fetches the version \
that it needs), then run this again";

/// Builds all programs, and returns their directory.
pub(super) fn all() -> Result<PathBuf, String> {
    let directory = root().join("target/peers/bin");
    fs::create_dir_all(&directory).map_err(|error| cannot("make", &directory, &error))?;
    for recipe in &RECIPES {
        one(recipe, &directory)?;
    }
    Ok(directory)
}

fn one(recipe: &Recipe, directory: &Path) -> Result<(), String> {
    let sources = root().join("peers").join(recipe.module);
    let go_mod = read(&sources.join("go.mod"))?;
    let version = recipe.version(&go_mod)?;
    // The programs are up to date as long as their sources have not changed.
    let mut wanted = format!("{go_mod}\n{}", read(&sources.join("go.sum"))?);
    for file in go_files(&sources)? {
        wanted.push_str(&read(&file)?);
    }
    let stamp = directory.join(format!("{}.built-from", recipe.module));
    let there = |(program, _): &(&str, &str)| directory.join(program).exists();
    if recipe.programs.iter().all(there)
        && fs::read_to_string(&stamp).is_ok_and(|built| built == wanted)
    {
        return Ok(());
    }
    say(&format!(
        "building {} {version} with Go, once: {} on two cores without a cache",
        recipe.module, recipe.takes
    ));
    let began = Instant::now();
    // An aborted build must not look finished.
    let _ = fs::remove_file(&stamp);
    for (program, package) in recipe.programs {
        go(recipe, version, &sources, &directory.join(program), package)?;
        say(&format!("{program} {version}, after {:.0} s", began.elapsed().as_secs_f64()));
    }
    fs::write(&stamp, wanted).map_err(|error| cannot("write", &stamp, &error))
}

fn go(
    recipe: &Recipe,
    version: &str,
    sources: &Path,
    program: &Path,
    package: &str,
) -> Result<(), String> {
    let mut command = Command::new("go");
    // Uses exactly the versions in go.mod and go.sum, whatever the machine's settings and workspaces are.
    command.current_dir(sources).env("GOWORK", "off").env("GOFLAGS", "-mod=readonly");
    command.args(["build", "-buildvcs=false"]);
    if let Some(flags) = recipe.linker_flags(version) {
        command.args(["-ldflags", &flags]);
    }
    command.arg("-o").arg(program).arg(package);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(format!("`go build {package}` in {} ended with {status}", sources.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(NO_GO.to_owned()),
        Err(error) => Err(format!("cannot run go: {error}")),
    }
}

/// Returns the Go files of a module that has its own, and of its packages, sorted.
fn go_files(sources: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(sources).map_err(|error| cannot("read", sources, &error))?;
    let mut files = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            files.extend(go_files(&path)?);
        } else if path.extension().is_some_and(|end| end == "go") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| cannot("read", file, &error))
}

fn cannot(verb: &str, file: &Path, error: &std::io::Error) -> String {
    format!("cannot {verb} {}: {error}", file.display())
}
