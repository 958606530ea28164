//! A server's identity, which clients recognise across restarts.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::kubeconfig;
use super::tls::Certificates;

/// A server's identity: the administrator's token and, with TLS, its certificates and key. If a
/// server is restarted with the same identity, its clients reconnect without reconfiguration.
///
/// The identity is stored in the kubeconfig that [`Listening`](crate::Listening) writes, with the
/// key in an extension that clients ignore. This is no worse than storing the token, which is there
/// as well: the key belongs to a single server that only this machine can reach, and it cannot sign
/// certificates. The kubeconfig of a socket that other machines can reach contains no key. Note
/// that `kubectl config view` redacts tokens, but not extensions.
///
/// ```
/// # use embedded_apiserver::{ApiServer, Identity};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let before = ApiServer::start().listen("127.0.0.1:0").await?;
/// let kubeconfig = before.kubeconfig();
/// before.shutdown().await;
///
/// let identity = Identity::from_kubeconfig(&kubeconfig).unwrap();
/// let server = ApiServer::builder()
///     .token(identity.token())
///     .first_version(identity.first_version())
///     .build();
/// let after = server.listener().identity(identity).bind("127.0.0.1:0").await?;
/// # assert_eq!(Identity::from_kubeconfig(&after.kubeconfig()).unwrap().token(), server.token());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Identity {
    token: String,
    first_version: u64,
    /// `None` for a server without TLS.
    pub(super) certificates: Option<Certificates>,
}

impl Identity {
    /// Returns the identity of the server that wrote this kubeconfig, or `None` if this crate did
    /// not write it or the text is damaged.
    pub fn from_kubeconfig(text: &str) -> Option<Self> {
        if !text.starts_with(kubeconfig::MARK) {
            return None;
        }
        let config: Config = serde_saphyr::from_str(text).ok()?;
        let ([cluster], [user]) = (config.clusters, config.users);
        let token = user.user.token;
        // Other tokens could not be sent in a header.
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let certificates = match cluster.cluster.ca {
            Some(ca) => Some(certificates(&ca, &cluster.cluster.extensions)?),
            None => None,
        };
        Some(Self { token, first_version: first_version(text), certificates })
    }

    /// Returns the administrator's token, for [`Builder::token`](crate::Builder::token).
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns a version above all versions of the earlier server, for
    /// [`Builder::first_version`](crate::Builder::first_version). Its clients then receive a 410,
    /// and relist. Otherwise they would wait for versions that may never come, or miss changes.
    pub fn first_version(&self) -> u64 {
        self.first_version
    }
}

/// Returns the first version that the server which wrote the text cannot have used.
fn first_version(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(kubeconfig::VERSIONS));
    // A larger value would leave too few versions.
    line.and_then(|end| end.parse().ok()).filter(|end| *end < u64::MAX / 2).unwrap_or(1)
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All of it is secret.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn certificates(ca: &str, extensions: &[Named]) -> Option<Certificates> {
    let named = extensions.iter().find(|named| named.name == kubeconfig::EXTENSION)?;
    let kept: Kept = serde_json::from_value(named.extension.clone()).ok()?;
    let certificates = Certificates {
        ca_pem: String::from_utf8(STANDARD.decode(ca).ok()?).ok()?,
        certificate: STANDARD.decode(kept.certificate).ok()?.into(),
        key: STANDARD.decode(kept.key).ok()?.into(),
    };
    // Whether they suit the address is checked when binding.
    certificates.acceptor().ok()?;
    Some(certificates)
}

/// The relevant part of a kubeconfig: one cluster and one user, as this crate writes them.
#[derive(Deserialize)]
struct Config {
    clusters: [NamedCluster; 1],
    users: [NamedUser; 1],
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    #[serde(rename = "certificate-authority-data")]
    ca: Option<String>,
    #[serde(default)]
    extensions: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    extension: serde_json::Value,
}

#[derive(Deserialize)]
struct Kept {
    certificate: String,
    key: String,
}

#[derive(Deserialize)]
struct NamedUser {
    user: User,
}

#[derive(Deserialize)]
struct User {
    token: String,
}
