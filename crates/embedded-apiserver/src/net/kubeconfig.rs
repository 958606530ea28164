//! The file that clients are given.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// How each of our kubeconfigs begins.
pub(super) const MARK: &str = "# Written by embedded-apiserver.";

/// The name of cluster, user and context.
const NAME: &str = "embedded-apiserver";

/// A kubeconfig for one server and its administrator.
pub(super) fn text(url: &str, ca_pem: Option<&str>, token: &str) -> String {
    // A JSON string is a YAML string, whatever is in it.
    let url = Value::from(url);
    let token = Value::from(token);
    let authority = ca_pem.map_or_else(String::new, |pem| {
        format!("\n    certificate-authority-data: {}", STANDARD.encode(pem))
    });
    format!(
        "{MARK} The token in it is good for as long as that server runs.
apiVersion: v1
kind: Config
clusters:
- name: {NAME}
  cluster:
    server: {url}{authority}
users:
- name: {NAME}
  user:
    token: {token}
contexts:
- name: {NAME}
  context:
    cluster: {NAME}
    user: {NAME}
    namespace: default
current-context: {NAME}
"
    )
}

/// Puts `text` at `path`, readable by its owner alone at every moment.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let describe = |error: io::Error| {
        let why = format!("cannot write the kubeconfig {}: {error}", path.display());
        io::Error::new(error.kind(), why)
    };
    // A file that is there may be open to others, who could have it open. A new one is not, and
    // takes its place in one step.
    let new = beside(path).map_err(describe)?;
    let written = create(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        // It may not have been created; the first error is the one to tell.
        let _ = fs::remove_file(&new);
        describe(error)
    })
}

/// A name that nobody has, in the same directory.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not end with a file's name")
    })?;
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(path.with_file_name(new))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
