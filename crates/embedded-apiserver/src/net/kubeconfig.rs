//! The file that clients are given.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::tls::Certificates;

/// How each of our kubeconfigs begins.
pub(super) const MARK: &str = "# Written by embedded-apiserver.";

/// The line that says which versions the server may have given out. It is a comment, as the mark is: what
/// rewrites the file loses both.
pub(super) const VERSIONS: &str = "# Its resourceVersions are below ";

/// The name of cluster, user and context.
const NAME: &str = "embedded-apiserver";

/// The extension of the cluster that has the server's certificate and key.
pub(super) const EXTENSION: &str = "embedded-apiserver-identity";

/// A kubeconfig for one server and its administrator. With the key in it, if `keep`, the server can
/// be started again as the same: see [`Identity`](super::Identity).
pub(super) fn text(
    url: &str,
    tls: Option<&Certificates>,
    keep: bool,
    token: &str,
    versions_end: u64,
) -> String {
    // A JSON string is a YAML string, whatever is in it.
    let url = Value::from(url);
    let token = Value::from(token);
    let authority = tls.map_or_else(String::new, |tls| {
        format!("\n    certificate-authority-data: {}", STANDARD.encode(&tls.ca_pem))
    });
    let identity = tls.filter(|_| keep).map_or_else(String::new, |tls| {
        let certificate = STANDARD.encode(&tls.certificate);
        let key = STANDARD.encode(tls.key.secret_pkcs8_der());
        format!(
            "
    extensions:
    - name: {EXTENSION}
      extension:
        certificate: {certificate}
        key: {key}"
        )
    });
    format!(
        "{MARK} What is secret in it is of that server alone.
{VERSIONS}{versions_end}
apiVersion: v1
kind: Config
clusters:
- name: {NAME}
  cluster:
    server: {url}{authority}{identity}
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
