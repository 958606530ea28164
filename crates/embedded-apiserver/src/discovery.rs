//! Discovery: the groups, versions and resources that the server offers.
//!
//! There are two forms. The older one needs a request for each group and version. The aggregated
//! one returns everything at once, and is sent to clients that request it in `Accept`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::{Registry, Resource, Subresource, versions};

const JSON: &str = "application/json";
const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs, in their order for custom resources.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Handles a discovery path. Returns the content type and the document, or `None` if it is not such
/// a path or there is no such group or version.
pub(crate) fn respond(
    path: &str,
    accept: Option<&str>,
    registry: &Registry,
) -> Option<(&'static str, Value)> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<_> = path.strip_prefix('/')?.split('/').collect();
    let document = match (&segments[..], aggregated(accept)) {
        (["api"], Some(form)) => return Some(list_of_groups(form, &[registry.group("")])),
        (["apis"], Some(form)) => {
            let groups: Vec<_> = named_groups(registry).collect();
            return Some(list_of_groups(form, &groups));
        }
        (["api"], None) => json!({
            "kind": "APIVersions",
            "versions": versions(registry.group("")).map(|v| &v[0].version).collect::<Vec<_>>(),
            "serverAddressByClientCIDRs": [],
        }),
        (["apis"], None) => json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": named_groups(registry).map(api_group).collect::<Vec<_>>(),
        }),
        (["api", version], _) => resource_list(registry.version("", version))?,
        // The core group has no name, and therefore no path here.
        (["apis", "", ..], _) => return None,
        (["apis", group], _) => one_group(registry.group(group))?,
        (["apis", group, version], _) => resource_list(registry.version(group, version))?,
        _ => return None,
    };
    Some((JSON, document))
}

fn named_groups(registry: &Registry) -> impl Iterator<Item = &[Arc<Resource>]> {
    registry.groups().filter(|group| !group[0].group.is_empty())
}

/// Returns the aggregated form that a client prefers, if it accepts one.
///
/// As in Kubernetes, any request for the aggregated form suffices, even if the client prefers plain
/// JSON.
fn aggregated(accept: Option<&str>) -> Option<&'static str> {
    let mut best: Option<(f32, &'static str)> = None;
    for clause in accept?.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
            continue;
        }
        let (mut group, mut version, mut kind, mut quality) = ("", "", "", 1.0);
        for (key, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            match key.trim() {
                "g" => group = value.trim(),
                "v" => version = value.trim(),
                "as" => kind = value.trim(),
                "q" => quality = value.trim().parse().unwrap_or(1.0),
                _ => {}
            }
        }
        let form = match (group, version, kind) {
            ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => V2,
            ("apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList") => V2BETA1,
            _ => continue,
        };
        if best.is_none_or(|(so_far, _)| quality > so_far) {
            best = Some((quality, form));
        }
    }
    best.map(|(_, form)| form)
}

fn one_group(group: &[Arc<Resource>]) -> Option<Value> {
    if group.is_empty() {
        return None;
    }
    let mut document = api_group(group);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(document)
}

fn api_group(group: &[Arc<Resource>]) -> Value {
    let versions: Vec<_> = versions(group)
        .map(|version| {
            json!({"groupVersion": version[0].api_version(), "version": version[0].version})
        })
        .collect();
    json!({
        "name": group[0].group,
        "preferredVersion": versions[0],
        "versions": versions,
    })
}

fn resource_list(version: &[Arc<Resource>]) -> Option<Value> {
    let first = version.first()?;
    let mut document = json!({
        "kind": "APIResourceList",
        "groupVersion": first.api_version(),
        "resources": version.iter().flat_map(|resource| api_resources(resource)).collect::<Vec<_>>(),
    });
    // Kubernetes omits it for the core group, and some clients compare.
    if !first.group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Some(document)
}

/// Returns the resource itself, followed by its subresources.
fn api_resources(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs(resource),
    });
    add_names(&mut main, resource);
    let mut all = vec![main];
    for subresource in Subresource::of(resource) {
        let mut document = json!({
            "name": format!("{}/{}", resource.plural, subresource.as_str()),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": subresource.kind(resource),
            "verbs": subresource.verbs(),
        });
        if let Some((group, version)) = subresource.group_version() {
            document["group"] = group.into();
            document["version"] = version.into();
        }
        all.push(document);
    }
    all
}

fn list_of_groups(form: &'static str, groups: &[&[Arc<Resource>]]) -> (&'static str, Value) {
    let version = if form == V2 { "v2" } else { "v2beta1" };
    let items: Vec<_> = groups.iter().map(|group| group_discovery(group)).collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    });
    (form, document)
}

fn group_discovery(group: &[Arc<Resource>]) -> Value {
    let metadata = match group.first().map(|first| &*first.group) {
        None | Some("") => json!({}),
        Some(name) => json!({"name": name}),
    };
    let versions: Vec<_> = versions(group)
        .map(|version| {
            json!({
                "version": version[0].version,
                "resources": version.iter().map(|r| resource_discovery(r)).collect::<Vec<_>>(),
                "freshness": "Current",
            })
        })
        .collect();
    json!({"metadata": metadata, "versions": versions})
}

fn resource_discovery(resource: &Resource) -> Value {
    let mut document = json!({
        "resource": resource.plural,
        "responseKind": response_kind(resource),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    add_names(&mut document, resource);
    let subresources: Vec<_> = Subresource::of(resource)
        .into_iter()
        .map(|subresource| {
            let mut kind = response_kind(resource);
            kind["kind"] = json!(subresource.kind(resource));
            if let Some((group, version)) = subresource.group_version() {
                kind["group"] = group.into();
                kind["version"] = version.into();
            }
            json!({
                "subresource": subresource.as_str(),
                "responseKind": kind,
                "verbs": subresource.verbs(),
            })
        })
        .collect();
    if !subresources.is_empty() {
        document["subresources"] = subresources.into();
    }
    document
}

/// Returns the `responseKind`. Built-in resources inherit its group and version from their list.
fn response_kind(resource: &Resource) -> Value {
    let (group, version) = match resource {
        Resource { custom: true, group, version, .. } => (&**group, &**version),
        _ => ("", ""),
    };
    json!({"group": group, "version": version, "kind": resource.kind})
}

fn add_names(document: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        document["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        document["categories"] = json!(resource.categories);
    }
}

fn verbs(resource: &Resource) -> Vec<&'static str> {
    if !resource.stored {
        return vec!["create"];
    }
    let mut verbs = if resource.custom { CUSTOM_VERBS } else { VERBS }.to_vec();
    if !resource.deletes_collections() {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    verbs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::crd;

    fn get(path: &str) -> Value {
        let (content_type, document) = respond(path, None, &Registry::new()).expect("found");
        assert_eq!(content_type, JSON);
        document
    }

    fn find<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
        let found = list.as_array().and_then(|all| all.iter().find(|item| item[key] == name));
        found.unwrap_or_else(|| panic!("{name} is listed in {list}"))
    }

    #[test]
    fn the_core_group_lists_its_versions() {
        assert_eq!(get("/api")["kind"], "APIVersions");
        assert_eq!(get("/api/")["versions"], json!(["v1"]));
    }

    #[test]
    fn groups_list_their_versions_and_the_preferred_one() {
        let list = get("/apis");
        assert_eq!(list["kind"], "APIGroupList");
        assert_eq!(list["groups"][0]["name"], "apps");
        let apps = json!({
            "name": "apps",
            "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
        });
        assert_eq!(list["groups"][0], apps);
        let alone = get("/apis/apps");
        assert_eq!(alone["kind"], "APIGroup");
        assert_eq!(alone["preferredVersion"], apps["preferredVersion"]);
    }

    #[test]
    fn a_version_lists_resources_and_their_status() {
        let list = get("/api/v1");
        assert_eq!(
            (&list["kind"], &list["groupVersion"]),
            (&json!("APIResourceList"), &json!("v1"))
        );
        let pods = json!({
            "name": "pods",
            "singularName": "pod",
            "namespaced": true,
            "kind": "Pod",
            "verbs": VERBS,
            "shortNames": ["po"],
            "categories": ["all"],
        });
        assert_eq!(*find(&list["resources"], "name", "pods"), pods);
        let status = find(&list["resources"], "name", "pods/status");
        assert_eq!(status["verbs"], json!(["get", "patch", "update"]));
        let apps = get("/apis/apps/v1");
        assert_eq!(apps["apiVersion"], "v1");
        assert_eq!(find(&apps["resources"], "name", "deployments")["kind"], "Deployment");
    }

    #[test]
    fn namespaces_are_not_deleted_by_the_collection() {
        let list = get("/api/v1");
        let verbs = &find(&list["resources"], "name", "namespaces")["verbs"];
        assert!(!verbs.as_array().expect("verbs").contains(&json!("deletecollection")));
    }

    #[test]
    fn other_paths_are_not_answered() {
        let paths = [
            "",
            "/",
            "/apis/nope",
            "/apis/apps/v9",
            "/api/v2",
            "/api/v1/pods",
            "/version",
            "/apis/apps/v1/deployments",
            "apis",
            "/apis//v1",
            "//",
            "/apis///",
        ];
        for path in paths {
            assert!(respond(path, Some(V2), &Registry::new()).is_none(), "{path}");
        }
    }

    #[test]
    fn the_aggregated_form_is_for_those_who_ask() {
        let chosen = |accept: &str| {
            let registry = Registry::new();
            respond("/apis", Some(accept), &registry).expect("found").0
        };
        assert_eq!(chosen("application/json"), JSON);
        assert_eq!(chosen("*/*"), JSON);
        assert_eq!(chosen("application/vnd.kubernetes.protobuf"), JSON);
        assert_eq!(chosen(&format!("{V2},{V2BETA1},{JSON}")), V2);
        assert_eq!(chosen(&format!("{V2BETA1},{V2},{JSON}")), V2BETA1);
        assert_eq!(chosen(&format!("{V2BETA1}; q=0.5, {V2};q=0.9")), V2);
        assert_eq!(chosen(&format!("{JSON},{V2}")), V2);
        assert_eq!(chosen(&format!("{V2};profile=nopeer,{JSON}")), V2);
        assert_eq!(
            chosen("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io"),
            V2
        );
        assert_eq!(
            chosen("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList"),
            JSON
        );
        assert_eq!(chosen(";;=,,;q=x"), JSON);
    }

    #[test]
    fn aggregated_discovery_says_everything_at_once() {
        let registry = Registry::new();
        let (_, apis) = respond("/apis", Some(V2), &registry).expect("found");
        assert_eq!(apis["apiVersion"], "apidiscovery.k8s.io/v2");
        assert_eq!(apis["items"].as_array().map(Vec::len), Some(registry.groups().count() - 1));
        let (_, api) = respond("/api", Some(V2BETA1), &registry).expect("found");
        assert_eq!(api["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        assert_eq!(api["items"][0]["metadata"], json!({}));
        let nodes = find(&api["items"][0]["versions"][0]["resources"], "resource", "nodes");
        let expected = json!({
            "resource": "nodes",
            "responseKind": {"group": "", "version": "", "kind": "Node"},
            "scope": "Cluster",
            "singularResource": "node",
            "verbs": VERBS,
            "shortNames": ["no"],
            "subresources": [{
                "subresource": "proxy",
                "responseKind": {"group": "", "version": "", "kind": "NodeProxyOptions"},
                "verbs": ["create", "delete", "get", "patch", "update"],
            }, {
                "subresource": "status",
                "responseKind": {"group": "", "version": "", "kind": "Node"},
                "verbs": ["get", "patch", "update"],
            }],
        });
        assert_eq!(*nodes, expected);
    }

    #[test]
    fn custom_resources_are_discovered_too() {
        let mut registry = Registry::new();
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1"});
        registry.insert_custom(crd::resources(&json!({"spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1beta1"), version("v1")],
        }})));
        let (_, group) = respond("/apis/example.com", None, &registry).expect("found");
        assert_eq!(group["preferredVersion"]["version"], "v1");
        assert_eq!(group["versions"][1]["groupVersion"], "example.com/v1beta1");
        let (_, all) = respond("/apis", Some(V2), &registry).expect("found");
        let group = all["items"].as_array().and_then(|items| items.last()).expect("a group");
        let kind = &group["versions"][0]["resources"][0]["responseKind"];
        assert_eq!(*kind, json!({"group": "example.com", "version": "v1", "kind": "Widget"}));
        assert!(respond("/apis/example.com/v2", None, &registry).is_none());
    }
}
