//! Resolves the types that the command line names, and configures their informers.

use std::sync::Arc;
use std::time::Duration;

use kube_core::DynamicObject;
use kube_informer::{InformerBuilder, SharedInformerFactory};
use tokio::time::timeout;

use crate::connect::Cluster;
use crate::discovery::{Type, Types};
use crate::{plain, scope};

/// A type from the command line, with the name of one of its objects if one was given.
pub(crate) struct Chosen {
    pub(crate) of: Arc<Type>,
    pub(crate) name: Option<String>,
}

/// The default time limit for discovering the server's types.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Discovers the types that the server has.
pub(crate) async fn types(cluster: &Cluster, patience: Duration) -> Result<Types, String> {
    let place = &cluster.place;
    match timeout(patience, Types::discover(&cluster.client)).await {
        Ok(types) => types.map_err(|error| plain::unreachable(&error, place)),
        Err(_) => Err(format!(
            "no answer from {} within {patience:?}\nsomething listens there, but says nothing: is it \
             the server of {}, and does it work?",
            place.address, place.origin
        )),
    }
}

/// Resolves the types that the command line names.
pub(crate) async fn choose(
    words: &str,
    cluster: &Cluster,
    patience: Duration,
) -> Result<Vec<Chosen>, String> {
    let types = types(cluster, patience).await?;
    let mut chosen: Vec<Chosen> = Vec::new();
    for word in words.split(',').filter(|word| !word.is_empty()) {
        let (word, name) = match word.split_once('/') {
            Some((word, name)) if !name.is_empty() => (word, Some(name.to_owned())),
            _ => (word.trim_end_matches('/'), None),
        };
        for of in types.find(word)? {
            if !of.is_watchable() {
                return Err(format!(
                    "{} cannot be watched: the server serves {} only",
                    of.name(),
                    of.verbs.join(", ")
                ));
            }
            if !chosen.iter().any(|each| *each.of == *of && each.name == name) {
                chosen.push(Chosen { of: Arc::new(of.clone()), name: name.clone() });
            }
        }
    }
    if chosen.is_empty() {
        return Err("name a type, such as pods".to_owned());
    }
    Ok(chosen)
}

impl Chosen {
    /// Configures the informer for this choice, without starting it.
    pub(crate) fn informer(
        &self,
        factory: &SharedInformerFactory,
        scope: &scope::Options,
        namespaces: &[String],
    ) -> InformerBuilder<DynamicObject> {
        let mut builder = factory.builder_with::<DynamicObject>(&self.of.resource());
        if self.of.namespaced && !namespaces.is_empty() {
            builder = builder.namespaces(namespaces.iter().cloned());
        }
        if let Some(labels) = &scope.selector {
            builder = builder.labels(labels);
        }
        let name = self.name.as_ref().map(|name| format!("metadata.name={name}"));
        let fields: Vec<_> = name.iter().chain(&scope.field_selector).cloned().collect();
        if fields.is_empty() { builder } else { builder.fields(fields.join(",")) }
    }
}
