//! The registry of served resources, for requests and discovery.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use super::Resource;
use super::builtin::builtin;

/// The order in which a real server lists its own groups. Custom groups follow.
const GROUPS: [&str; 16] = [
    "",
    "apps",
    "events.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
];

/// The served resources.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    /// In discovery order: by group, preferred version first, then by name.
    listed: Vec<Arc<Resource>>,
    /// The same, sorted for `get`: a binary search needs neither a hash nor an owned key.
    sorted: Vec<Arc<Resource>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let mut registry = Self { listed: Vec::new(), sorted: Vec::new() };
        registry.set(builtin().into_iter().map(Arc::new).collect());
        registry
    }

    pub(crate) fn storage_of<'a>(&'a self, resource: &'a Arc<Resource>) -> &'a Arc<Resource> {
        match &*resource.group {
            super::events::GROUP => self.get("", "v1", &resource.plural).unwrap_or(resource),
            _ => resource,
        }
    }

    /// Returns whether a group belongs to Kubernetes itself.
    pub(crate) fn is_built_in(&self, group: &str) -> bool {
        self.group(group).iter().any(|resource| !resource.custom)
    }

    /// Returns whether a resource belongs to Kubernetes itself.
    pub(crate) fn has_built_in(&self, group: &str, plural: &str) -> bool {
        self.group(group).iter().any(|resource| !resource.custom && resource.plural == plural)
    }

    /// Looks up a resource. Called for every request.
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let wanted = (plural, group, version);
        let at = self.sorted.binary_search_by(|resource| key(resource).cmp(&wanted)).ok()?;
        self.sorted.get(at)
    }

    /// Returns every resource in every version, in discovery order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.listed.iter()
    }

    /// Returns the resources of every group. A group is never empty, and has its preferred version
    /// first.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Arc<Resource>]> {
        self.listed.chunk_by(|a, b| a.group == b.group)
    }

    /// Returns the resources of a group, or none if there is no such group.
    pub(crate) fn group(&self, name: &str) -> &[Arc<Resource>] {
        self.groups().find(|group| group[0].group == name).unwrap_or_default()
    }

    /// Returns the resources of a version of a group, or none if there is no such version.
    pub(crate) fn version(&self, group: &str, version: &str) -> &[Arc<Resource>] {
        let mut versions = versions(self.group(group));
        versions.find(|resources| resources[0].version == version).unwrap_or_default()
    }

    /// Adds custom resources, which replace all versions of the same ones but never a built-in
    /// resource.
    pub(crate) fn insert_custom(&mut self, resources: Vec<Resource>) {
        let mut all = std::mem::take(&mut self.listed);
        all.retain(|old| !(old.custom && resources.iter().any(|new| same(old, new))));
        for new in resources {
            if !all.iter().any(|old| same(old, &new) && !old.custom) {
                all.push(Arc::new(new));
            }
        }
        self.set(all);
    }

    /// Removes a custom resource in all its versions.
    pub(crate) fn remove_custom(&mut self, group: &str, plural: &str) {
        let gone = |r: &Arc<Resource>| r.custom && r.group == group && r.plural == plural;
        self.listed.retain(|resource| !gone(resource));
        self.sorted.retain(|resource| !gone(resource));
    }

    fn set(&mut self, mut all: Vec<Arc<Resource>>) {
        self.sorted.clone_from(&all);
        self.sorted.sort_by(|a, b| key(a).cmp(&key(b)));
        all.sort_by(|a, b| discovery_order(a, b));
        self.listed = all;
    }
}

/// Returns the resources of each version of a group. A version is never empty, and the preferred
/// one is first.
pub(crate) fn versions(group: &[Arc<Resource>]) -> impl Iterator<Item = &[Arc<Resource>]> {
    group.chunk_by(|a, b| a.version == b.version)
}

fn same(a: &Resource, b: &Resource) -> bool {
    a.group == b.group && a.plural == b.plural
}

fn key(resource: &Resource) -> (&str, &str, &str) {
    (&resource.plural, &resource.group, &resource.version)
}

fn discovery_order(a: &Resource, b: &Resource) -> Ordering {
    let rank = |resource: &Resource| GROUPS.iter().position(|group| *group == resource.group);
    rank(a)
        .unwrap_or(GROUPS.len())
        .cmp(&rank(b).unwrap_or(GROUPS.len()))
        .then_with(|| a.group.cmp(&b.group))
        .then_with(|| version_order(&a.version, &b.version))
        .then_with(|| a.plural.cmp(&b.plural))
}

/// Orders versions: stable before beta before alpha, newer before older, and then all other names.
pub(crate) fn version_order(a: &str, b: &str) -> Ordering {
    Reverse(maturity(a)).cmp(&Reverse(maturity(b))).then_with(|| a.cmp(b))
}

/// Returns the stage and the major and minor number of versions like `v1` and `v2beta3`.
fn maturity(version: &str) -> Option<(u8, u64, u64)> {
    let numbers = version.strip_prefix('v')?;
    // `parse` alone would accept a sign.
    let number = |digits: &str| {
        digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))
    };
    if let Some((major, minor)) = numbers.split_once("alpha") {
        Some((0, number(major)?, number(minor)?))
    } else if let Some((major, minor)) = numbers.split_once("beta") {
        Some((1, number(major)?, number(minor)?))
    } else {
        Some((2, number(numbers)?, 0))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn custom(group: &str, version: &str, plural: &str) -> Resource {
        let template = builtin().swap_remove(0);
        Resource {
            group: Cow::Owned(group.to_owned()),
            version: Cow::Owned(version.to_owned()),
            plural: Cow::Owned(plural.to_owned()),
            custom: true,
            ..template
        }
    }

    fn names(resources: &[Arc<Resource>]) -> Vec<String> {
        resources.iter().map(|r| format!("{}/{}", r.version, r.plural)).collect()
    }

    #[test]
    fn every_built_in_resource_is_found_by_its_path() {
        let registry = Registry::new();
        assert_eq!(registry.iter().count(), builtin().len());
        for resource in builtin() {
            let found = registry.get(&resource.group, &resource.version, &resource.plural);
            assert_eq!(found.expect("served").kind, resource.kind);
        }
        assert!(registry.get("", "v1", "deployments").is_none());
        assert!(registry.get("apps", "v2", "deployments").is_none());
        assert!(registry.get("", "", "").is_none());
    }

    #[test]
    fn every_built_in_group_has_its_place_in_discovery() {
        let registry = Registry::new();
        let groups: Vec<_> = registry.groups().map(|group| group[0].group.to_string()).collect();
        assert_eq!(groups, GROUPS);
    }

    #[test]
    fn custom_groups_come_last_and_by_name() {
        let mut registry = Registry::new();
        registry.insert_custom(vec![custom("b.example.com", "v1", "things")]);
        registry.insert_custom(vec![custom("a.example.com", "v1", "things")]);
        let groups: Vec<_> = registry.groups().map(|group| &*group[0].group).collect();
        assert_eq!(groups[GROUPS.len()..], ["a.example.com", "b.example.com"]);
    }

    #[test]
    fn versions_go_from_stable_to_alpha_and_from_new_to_old() {
        let mut registry = Registry::new();
        let all =
            ["v1alpha1", "foo1", "v1", "v10beta3", "v2", "v10", "v2beta1", "foo10", "v11beta2"];
        registry.insert_custom(
            all.iter().map(|version| custom("x.example.com", version, "xs")).collect(),
        );
        let listed: Vec<_> =
            registry.group("x.example.com").iter().map(|r| r.version.to_string()).collect();
        let order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v2beta1", "v1alpha1"];
        assert_eq!(listed[..order.len()], order);
        assert_eq!(listed[order.len()..], ["foo1", "foo10"]);
    }

    #[test]
    fn a_new_definition_replaces_all_versions_of_the_old_one() {
        let mut registry = Registry::new();
        let old = [custom("x.example.com", "v1", "xs"), custom("x.example.com", "v2", "xs")];
        registry.insert_custom(old.into());
        registry.insert_custom(vec![custom("x.example.com", "v1", "ys")]);
        registry.insert_custom(vec![custom("x.example.com", "v3", "xs")]);
        assert_eq!(names(registry.group("x.example.com")), ["v3/xs", "v1/ys"]);
        assert!(registry.get("x.example.com", "v1", "xs").is_none());
        assert!(registry.get("x.example.com", "v3", "xs").is_some());
        registry.remove_custom("x.example.com", "xs");
        assert_eq!(names(registry.group("x.example.com")), ["v1/ys"]);
        registry.remove_custom("x.example.com", "ys");
        assert!(registry.group("x.example.com").is_empty());
    }

    #[test]
    fn a_definition_cannot_take_the_place_of_a_built_in_resource() {
        let mut registry = Registry::new();
        registry.insert_custom(vec![custom("apps", "v1", "deployments")]);
        assert!(!registry.get("apps", "v1", "deployments").expect("served").custom);
        registry.remove_custom("apps", "deployments");
        assert!(registry.get("apps", "v1", "deployments").is_some());
    }
}
