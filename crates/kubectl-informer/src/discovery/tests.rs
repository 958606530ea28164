use embedded_apiserver::ApiServer;
use serde_json::json;

use super::*;

fn custom(group: &str, plural: &str, kind: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                      "shortNames": ["wd"], "categories": ["toys"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

async fn types() -> Types {
    let server = ApiServer::start();
    server.create(custom("example.com", "widgets", "Widget")).unwrap();
    Types::discover(&server.client()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_type_is_found_by_all_its_names() {
    let types = types().await;
    for (word, name) in [
        ("pods", "pods"),
        ("pod", "pods"),
        ("po", "pods"),
        ("Pod", "pods"),
        ("PODS", "pods"),
        ("pods.v1", "pods"),
        ("deploy", "deployments.apps"),
        ("deployment", "deployments.apps"),
        ("deployments.apps", "deployments.apps"),
        ("deployments.v1.apps", "deployments.apps"),
        ("deploy.apps", "deployments.apps"),
        ("deploy.app", "deployments.apps"),
        ("events", "events"),
        ("events.events.k8s.io", "events.events.k8s.io"),
        ("wd", "widgets.example.com"),
        ("widget.example.com", "widgets.example.com"),
        ("toys", "widgets.example.com"),
    ] {
        let found = types.find(word).unwrap_or_else(|problem| panic!("{word}: {problem}"));
        assert_eq!(found.iter().map(|each| each.name()).collect::<Vec<_>>(), [name], "{word}");
    }
    assert!(types.find("pods").unwrap()[0].namespaced);
    assert!(!types.find("widgets").unwrap()[0].namespaced);
}

#[tokio::test(start_paused = true)]
async fn a_category_is_all_its_types() {
    let types = types().await;
    let all: Vec<_> = types.find("all").unwrap().into_iter().map(Type::name).collect();
    for name in ["pods", "services", "deployments.apps", "jobs.batch"] {
        assert!(all.iter().any(|each| each == name), "{all:?}");
    }
    assert!(!all.contains(&"secrets".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_type_names_the_nearest() {
    let types = types().await;
    let problem = types.find("pdos").unwrap_err();
    assert!(problem.contains(r#"no type "pdos"; did you mean "pods"?"#), "{problem}");
    let problem = types.find("widgts.example.com").unwrap_err();
    assert!(problem.contains(r#""widgets.example.com"?"#), "{problem}");
    let problem = types.find("certificates").unwrap_err();
    assert!(!problem.contains("did you mean"), "{problem}");
    assert!(problem.contains("kubectl api-resources"), "{problem}");
}

/// A server without aggregated discovery has the same types.
#[tokio::test(start_paused = true)]
async fn both_forms_of_discovery_agree() {
    let server = ApiServer::start();
    server.create(custom("example.com", "widgets", "Widget")).unwrap();
    let client = server.client();
    let (mut one, mut other) =
        (aggregated(&client).await.unwrap().unwrap(), plain(&client).await.unwrap());
    for types in [&mut one, &mut other] {
        types.0.sort_by_key(|each| (each.group.clone(), each.version.clone(), each.plural.clone()));
        types.0.iter_mut().for_each(|each| each.verbs.sort());
    }
    assert_eq!(one.0, other.0);
    assert!(one.0.len() > 20);
}
