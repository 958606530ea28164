//! The Go modules with Kubernetes' types, downloaded by Go into its cache.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::golang::{self, GoPackage};
use super::proto::{self, ProtoFile};

/// Modules, each with the directory of its packages.
const MODULES: [(&str, &str); 4] = [
    ("k8s.io/apimachinery", "pkg"),
    ("k8s.io/api", ""),
    ("k8s.io/apiextensions-apiserver", "pkg/apis"),
    ("k8s.io/kube-aggregator", "pkg/apis"),
];

/// A package with protobuf, in both descriptions.
#[derive(Debug)]
pub(super) struct Package {
    /// The name in the schema: `core/v1`.
    pub(super) name: String,
    pub(super) proto: ProtoFile,
    pub(super) go: GoPackage,
}

/// Reads all packages with a `generated.proto`.
pub(super) fn packages(version: &str) -> Result<Vec<Package>, String> {
    let mut found = Vec::new();
    for (module, folder) in MODULES {
        let root = download(module, version)?;
        let mut directories = Vec::new();
        with_proto(&root.join(folder), &mut directories)?;
        directories.sort();
        for directory in directories {
            let text = read(&directory.join("generated.proto"))?;
            let proto = proto::parse(&text)
                .map_err(|problem| format!("{}: {problem}", directory.display()))?;
            // Types for Kubernetes' own tests.
            if proto.package.contains("testapigroup") {
                continue;
            }
            let name = short(&proto.package);
            found.push(Package { name, proto, go: go_package(&directory)? });
        }
    }
    Ok(found)
}

/// Downloads a module unless it is in Go's cache, and returns its directory.
pub(super) fn download(module: &str, version: &str) -> Result<PathBuf, String> {
    let wanted = format!("{module}@{version}");
    let mut command = Command::new("go");
    // Outside of any module, so that the requested version is used.
    command.current_dir(env::temp_dir()).env("GOWORK", "off").env("GO111MODULE", "on");
    let output = command
        .args(["mod", "download", "-json", &wanted])
        .output()
        .map_err(|error| format!("cannot run go, which fetches {wanted}: {error}"))?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("go: {}", String::from_utf8_lossy(&output.stderr)))?;
    match answer["Dir"].as_str() {
        Some(directory) => Ok(directory.into()),
        None => Err(format!("cannot fetch {wanted}: {}", answer["Error"])),
    }
}

fn with_proto(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let cannot = |error| format!("cannot read {}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if entry.file_name() == "generated.proto" {
            found.push(directory.to_owned());
        } else if entry.file_type().map_err(cannot)?.is_dir() {
            with_proto(&entry.path(), found)?;
        }
    }
    Ok(())
}

fn go_package(directory: &Path) -> Result<GoPackage, String> {
    let cannot = |error| format!("cannot read {}: {error}", directory.display());
    let mut package = GoPackage::default();
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let file = entry.map_err(cannot)?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_go = file.extension().is_some_and(|end| end == "go");
        let made = name.starts_with("zz_generated") || name.ends_with(".pb.go");
        if is_go && !name.ends_with("_test.go") && !made {
            golang::read(&read(&file)?, &mut package);
        }
    }
    Ok(package)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Shortens a package's name: `k8s.io.api.core.v1` to `core/v1`, `k8s.io.apimachinery.pkg.runtime` to `runtime`.
pub(super) fn short(package: &str) -> String {
    let mut parts = package.rsplit('.');
    let last = parts.next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match parts.next() {
        Some(before) if is_version => format!("{before}/{last}"),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_short_names() {
        assert_eq!(short("k8s.io.api.core.v1"), "core/v1");
        assert_eq!(short("k8s.io.apimachinery.pkg.apis.meta.v1beta1"), "meta/v1beta1");
        assert_eq!(short("k8s.io.apimachinery.pkg.api.resource"), "resource");
        assert_eq!(short("k8s.io.apimachinery.pkg.util.intstr"), "intstr");
    }
}
