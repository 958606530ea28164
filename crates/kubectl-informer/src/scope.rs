//! The scope of a command: namespaces and selectors, as in kubectl.

use clap::Args;
use http::Request;
use kube_client::Error;

use crate::connect::Cluster;

/// Which objects.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Which objects")]
#[group(id = "scope")]
pub(crate) struct Options {
    /// The namespace; several with commas. Otherwise that of the kubeconfig's context.
    #[arg(short, long, value_name = "NAMESPACE", value_delimiter = ',')]
    namespace: Vec<String>,

    /// All namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only objects with these labels: `app=web,tier!=db`, `env in (a,b)`.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,

    /// Only objects with these fields: `status.phase=Running`, `metadata.name=web`.
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) field_selector: Option<String>,
}

impl Options {
    /// Returns the requested namespaces that do not exist. Without the permission to read
    /// namespaces, none are reported.
    pub(crate) async fn missing(&self, cluster: &Cluster) -> Vec<String> {
        let mut missing = Vec::new();
        for name in &self.namespace {
            let request = Request::get(format!("/api/v1/namespaces/{name}")).body(Vec::new());
            let Ok(request) = request else { continue };
            let found = cluster.client.request::<serde_json::Value>(request).await;
            if matches!(found, Err(Error::Api(status)) if status.code == 404) {
                missing.push(name.clone());
            }
        }
        missing
    }

    /// Returns whether a selector was given.
    pub(crate) fn selects(&self) -> bool {
        self.selector.is_some() || self.field_selector.is_some()
    }

    /// Returns the namespaces to use. Empty means all.
    pub(crate) fn namespaces(&self, cluster: &Cluster) -> Result<Vec<String>, String> {
        if self.all_namespaces {
            return Ok(Vec::new());
        }
        if self.namespace.is_empty() {
            return Ok(if cluster.shows_everything() {
                Vec::new()
            } else {
                vec![cluster.namespace.clone()]
            });
        }
        let mut namespaces = self.namespace.clone();
        namespaces.sort();
        namespaces.dedup();
        for name in &namespaces {
            let fits =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            if name.is_empty() || !name.bytes().all(fits) {
                return Err(format!(
                    "{name:?} is no name of a namespace: lower case letters, digits and '-' are\n\
                     give one with -n NAMESPACE, or -A for all of them"
                ));
            }
        }
        Ok(namespaces)
    }
}
