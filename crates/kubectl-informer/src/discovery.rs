//! Discovers the types that a server has, and resolves words to types.

use std::collections::HashSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube_client::{Client, Error};
use kube_core::ApiResource;
use kube_core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};

pub(crate) mod nearest;

/// A type that a server serves, in one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Type {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) namespaced: bool,
}

impl Type {
    /// Returns the resource to create an informer for.
    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the unambiguous name of the type, as kubectl writes it: `pods`, `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns the singular name, as in `kubectl get -o name` before the slash: `pod`,
    /// `deployment.apps`.
    pub(crate) fn singular_name(&self) -> String {
        let singular =
            if self.singular.is_empty() { self.kind.to_lowercase() } else { self.singular.clone() };
        if self.group.is_empty() { singular } else { format!("{singular}.{}", self.group) }
    }

    /// Returns whether an informer can watch this type.
    pub(crate) fn is_watchable(&self) -> bool {
        ["list", "watch"].iter().all(|verb| self.verbs.iter().any(|served| served == verb))
    }

    fn is_called(&self, word: &str) -> bool {
        let mut names = [&self.plural, &self.singular].into_iter().chain(&self.short_names);
        names.any(|name| name == word) || self.kind.to_lowercase() == word
    }
}

/// All types of a server. If a word is ambiguous, the first match wins.
#[derive(Clone, Default, Debug)]
pub(crate) struct Types(pub(crate) Vec<Type>);

impl Types {
    /// Discovers the types: with two requests if the server supports aggregated discovery, and
    /// otherwise with one per group and version.
    pub(crate) async fn discover(client: &Client) -> Result<Self, Error> {
        match aggregated(client).await {
            Ok(Some(types)) => Ok(types),
            // An unexpected response: the server does not support aggregated discovery.
            Ok(None) | Err(Error::SerdeError(_)) => plain(client).await,
            Err(Error::Api(status)) if matches!(status.code, 404 | 406) => plain(client).await,
            Err(error) => Err(error),
        }
    }

    /// Resolves a word of the command line: `pods`, `po`, `deploy.apps`, `deployments.v1.apps`, or
    /// a category such as `all`.
    pub(crate) fn find(&self, word: &str) -> Result<Vec<&Type>, String> {
        let lower = word.to_lowercase();
        if let Some(found) = self.one(&lower) {
            return Ok(vec![found]);
        }
        let mut seen = HashSet::new();
        let of_category = self.0.iter().filter(|each| {
            each.categories.contains(&lower)
                && each.is_watchable()
                && seen.insert((&each.group, &each.plural))
        });
        let of_category: Vec<_> = of_category.collect();
        if of_category.is_empty() { Err(self.unknown(word)) } else { Ok(of_category) }
    }

    fn one(&self, word: &str) -> Option<&Type> {
        let called =
            |word: &str| self.0.iter().find(|each| each.is_called(word) && each.is_watchable());
        let (name, rest) = word.split_once('.').unwrap_or((word, ""));
        if rest.is_empty() {
            return called(name).or_else(|| self.0.iter().find(|each| each.is_called(name)));
        }
        let mut all = self.0.iter();
        all.find(|each| {
            let versioned = [each.version.as_str(), each.group.as_str()].join(".");
            each.is_called(name)
                && (each.group == rest
                    || versioned == rest
                    || each.group.is_empty() && each.version == rest)
        })
        // `deploy.app`: like kubectl, accept an abbreviated group.
        .or_else(|| self.0.iter().find(|each| each.is_called(name) && each.group.starts_with(rest)))
    }

    fn unknown(&self, word: &str) -> String {
        let names = self.0.iter().filter(|each| each.is_watchable()).flat_map(|each| {
            let short = each.short_names.iter().cloned();
            [each.plural.clone(), each.singular.clone(), each.name()].into_iter().chain(short)
        });
        let mut text = format!("the server has no type {word:?}");
        match nearest::nearest(word, names) {
            Some(near) => text.push_str(&format!("; did you mean {near:?}?")),
            None => text.push('.'),
        }
        text.push_str("\n`kubectl api-resources` lists the types that there are");
        text
    }
}

async fn aggregated(client: &Client) -> Result<Option<Types>, Error> {
    let core = client.list_core_api_versions_aggregated().await?;
    let groups = client.list_api_groups_aggregated().await?;
    let mut types = Vec::new();
    for group in core.items.iter().chain(&groups.items) {
        push_group(&mut types, group);
    }
    // An older server responds with its plain lists, which have no items.
    Ok((!types.is_empty()).then_some(Types(types)))
}

fn push_group(types: &mut Vec<Type>, group: &APIGroupDiscovery) {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref());
    for version in &group.versions {
        for resource in &version.resources {
            let in_group = (name.unwrap_or_default(), version.version.as_deref());
            types.extend(of_aggregated(in_group, resource));
        }
    }
}

fn of_aggregated(
    (group, version): (&str, Option<&str>),
    resource: &APIResourceDiscovery,
) -> Option<Type> {
    let kind = resource.response_kind.as_ref()?;
    Some(Type {
        group: group.to_owned(),
        version: version?.to_owned(),
        kind: kind.kind.clone()?,
        plural: resource.resource.clone()?,
        singular: resource.singular_resource.clone().unwrap_or_default(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        verbs: resource.verbs.clone(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
    })
}

/// Sends one request per group and version. Like kubectl, skips groups whose server is down.
async fn plain(client: &Client) -> Result<Types, Error> {
    let mut types = Vec::new();
    for version in client.list_core_api_versions().await?.versions {
        let list = client.list_core_api_resources(&version).await?;
        types.extend(list.resources.into_iter().filter_map(|each| of_plain("", &version, each)));
    }
    for group in client.list_api_groups().await?.groups {
        let preferred = group.preferred_version.map(|version| version.version);
        let mut versions: Vec<_> = group.versions.into_iter().map(|each| each.version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        for version in versions {
            let path = format!("{}/{version}", group.name);
            let Ok(list) = client.list_api_group_resources(&path).await else { continue };
            let listed = list.resources.into_iter();
            types.extend(listed.filter_map(|each| of_plain(&group.name, &version, each)));
        }
    }
    Ok(Types(types))
}

fn of_plain(group: &str, version: &str, resource: APIResource) -> Option<Type> {
    // The list includes subresources.
    if resource.name.contains('/') {
        return None;
    }
    Some(Type {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: resource.kind,
        plural: resource.name,
        singular: resource.singular_name,
        short_names: resource.short_names.unwrap_or_default(),
        categories: resource.categories.unwrap_or_default(),
        verbs: resource.verbs,
        namespaced: resource.namespaced,
    })
}

#[cfg(test)]
mod tests;
