//! The part of `/openapi` that `kubectl` requires.
//!
//! Before it sends an object, `kubectl` checks in `/openapi/v3` whether PATCH on its kind supports
//! the `fieldValidation` parameter, and if so leaves validation to the server. There are no schemas
//! here, so the documents contain nothing else: `kubectl apply` then computes patches from its
//! built-in types.

use serde_json::{Map, Value, json};

use crate::kinds::{Registry, Resource, versions};

const JSON: &str = "application/json";
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Handles the paths under `/openapi`. Returns a content type and a body, or `None` if there is no
/// such path, group or version.
pub(crate) fn respond(
    path: &str,
    accept: Option<&str>,
    registry: &Registry,
) -> Option<(&'static str, String)> {
    let path = path.strip_prefix("/openapi/")?;
    let segments: Vec<_> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    match segments[..] {
        ["v2"] => Some(v2(accept)),
        ["v3"] => Some((JSON, index(registry).to_string())),
        ["v3", "api", version] => document(registry, "", version),
        // The core group has no name, and therefore no path here.
        ["v3", "apis", "", _] => None,
        ["v3", "apis", group, version] => document(registry, group, version),
        _ => None,
    }
}

/// Returns a document without definitions. `kubectl`, which uses it for lists, then skips its own
/// validation instead of failing for lack of the document.
fn v2(accept: Option<&str>) -> (&'static str, String) {
    if accept.is_some_and(|accept| accept.contains("proto-openapi.spec.v2")) {
        // A protobuf message without fields is empty.
        return (V2_PROTOBUF, String::new());
    }
    let document = json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": {}});
    (JSON, document.to_string())
}

fn index(registry: &Registry) -> Value {
    let paths: Map<_, _> = registry
        .groups()
        .flat_map(versions)
        .map(|version| {
            let path = root(&version[0]);
            let url = format!("/openapi/v3/{path}");
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

fn document(registry: &Registry, group: &str, version: &str) -> Option<(&'static str, String)> {
    let resources = registry.version(group, version);
    if resources.is_empty() {
        return None;
    }
    let paths: Map<_, _> = resources.iter().map(|resource| path_item(resource)).collect();
    let document = json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": {"schemas": {}},
    });
    Some((JSON, document.to_string()))
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "v1.36.3"})
}

/// Returns `api/v1` or `apis/apps/v1`.
fn root(resource: &Resource) -> String {
    let prefix = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", resource.api_version())
}

fn path_item(resource: &Resource) -> (String, Value) {
    let namespace = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
    let path = format!("/{}/{namespace}{}/{{name}}", root(resource), resource.plural);
    let mut in_path = vec![parameter("path", "name")];
    if resource.namespaced {
        in_path.push(parameter("path", "namespace"));
    }
    let in_query = ["dryRun", "fieldManager", "fieldValidation", "force"];
    // There is no request body. If its media types included strategic merge patch, `kubectl apply`
    // would look for a schema to compute one.
    let operation = json!({
        "parameters": in_query.map(|name| parameter("query", name)),
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
    });
    (path, json!({"parameters": in_path, "patch": operation}))
}

fn parameter(place: &str, name: &str) -> Value {
    let kind = if name == "force" { "boolean" } else { "string" };
    json!({
        "in": place,
        "name": name,
        "required": place == "path",
        "schema": {"type": kind},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Value {
        let (content_type, body) = respond(path, None, &Registry::new()).expect("found");
        assert_eq!(content_type, JSON);
        serde_json::from_str(&body).expect("JSON")
    }

    #[test]
    fn every_version_has_a_document_where_the_index_says() {
        let index = get("/openapi/v3");
        let paths = index["paths"].as_object().expect("paths");
        assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
        for entry in paths.values() {
            let document = get(entry["serverRelativeURL"].as_str().expect("a URL"));
            assert_eq!(document["openapi"], "3.0.0");
        }
    }

    #[test]
    fn patching_any_kind_takes_a_field_validation() {
        let registry = Registry::new();
        for resource in registry.iter() {
            let (path, item) = path_item(resource);
            let document = get(&format!("/openapi/v3/{}", root(resource)));
            assert_eq!(document["paths"][&path], item);
            let kind = &item["patch"]["x-kubernetes-group-version-kind"];
            assert_eq!(kind["kind"], *resource.kind);
            let parameters = item["patch"]["parameters"].as_array().expect("parameters");
            assert!(
                parameters.iter().any(|p| p["name"] == "fieldValidation" && p["in"] == "query")
            );
        }
    }

    #[test]
    fn paths_are_those_of_objects() {
        let core = get("/openapi/v3/api/v1");
        assert!(core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"].is_object());
        assert!(core["paths"]["/api/v1/nodes/{name}"].is_object());
        let apps = get("/openapi/v3/apis/apps/v1/");
        let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
        assert!(apps["paths"][path].is_object());
    }

    #[test]
    fn the_old_document_is_empty_in_either_encoding() {
        assert_eq!(get("/openapi/v2")["definitions"], json!({}));
        let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        let (content_type, body) =
            respond("/openapi/v2", Some(accept), &Registry::new()).expect("found");
        assert_eq!((content_type, &*body), (V2_PROTOBUF, ""));
    }

    #[test]
    fn other_paths_are_not_answered() {
        let paths = [
            "/openapi",
            "/openapi/",
            "/openapi/v4",
            "/openapi/v3/api",
            "/openapi/v3/api/v9",
            "/openapi/v3/apis/apps",
            "/openapi/v3/apis//v1",
            "/openapi/v3/apis/nope/v1",
            "/api",
        ];
        for path in paths {
            assert!(respond(path, None, &Registry::new()).is_none(), "{path}");
        }
    }
}
