//! What clients know a server by, from one run of it to the next.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::kubeconfig;
use super::tls::Certificates;

/// What clients know a server by: the administrator's token and, with TLS, its certificates and key.
/// A server that is started again with it is the same to them, and they go on.
///
/// It is kept in the kubeconfig that [`Listening`](crate::Listening) writes, with the key in an
/// extension that clients pass over. That is no worse than the token which is in there as well: the
/// key is of this one server, which only this machine can reach (the kubeconfig of a socket that
/// others can reach has no key in it), and nothing can be signed with it. But where
/// `kubectl config view` hides tokens, it does not hide extensions.
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
    /// None of a server without TLS.
    pub(super) certificates: Option<Certificates>,
}

impl Identity {
    /// The identity of the server that wrote this kubeconfig. None if no server of ours did, or if
    /// the text was damaged since.
    pub fn from_kubeconfig(text: &str) -> Option<Self> {
        if !text.starts_with(kubeconfig::MARK) {
            return None;
        }
        let config: Config = serde_saphyr::from_str(text).ok()?;
        let ([cluster], [user]) = (config.clusters, config.users);
        let token = user.user.token;
        // Others could not be sent in a header.
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let certificates = match cluster.cluster.ca {
            Some(ca) => Some(certificates(&ca, &cluster.cluster.extensions)?),
            None => None,
        };
        Some(Self { token, first_version: first_version(text), certificates })
    }

    /// The administrator's token, for [`Builder::token`](crate::Builder::token).
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns a version above all that the earlier server gave out, for
    /// [`Builder::first_version`](crate::Builder::first_version): its clients are then told that their
    /// versions have expired, and list again. Without it they would wait for versions that may never come, or miss
    /// changes.
    pub fn first_version(&self) -> u64 {
        self.first_version
    }
}

/// Returns the first version that the server which wrote the text cannot have given out.
fn first_version(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(kubeconfig::VERSIONS));
    // Beyond that there would be no versions left to count.
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
    // Whether they suit the address is known when there is one.
    certificates.acceptor().ok()?;
    Some(certificates)
}

/// What of a kubeconfig is of interest: one cluster and one user, as we write them.
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
