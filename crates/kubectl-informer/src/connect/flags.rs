//! The flags that override parts of a kubeconfig, or replace it, by the rules of client-go.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use http::{HeaderValue, Uri};
use kube_client::Config;
use kube_client::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster,
    NamedContext,
};

/// The name of the context, cluster and user that are made of flags alone.
const NAME: &str = "flags";

/// Overrides of the kubeconfig.
#[derive(Args, Clone, Default, Debug)]
#[group(id = "overrides")]
pub(crate) struct Flags {
    /// The address of the API server, instead of the kubeconfig's: `https://10.0.0.1:6443`. Needs
    /// no kubeconfig.
    #[arg(short, long, value_name = "URL")]
    server: Option<String>,

    /// The bearer token to send, instead of the kubeconfig's credentials. Other users of this machine
    /// can see it in the list of processes.
    // Otherwise clap would take a token that begins with a hyphen for a flag, and show it.
    #[arg(long, value_name = "TOKEN", value_parser = token, allow_hyphen_values = true)]
    token: Option<Token>,

    /// The file with the certificates of authorities that may sign the server's certificate.
    #[arg(long, value_name = "FILE")]
    certificate_authority: Option<PathBuf>,

    /// Does not check the server's certificate: anyone on the way can read and change everything.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", default_value_t = false, hide_default_value = true)]
    #[arg(hide_possible_values = true, conflicts_with = "certificate_authority")]
    insecure_skip_tls_verify: bool,

    /// The name that the server's certificate must have, instead of the one in its address.
    #[arg(long, value_name = "NAME")]
    tls_server_name: Option<String>,
}

/// A bearer token. `Debug` does not show it.
#[derive(Clone)]
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Accepts anything: clap's error for a value that is refused would show it.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a clap parser")]
fn token(text: &str) -> Result<Token, String> {
    Ok(Token(text.to_owned()))
}

impl Flags {
    /// Returns whether these flags name a server, so that no kubeconfig is needed.
    pub(super) fn name_a_server(&self) -> bool {
        self.server.is_some()
    }

    /// Returns a flag that was given although there is no server that it could apply to.
    pub(super) fn without_server(&self) -> Option<&'static str> {
        [
            (self.token.is_some(), "--token"),
            (self.certificate_authority.is_some(), "--certificate-authority"),
            (self.insecure_skip_tls_verify, "--insecure-skip-tls-verify"),
            (self.tls_server_name.is_some(), "--tls-server-name"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }

    /// Checks the flags. The error does not contain the token.
    pub(super) fn check(&self) -> Result<(), String> {
        let valid = |token: &Token| {
            !token.0.is_empty() && HeaderValue::try_from(format!("Bearer {}", token.0)).is_ok()
        };
        if !self.token.as_ref().is_none_or(valid) {
            return Err("--token: it is empty, or has characters that no token has".to_owned());
        }
        let host = |server: &String| {
            let uri = server.parse::<Uri>().ok();
            uri.is_some_and(|uri| {
                uri.host().is_some_and(|host| !host.is_empty())
                    && matches!(uri.scheme_str(), None | Some("http" | "https"))
            })
        };
        if let Some(server) = self.server.as_ref().filter(|server| !host(server)) {
            return Err(format!(
                "--server {server:?}: it is no address of a server: https://10.0.0.1:6443 would be"
            ));
        }
        if let Some(file) = &self.certificate_authority
            && let Err(error) = std::fs::File::open(file)
        {
            return Err(format!("--certificate-authority {}: {error}", file.display()));
        }
        Ok(())
    }

    /// Applies the flags to the selected context of a kubeconfig. If it has none and the flags name
    /// a server, adds one.
    pub(super) fn apply(&self, config: &mut Kubeconfig, chosen: &mut KubeConfigOptions) {
        let context = chosen.context.clone().or_else(|| config.current_context.clone());
        let context = context.filter(|name| !name.is_empty());
        let name = match context {
            Some(name) => name,
            None if self.server.is_some() => {
                config.contexts.push(made_of_flags(chosen));
                chosen.context = Some(NAME.to_owned());
                NAME.to_owned()
            }
            None => return,
        };
        let context = config.contexts.iter_mut().find(|each| each.name == name);
        let Some(context) = context.and_then(|each| each.context.as_mut()) else { return };
        let cluster = chosen.cluster.as_ref().unwrap_or(&context.cluster).clone();
        if cluster == NAME && !config.clusters.iter().any(|each| each.name == NAME) {
            let (name, cluster) = (NAME.to_owned(), Some(Cluster::default()));
            config.clusters.push(NamedCluster { name, cluster, ..NamedCluster::default() });
        }
        let cluster = config.clusters.iter_mut().find(|each| each.name == cluster);
        if let Some(cluster) = cluster.and_then(|each| each.cluster.as_mut()) {
            self.apply_to_cluster(cluster);
        }
        let Some(token) = &self.token else { return };
        let user = chosen.user.clone().or_else(|| context.user.clone());
        let user = user.unwrap_or_else(|| NAME.to_owned());
        context.user = Some(user.clone());
        if !config.auth_infos.iter().any(|each| each.name == user) {
            let name = user.clone();
            config.auth_infos.push(NamedAuthInfo { name, ..NamedAuthInfo::default() });
        }
        let user = config.auth_infos.iter_mut().find(|each| each.name == user);
        if let Some(user) = user {
            set_token(user.auth_info.get_or_insert_default(), token);
        }
    }

    /// Applies the flags to the configuration of a pod's service account.
    pub(super) fn apply_in_pod(&self, config: &mut Config) {
        if let Some(token) = &self.token {
            set_token(&mut config.auth_info, token);
        }
        if self.insecure_skip_tls_verify || self.certificate_authority.is_some() {
            config.accept_invalid_certs = self.insecure_skip_tls_verify;
            config.root_cert = None;
            config.root_cert_file.clone_from(&self.certificate_authority);
        }
        if self.tls_server_name.is_some() {
            config.tls_server_name.clone_from(&self.tls_server_name);
        }
    }

    fn apply_to_cluster(&self, cluster: &mut Cluster) {
        if let Some(server) = &self.server {
            cluster.server = Some(server.clone());
        }
        if self.insecure_skip_tls_verify || self.certificate_authority.is_some() {
            cluster.insecure_skip_tls_verify = Some(self.insecure_skip_tls_verify);
            let file = self.certificate_authority.as_ref();
            cluster.certificate_authority = file.map(|file| file.display().to_string());
            cluster.certificate_authority_data = None;
        }
        // The kubeconfig's name belongs to the kubeconfig's server.
        if self.server.is_some() || self.tls_server_name.is_some() {
            cluster.tls_server_name.clone_from(&self.tls_server_name);
        }
    }
}

/// Replaces all credentials but a client certificate, which client-go sends in addition.
fn set_token(user: &mut AuthInfo, token: &Token) {
    user.token = Some(token.0.clone().into());
    user.token_file = None;
    user.username = None;
    user.password = None;
    user.auth_provider = None;
    user.exec = None;
}

fn made_of_flags(chosen: &KubeConfigOptions) -> NamedContext {
    let cluster = chosen.cluster.clone().unwrap_or_else(|| NAME.to_owned());
    let user = chosen.user.clone();
    let context = Context { cluster, user, ..Context::default() };
    NamedContext { name: NAME.to_owned(), context: Some(context), ..NamedContext::default() }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};
    use serde_json::json;

    use super::*;

    fn flags(words: &[&str]) -> Flags {
        let command = Flags::augment_args(Command::new("flags").no_binary_name(true));
        Flags::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    fn kubeconfig() -> Kubeconfig {
        serde_json::from_value(json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
            "clusters": [{"name": "k", "cluster": {
                "server": "https://old:1", "tls-server-name": "old", "certificate-authority": "/none",
                "proxy-url": "http://proxy",
            }}],
            "users": [{"name": "u", "user": {
                "username": "me", "password": "secret", "exec": {"command": "plugin"},
                "client-certificate": "cert.pem", "client-key": "key.pem",
            }}],
        }))
        .unwrap()
    }

    async fn applied(words: &[&str], mut config: Kubeconfig) -> Config {
        let mut chosen = KubeConfigOptions::default();
        flags(words).apply(&mut config, &mut chosen);
        Config::from_custom_kubeconfig(config, &chosen).await.unwrap()
    }

    #[tokio::test]
    async fn flags_override_the_kubeconfig() {
        let words = ["-s", "https://new:2", "--token=t", "--insecure-skip-tls-verify"];
        let config = applied(&words, kubeconfig()).await;
        assert_eq!(config.cluster_url, "https://new:2/");
        assert!(config.accept_invalid_certs && config.root_cert.is_none());
        assert_eq!((config.tls_server_name, &*config.default_namespace), (None, "n"));
        assert!(config.auth_info.token.is_some() && config.auth_info.exec.is_none());
        assert_eq!(config.auth_info.username, None);
        assert_eq!(config.auth_info.client_certificate.as_deref(), Some("cert.pem"));
        assert!(config.proxy_url.is_some());
    }

    #[tokio::test]
    async fn a_server_needs_no_kubeconfig() {
        let words = ["--server", "10.0.0.1:80", "--token", "t", "--tls-server-name", "kube"];
        let config = applied(&words, Kubeconfig::default()).await;
        assert_eq!(config.cluster_url.authority().unwrap(), "10.0.0.1:80");
        assert_eq!(config.tls_server_name.as_deref(), Some("kube"));
        assert!(config.auth_info.token.is_some());
    }

    #[test]
    fn the_token_is_never_shown() {
        let given = flags(&["--server=https://a", "--token", "hunter2\n"]);
        assert!(!format!("{given:?}").contains("hunter2"));
        let error = given.check().unwrap_err();
        assert!(error.starts_with("--token: ") && !error.contains("hunter2"), "{error}");
        assert!(flags(&["--token="]).check().is_err());
        assert_eq!(flags(&["--token", "-Vx"]).token.map(|token| token.0).as_deref(), Some("-Vx"));
    }

    #[test]
    fn bad_addresses_and_files_are_errors() {
        for (words, problem) in [
            (["--server", "ftp://a"], "--server \"ftp://a\""),
            (["--server", "https://"], "--server \"https://\""),
            (["--server", "/path"], "--server \"/path\""),
            (
                ["--certificate-authority", "/no/such/file"],
                "--certificate-authority /no/such/file: ",
            ),
        ] {
            let error = flags(&words).check().unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
        assert_eq!(flags(&["--server", "10.0.0.1"]).check(), Ok(()));
        assert!(flags(&["--insecure-skip-tls-verify=true"]).insecure_skip_tls_verify);
        assert!(!flags(&["--insecure-skip-tls-verify=false"]).insecure_skip_tls_verify);
    }
}
