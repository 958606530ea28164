//! The kubeconfig for clients.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::tls::Certificates;

/// The first line of each kubeconfig.
pub(super) const MARK: &str = "# Written by embedded-apiserver.";

/// The line with the upper bound of the server's versions. Like the mark it is a comment, so a
/// program that rewrites the file drops both.
pub(super) const VERSIONS: &str = "# Its resourceVersions are below ";

/// The name of the cluster, the user and the context.
const NAME: &str = "embedded-apiserver";

/// The extension of the cluster that contains the server's certificate and key.
pub(super) const EXTENSION: &str = "embedded-apiserver-identity";

/// Returns a kubeconfig for a server and its administrator. With `keep`, it includes the key, with
/// which the server can be restarted under the same identity: see [`Identity`](super::Identity).
pub(super) fn text(
    url: &str,
    tls: Option<&Certificates>,
    keep: bool,
    token: &str,
    versions_end: u64,
) -> String {
    // A JSON string is also a YAML string, whatever its content.
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

/// Writes `text` to `path`. At no time can anyone but the owner read it.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let describe = |error: io::Error| {
        let why = format!("cannot write the kubeconfig {}: {error}", path.display());
        io::Error::new(error.kind(), why)
    };
    // An existing file may be readable by others, who may have opened it already. A new file is
    // not, and replaces it atomically.
    let new = beside(path).map_err(describe)?;
    let written = create(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        // The file may not exist. The first error is the one to report.
        let _ = fs::remove_file(&new);
        describe(error)
    })
}

/// Returns an unused name in the same directory.
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
