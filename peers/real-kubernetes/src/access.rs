//! Users with tokens, and kubeconfigs for them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

/// A user with all permissions.
pub(crate) const ADMIN: &str = "admin";
/// A user with the permissions that roles grant: none at first.
pub(crate) const READER: &str = "reader";

const TOKENS: &str = "tokens.csv";

pub(crate) struct Access {
    directory: PathBuf,
    authority: String,
    users: Vec<User>,
}

struct User {
    name: &'static str,
    group: &'static str,
    token: String,
    revoked: bool,
}

impl Access {
    pub(crate) fn new(directory: &Path, authority: String) -> Result<Self> {
        let users = [(ADMIN, "system:masters"), (READER, "readers")];
        let users = users
            .into_iter()
            .map(|(name, group)| Ok(User { name, group, token: token()?, revoked: false }));
        let users = users.collect::<Result<_>>()?;
        let access = Self { directory: directory.to_owned(), authority, users };
        access.write_tokens()?;
        Ok(access)
    }

    /// Returns the token file that the server reads when it starts.
    pub(crate) fn tokens(&self) -> PathBuf {
        self.directory.join(TOKENS)
    }

    /// Revokes a user's token or makes it valid again, from the next start of the server on.
    pub(crate) fn set_revoked(&mut self, user: &str, revoked: bool) -> Result<()> {
        let known = self.users.iter_mut().find(|known| known.name == user);
        known.with_context(|| format!("there is no user {user}"))?.revoked = revoked;
        self.write_tokens()
    }

    fn write_tokens(&self) -> Result<()> {
        let valid = self.users.iter().filter(|user| !user.revoked);
        let lines = valid.map(|user| {
            let User { name, group, token, .. } = user;
            format!("{token},{name},{name},\"{group}\"\n")
        });
        fs::write(self.tokens(), lines.collect::<String>())?;
        Ok(())
    }

    /// Writes a kubeconfig for a user of the server on this port.
    pub(crate) fn kubeconfig(&self, user: &str, port: u16) -> Result<PathBuf> {
        let known = self.users.iter().find(|known| known.name == user);
        let token = &known.with_context(|| format!("there is no user {user}"))?.token;
        let name = "real-kubernetes";
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority-data": BASE64_STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {
                "cluster": name, "user": user, "namespace": "default",
            }}],
        });
        let file = self.directory.join(format!("{user}-{port}.kubeconfig"));
        fs::write(&file, serde_json::to_vec_pretty(&config)?)?;
        Ok(file)
    }
}

/// Shows names, never a token.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.users.iter().map(|user| user.name)).finish()
    }
}

/// Returns a client for a kubeconfig, built as typical programs build it.
pub(crate) async fn client(kubeconfig: &Path, retry: bool) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_retry = retry;
    Ok(Client::try_from(config)?)
}

fn token() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(random)))
}
