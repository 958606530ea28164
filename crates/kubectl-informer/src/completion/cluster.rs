//! Candidates from the kubeconfig and from the server.

use std::collections::HashSet;

use clap::{Args as _, Command, FromArgMatches as _};
use http::Request;
use kube_client::config::Kubeconfig;
use kube_core::{DynamicObject, Resource as _};
use serde_json::Value;

use super::candidates::Candidate;
use super::words::Before;
use crate::connect::{self, Cluster};
use crate::discovery::{Type, Types};

/// The maximum number of names to request. A longer list would be of no use to a reader.
const NAMES_MAX: u32 = 500;

/// Requests only the metadata of objects, which includes their names.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                        application/json";

/// The words so far, which select the cluster, and the beginning of the word to complete.
pub(super) struct Asked<'a> {
    pub(super) before: &'a Before,
    pub(super) begin: &'a str,
}

impl Asked<'_> {
    pub(super) fn contexts(&self) -> Vec<Candidate> {
        self.of_kubeconfig(|config| config.contexts.into_iter().map(|each| each.name).collect())
    }

    pub(super) fn clusters(&self) -> Vec<Candidate> {
        self.of_kubeconfig(|config| config.clusters.into_iter().map(|each| each.name).collect())
    }

    pub(super) fn users(&self) -> Vec<Candidate> {
        self.of_kubeconfig(|config| config.auth_infos.into_iter().map(|each| each.name).collect())
    }

    fn of_kubeconfig(&self, names: impl FnOnce(Kubeconfig) -> Vec<String>) -> Vec<Candidate> {
        let config = self.connection().and_then(|options| options.kubeconfig());
        let names = config.map(names).unwrap_or_default();
        names.into_iter().map(|name| Candidate::new(name, "")).collect()
    }

    pub(super) async fn namespaces(&self) -> Vec<Candidate> {
        let Some(cluster) = self.cluster().await else { return Vec::new() };
        names(&cluster, "/api/v1/namespaces").await
    }

    /// Returns the plural names of all types. Short names are included once the user has begun to
    /// type. Of two types with the same plural, the second is named with its group.
    pub(super) async fn types(&self) -> Vec<Candidate> {
        let Some(cluster) = self.cluster().await else { return Vec::new() };
        let types = Types::discover(&cluster.client).await.unwrap_or_default();
        let begun = !self.begin.rsplit(',').next().unwrap_or_default().is_empty();
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for of in types.0.iter().filter(|of| of.is_watchable()) {
            let meaning = format!("{} {}", of.kind, of.api_version());
            let plural = if seen.insert(&of.plural) { of.plural.clone() } else { of.name() };
            all.push(Candidate::new(plural, meaning));
            // A short name that is a prefix of the plural would only get in its way.
            let shorts = of.short_names.iter().filter(|short| !of.plural.starts_with(*short));
            for short in shorts.filter(|_| begun) {
                all.push(Candidate::new(short, format!("short for {}", of.plural)));
            }
        }
        all
    }

    /// Returns the names of the objects of a type, in the given namespace.
    pub(super) async fn names(&self, word: &str) -> Vec<Candidate> {
        let Some(cluster) = self.cluster().await else { return Vec::new() };
        let types = Types::discover(&cluster.client).await.unwrap_or_default();
        let mut all = Vec::new();
        for word in word.split(',') {
            for of in types.find(word).unwrap_or_default() {
                let namespace = self.namespace(&cluster, of);
                let path = DynamicObject::url_path(&of.resource(), namespace.as_deref());
                all.extend(names(&cluster, &path).await);
            }
        }
        all
    }

    fn namespace(&self, cluster: &Cluster, of: &Type) -> Option<String> {
        if !of.namespaced || self.before.has("all_namespaces") {
            return None;
        }
        match self.before.value("namespace") {
            Some(given) => given.split(',').next().map(str::to_owned),
            None => Some(cluster.namespace.clone()).filter(|_| !cluster.shows_everything()),
        }
    }

    async fn cluster(&self) -> Option<Cluster> {
        Cluster::connect(&self.connection()?).await.ok()
    }

    /// Parses the typed flags that select a cluster.
    fn connection(&self) -> Option<connect::Options> {
        let command = connect::Options::augment_args(Command::new("connection"));
        let known = |long: &str| command.get_arguments().any(|arg| arg.get_long() == Some(long));
        let flags = self.before.flags.iter().filter_map(|flag| {
            let long = flag.long.as_deref().filter(|long| known(long))?;
            Some(match &flag.value {
                Some(value) => format!("--{long}={value}"),
                None => format!("--{long}"),
            })
        });
        let words: Vec<_> = std::iter::once("connection".to_owned()).chain(flags).collect();
        let matches = command.try_get_matches_from(words).ok()?;
        connect::Options::from_arg_matches(&matches).ok()
    }
}

/// Returns the names of the objects at a path.
async fn names(cluster: &Cluster, path: &str) -> Vec<Candidate> {
    let path = format!("{path}?limit={NAMES_MAX}&resourceVersion=0");
    let request = Request::get(path).header("Accept", METADATA).body(Vec::new());
    let Ok(request) = request else { return Vec::new() };
    let Ok(list) = cluster.client.request::<Value>(request).await else { return Vec::new() };
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = items.iter().filter_map(|item| item["metadata"]["name"].as_str());
    names.map(|name| Candidate::new(name, "")).collect()
}
